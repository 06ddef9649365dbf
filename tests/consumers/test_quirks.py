"""What each quirk of a target is there for: a program that the engine gets wrong without it.

With the quirk the program gives JAX's numbers. Without it the engine refuses the program, or gives
others: a quirk that an engine no longer has fails here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from jax2tf import targets
from jax2tf.targets import OF_DTENSOR, QUIRKS, TARGETS, Target

X = np.array([[0.5, -1.25, 3.0, 2.0], [1.5, 0.25, -2.0, 4.0]], np.float32)
# Neighbours that float32 cannot tell apart, and the ends.
WIDE = np.array([[2**24, 2**24 + 1, -(2**24) - 1, 7], [2**30 + 1, 2**30, 2**31 - 1, -3]], np.int32)


@dataclasses.dataclass(frozen=True)
class Program:
    """A function and its arguments; `is_open` where the first dimension of each is any."""

    function: Callable[..., Any]
    args: tuple[np.ndarray, ...] = (X,)
    is_open: bool = False

    def specs(self) -> list[tf.TensorSpec]:
        return [
            tf.TensorSpec([None, *x.shape[1:]] if self.is_open else x.shape, x.dtype)
            for x in self.args
        ]


def _appended(x: jax.Array) -> Any:
    return lax.scan(lambda c, y: (c + y, c * 2 + y), jnp.zeros(()), x[0], reverse=True)[1]


def _in_two_groups(x: jax.Array, features: tuple[int, int], padding: Any) -> jax.Array:
    """A convolution of images of two groups of channels; `features` are those of the kernel."""
    images = jnp.tile(x.reshape(1, 2, 4, 1), (1, 2, 1, 2 * features[0]))
    kernel = jnp.arange(4.0 * math.prod(features), dtype=jnp.float32).reshape(2, 2, *features)
    return lax.conv_general_dilated(
        images,
        kernel,
        (1, 1),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=2,
    )


def _convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x[None, None], kernel[None, None], (1, 1), "VALID")


def _pooled(x: jax.Array) -> jax.Array:
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "SAME")
    return jnp.sum(largest**2)


# A NaN beside numbers.
NAN = np.array([[0.5, np.nan, 3.0, -2.0], [np.nan, 0.25, -2.0, 4.0]], np.float32)

MOVED_CARRY = Program(lambda x: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], c[0]), (x, x * 2)))
COMPLEX = Program(lambda x: jnp.real(jnp.exp(1j * x) * (x + 2j)))
OPEN_GROUPS = Program(
    jax.vmap(_convolved),
    (np.ones((2, 5, 5), np.float32), np.arange(8, dtype=np.float32).reshape(2, 2, 2)),
    is_open=True,
)
BITS = Program(lambda x: lax.bitcast_convert_type(x, jnp.int32) >> 3)

PROGRAMS: dict[tuple[str, str], Program] = {
    ("litert", "carries_in_turn"): MOVED_CARRY,
    ("litert", "exchanges_constant_and_transpose"): Program(lambda x: 1 - x.T),
    ("litert", "few_dimensions_in_reductions"): Program(
        lambda x: jnp.max(x.reshape(1, 2, 1, 2, 1, 2, 1), axis=(0, 3, 5))
    ),
    ("litert", "lists_of_known_shape"): Program(
        lambda x: lax.scan(lambda c, y: (c + y, c * 2 + y), x[:, 0], x.T)[1], is_open=True
    ),
    ("litert", "no_atan2_of_scalar"): Program(lambda x: jnp.arctan2(x, x[0, 0])),
    ("litert", "no_complex_numbers"): COMPLEX,
    ("litert", "no_open_number_of_groups"): OPEN_GROUPS,
    ("litert", "no_row_by_computed_matrix"): Program(
        lambda row, matrix: row @ matrix, (X[0], np.arange(12, dtype=np.float32).reshape(4, 3))
    ),
    ("onnx", "appends_in_loops"): Program(_appended),
    ("onnx", "choice_by_product"): Program(
        lambda x: (
            jnp.where(x > 0, x * jnp.log(x), 0.0),
            jnp.where(np.array([True, False, False, True]), x, x / 0),
            jax.grad(_pooled)(x),
        )
    ),
    ("onnx", "compares_integers_as_floats"): Program(lambda x: x[:, 1:] > x[:, :-1], (WIDE,)),
    ("onnx", "integer_reductions_saturate"): Program(lambda x: jnp.prod(x, axis=1), (WIDE,)),
    ("onnx", "no_adjoint_of_integers"): Program(
        lambda x: jnp.einsum("bij,bkj->bik", x, x),
        (np.arange(12, dtype=np.int32).reshape(2, 2, 3),),
    ),
    ("onnx", "no_bitcast"): BITS,
    ("onnx", "no_complex_numbers"): COMPLEX,
    ("onnx", "no_open_number_of_groups"): OPEN_GROUPS,
    ("onnx", "sorts_integers_as_floats"): Program(lambda x: jnp.sort(x, axis=-1), (WIDE,)),
    ("openvino", "adds_integers_as_floats"): Program(lambda x: jnp.sum(x, axis=1), (WIDE,)),
    ("openvino", "carries_in_turn"): MOVED_CARRY,
    ("openvino", "chooses_integers_as_floats"): Program(
        lambda x: jnp.where(x // 3 > 5, x, x[:, ::-1]), (WIDE,)
    ),
    ("openvino", "divides_integers_as_floats"): Program(lambda x: lax.div(x, np.int32(3)), (WIDE,)),
    ("openvino", "equates_large_integers"): Program(lambda x: x[:, 1:] == x[:, :-1], (WIDE,)),
    ("openvino", "extreme_keeps_a_nan_of_the_second"): Program(
        lambda x: (jnp.maximum(x, 1.0), jnp.minimum(2.0, x)), (NAN,)
    ),
    ("openvino", "infinite_exp_of_nan"): Program(lambda x: jnp.exp(x), (NAN,)),
    ("openvino", "no_bitcast"): BITS,
    ("openvino", "no_complex_numbers"): COMPLEX,
    ("openvino", "no_gather_in_batches"): Program(
        lambda x, i: jax.vmap(lambda matrix, i: matrix.T[i])(x, i),
        (np.arange(12, dtype=np.float32).reshape(2, 2, 3), np.array([[2, 0], [1, 1]], np.int32)),
    ),
    ("openvino", "no_integers_of_three_dimensions"): Program(
        lambda x: jnp.prod(x, 1) * 2, (np.arange(24, dtype=np.int32).reshape(2, 3, 4),)
    ),
    ("openvino", "no_open_number_of_groups"): OPEN_GROUPS,
    ("openvino", "no_paddings_in_numbers"): Program(
        lambda x: _in_two_groups(x, (1, 2), [(1, 0), (2, 1)])
    ),
    ("openvino", "orders_integers_as_floats"): Program(lambda x: jnp.max(x, axis=1), (WIDE,)),
    ("openvino", "pads_integers_as_floats"): Program(
        lambda x: lax.pad(x, np.int32(2**31 - 1), [(1, 0, 0), (0, 2, 0)]), (WIDE,)
    ),
    ("openvino", "pads_with_constants_alone"): Program(
        lambda x: lax.pad(x, x[0, 0], [(1, 0, 0), (0, 2, 0)])
    ),
    ("tfjs", "no_bitcast"): BITS,
    ("tfjs", "no_complex_numbers"): COMPLEX,
    ("tfjs", "no_convolution_in_groups"): Program(lambda x: _in_two_groups(x, (2, 4), "VALID")),
}


# Those for which there is no program here yet, and why.
NOT_SHOWN = {
    "computes_64_bits_in_32": "such bits are refused",
    "constants_by_name": "the loops that once showed it are right without it",
    "drops_constant_results": "the graphs of the judge end in an Identity, which stays",
    "no_bad_indices": "no op that is made today has such a policy",
    "no_bits_of_open_shape": "such bits are refused",
    "no_folding": "what converters have folded so far needs an op that no engine lacks",
    "no_integer_square": "it needs a model of integers",
    "no_product_of_vectors": "without it the process ends",
    "one_reverse_at_a_time": "no engine that is here refuses two",
    "zero_size_is_kept": "results without elements are constants before it is asked for",
}


def is_right(engine: str, program: Program, target: Target) -> bool:
    """Whether the engine runs the program and gives JAX's numbers."""
    dims = ", ".join(["b", *["_"] * (program.args[0].ndim - 1)])
    converted = jax2tf.convert(
        program.function,
        target=target,
        with_gradient=False,
        polymorphic_shapes=[dims if program.is_open else None] * len(program.args),
    )
    graph = graph_of(converted, program.specs())
    expected = jax.tree.leaves(program.function(*program.args))
    run = consumers.engine(engine).convert(graph)
    results = run(list(program.args))
    return all(
        result.shape == wanted.shape and np.allclose(result, wanted, rtol=1e-5, equal_nan=True)
        if wanted.dtype.kind == "f"
        else np.array_equal(result, wanted)
        for result, wanted in zip(results, map(np.asarray, expected), strict=True)
    )


@pytest.mark.parametrize(("engine", "quirk"), PROGRAMS)
def test_an_engine_needs_its_quirk(engine, quirk, monkeypatch):
    program, target = PROGRAMS[engine, quirk], TARGETS[engine]
    assert quirk in target.quirks
    assert is_right(engine, program, target)
    monkeypatch.setattr(targets, "OF_ENGINES", targets.OF_ENGINES - {quirk})
    lacking = dataclasses.replace(target, quirks=target.quirks - {quirk})
    try:
        needs_none = is_right(engine, program, lacking)
    except Exception as error:
        print(f"refused: {type(error).__name__}: {str(error)[:200]}")
        needs_none = False
    assert not needs_none, f"{engine} has no quirk {quirk} any more: {QUIRKS[quirk]}"


def test_every_quirk_has_a_program_or_a_reason():
    shown = {quirk for _, quirk in PROGRAMS}
    assert shown | NOT_SHOWN.keys() == QUIRKS.keys() - OF_DTENSOR
    assert shown.isdisjoint(NOT_SHOWN)
