"""Every harness of complex numbers as a program of real ones, held to JAX like a cell."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.compare import compare
from harnesses.harness import CONVERT, Harness, all_harnesses, is_complex

# What every engine takes, and no complex numbers.
TARGET = dataclasses.replace(
    jax2tf.TARGETS["tensorflow"],
    computes_in={"complex64": "float32", "complex128": "float64"},
)
# How far these are from JAX, in ULPs beyond what their harness allows; with the reason.
FURTHER = {
    "cumprod_long_complex64": (np.inf, "which part overflows first is the order of the products"),
    "dot_general_not_finite_complex64": (
        np.inf,
        "XLA's product of matrices takes its result by 1 + 0j, which makes NaN of both parts",
    ),
    "eigh_batches_complex64": (17, "Jacobi's rotations, and not LAPACK's reflections"),
    "fft_fft_not_finite_complex64": (np.inf, "a sum of products with 0 j is NaN at infinity"),
    "fft_ifft_not_finite_complex64": (np.inf, "a sum of products with 0 j is NaN at infinity"),
    "ragged_dot_general_not_finite_complex64": (np.inf, "as dot_general"),
    "reduce_prod_long_complex64": (17, "halves are multiplied, and not one after the other"),
}
if jax.__version__.startswith("0.10."):
    FURTHER["abs_nan_complex64"] = (np.inf, "limitations/elementwise.toml: JAX 0.10 gives NaN")
# Whose cells need more devices or another process.
NOT_HERE = {"sharding", "callbacks", "foreign"}
HARNESSES = [
    h
    for h in all_harnesses()
    if h.direction == CONVERT and h.dtype == np.complex64 and h.family not in NOT_HERE
]


def split(tree: Any) -> list[Any]:
    """The leaves, a complex one as its two parts."""
    parts = []
    for x in jax.tree.leaves(tree):
        is_pair = is_complex(x.dtype)
        parts += [jnp.real(x), jnp.imag(x)] if is_pair else [x]
    return parts


def parts_of(x: np.ndarray) -> list[np.ndarray]:
    return [x.real, x.imag] if is_complex(x.dtype) else [x]


def joined(leaves: list[Any], parts: Any, join: Any) -> list[Any]:
    """Leaves like those given, of parts as `split` makes them."""
    parts = iter(parts)
    return [join(next(parts), next(parts)) if is_complex(x.dtype) else next(parts) for x in leaves]


def complex_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.empty(np.shape(x), np.result_type(x, np.complex64))
    # Not x + 1j * y, which is NaN for an infinite y.
    z.real, z.imag = x, y
    return z


def problem_of(harness: Harness) -> str | None:
    """What is wrong with a harness whose arguments and results are parts, in a graph; or None."""
    args = harness.make_args()
    leaves, tree = jax.tree.flatten(args)
    try:
        expected = jax.tree.map(np.asarray, jax.jit(harness.fun)(*args))
    except jax.errors.JaxRuntimeError as error:
        # limitations/elementwise.toml: JAX 0.10 does not compile what it makes of `eq_to`.
        if jax.__version__.startswith("0.10.") and "actual: TOTALORDER" in str(error):
            return None
        raise

    def of_parts(*parts: Any) -> list[Any]:
        return split(harness.fun(*jax.tree.unflatten(tree, joined(leaves, parts, jax.lax.complex))))

    converted = jax2tf.convert(of_parts, target=TARGET, with_gradient=False)
    graph = tf.function(converted, autograph=False)
    # Not `split`, for whose two ops XLA compiles a program for each shape.
    parts = [tf.constant(part) for x in map(np.asarray, leaves) for part in parts_of(x)]
    concrete = graph.get_concrete_function(*parts)
    outputs = [x for op in concrete.graph.get_operations() for x in op.outputs]
    if any(x.dtype.is_complex for x in outputs):
        return "there are complex numbers in the graph"
    results, structure = jax.tree.flatten(expected)
    made = joined(results, [np.asarray(x) for x in graph(*parts)], complex_of)
    with np.errstate(all="ignore"):
        comparison = compare(harness, args, expected, jax.tree.unflatten(structure, made))
    allowed = FURTHER.get(harness.name, (0, ""))[0]
    is_near = comparison.ulps is not None and comparison.ulps <= allowed
    return None if is_near else comparison.problem


@pytest.mark.filterwarnings("ignore:.*Casting complex values")
@pytest.mark.filterwarnings("ignore:.*Explicitly requested dtype complex128")
@pytest.mark.parametrize("family", sorted({h.family for h in HARNESSES}))
def test_a_family_as_pairs(family):
    problems = {}
    for harness in HARNESSES:
        if harness.family != family:
            continue
        with jax.enable_x64(harness.x64):
            problem = problem_of(harness)
        if problem is not None:
            problems[harness.name] = problem
    assert not problems


def test_exceptions_are_of_harnesses():
    assert not FURTHER.keys() - {h.name for h in HARNESSES}
