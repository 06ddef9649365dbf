"""Random TensorFlow functions under nested transformations of JAX give what JAX's own give."""

from __future__ import annotations

import concurrent.futures
import itertools
import warnings
from functools import partial
from typing import Any

import hypothesis
import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import jax2tf
from jax2tf import CallTfError
from tests.impl.fuzzing.call_tf_programs import Program, called, programs
from tests.impl.fuzzing.call_tf_transformations import Function, applied, pipelines

EXAMPLES = hypothesis.settings().max_examples
few = hypothesis.settings(
    max_examples=EXAMPLES if EXAMPLES > 1000 else EXAMPLES // 5,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
_CALLS = itertools.count(1)


def _in_threads(f: Function) -> Function:
    """Called by three threads at once, with the x64 of the caller."""

    def run(*args: Any) -> Any:
        x64 = jax.config.read("jax_enable_x64")

        def work(_: int) -> Any:
            with jax.enable_x64(x64):
                return f(*args)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            results = list(pool.map(work, range(3)))
        for other in results[1:]:
            jax.tree.map(np.testing.assert_array_equal, other, results[0])
        return results[0]

    return run


def _converted(f: Function, **options: Any) -> Function:
    # TensorFlow keeps each graph that has a custom gradient.
    return jax2tf.convert(f, with_gradient=False, **options)


STAGES = {
    "op_by_op": lambda f: f,
    "jit": jax.jit,
    "threads": _in_threads,
    "threads_of_jit": lambda f: _in_threads(jax.jit(f)),
    "converted": _converted,
    "graph": lambda f: tf.function(_converted(f), autograph=False),
    "native": partial(_converted, native_serialization=True),
}


def a_call_gives_what_jax_gives(
    program: Program, names: tuple[str, ...], stage: str, x64: bool
) -> None:
    if stage == "native" and not x64:
        # A module that TensorFlow runs has no host that reads 64 bits for it.
        hypothesis.assume(not program.has_wide_variables)
    forget_programs()
    args = program.values()
    with jax.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = jax.jit(applied(names, program.in_jax))(*args)
        except TypeError as error:
            # Of a custom_vjp there is no forward mode.
            if "custom_vjp" not in str(error):
                raise
            hypothesis.reject()
        actual = STAGES[stage](applied(names, program.in_tf))(*args)
    assert_near(jax.tree.map(_array, actual), jax.tree.map(_array, expected))


def _array(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, tf.Tensor) else np.asarray(x)


def assert_near(actual: Any, expected: Any) -> None:
    """The same structure, dtypes and shapes; values relative to the largest of each array."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        a, e = (np.asarray(x, np.complex128) for x in (a, e))
        scale = max(1.0, float(np.abs(e).max(initial=0)))
        np.testing.assert_allclose(a, e, rtol=0, atol=1e-4 * scale)


def forget_programs() -> None:
    """Once in 200 examples: JAX and TensorFlow keep what they compiled, until memory runs out."""
    if next(_CALLS) % 200 == 0:
        jax.clear_caches()
        called.cache_clear()


def a_declaration_of_nothing_is_held(program: Program) -> None:
    """output_shape_dtype=None says that the function returns nothing, and it returns something."""
    with pytest.raises(CallTfError, match="output_shape_dtype has the structure"):
        program.in_tf(*program.values(), output_shape_dtype=None)


@pytest.mark.fuzz
@few
@hypothesis.given(programs(), pipelines(), st.sampled_from(sorted(STAGES)), st.booleans())
def test_a_call_gives_what_jax_gives(program, names, stage, x64):
    a_call_gives_what_jax_gives(program, names, stage, x64)


@pytest.mark.fuzz
@few
@hypothesis.given(programs())
def test_a_declaration_of_nothing_is_held(program):
    a_declaration_of_nothing_is_held(program)
