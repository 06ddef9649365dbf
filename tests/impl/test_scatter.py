"""Scatter: the rows that an engine writes are JAX's, in ops that the engine has."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import graph_of

METHODS = ("set", "add", "subtract", "multiply", "min", "max")
ENGINES = ("litert", "onnx", "openvino", "tfjs")
TARGETS = ("tensorflow", *ENGINES)
# Rows that repeat, and rows out of bounds on both sides; a negative index counts from the end.
INDICES = {
    "repeated": np.array([3, 0, 3, 3, 1], np.int32),
    "beyond": np.array([3, 7, -9, 3, 5], np.int32),
    "one": np.array([2], np.int32),
    "one_beyond": np.array([6], np.int32),
    "none_in_bounds": np.array([5, -6, 9], np.int32),
}


def _rows(count: int, dtype: Any, seed: int = 0) -> np.ndarray:
    numbers = np.random.default_rng(seed).integers(-9, 9, (count, 4))
    return numbers.astype(dtype)


def _assert_same(function: Callable[..., Any], target: str, *args: np.ndarray) -> Any:
    """The graph of the function, which gives what JAX does, to the sign of each zero."""
    graph = graph_of(function, target, *args)
    expected = np.asarray(jax.jit(function)(*args))
    actual = graph(*map(tf.constant, args)).numpy()
    np.testing.assert_array_equal(actual, expected, strict=True)
    if expected.dtype.kind == "f":
        signs = [np.signbit(x) & ~np.isnan(x) for x in (actual, expected)]
        np.testing.assert_array_equal(*signs)
    return graph


def _written(method: str, mode: str | None = None) -> Callable[..., jax.Array]:
    return lambda x, i, u: getattr(x.at[i], method)(u, mode=mode)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", METHODS)
class TestEveryTarget:
    @pytest.mark.parametrize("case", INDICES)
    def test_rows(self, target, method, case):
        indices = INDICES[case]
        dtype = np.int32 if case == "beyond" else np.float32
        args = _rows(5, dtype), indices, _rows(indices.size, dtype, 1)
        _assert_same(_written(method), target, *args)

    def test_modes(self, target, method):
        args = _rows(5, np.float32), INDICES["beyond"], _rows(5, np.float32, 1)
        _assert_same(_written(method, "clip"), target, *args)
        args = _rows(5, np.float32), INDICES["repeated"], _rows(5, np.float32, 1)
        _assert_same(_written(method, "promise_in_bounds"), target, *args)

    def test_elements_of_several_dimensions(self, target, method):
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        i, j = np.array([0, 1, 1, 0, 5], np.int32), np.array([2, 0, 0, 2, 1], np.int32)
        u = _rows(5, np.float32)

        def function(x: Any, i: Any, j: Any, u: Any) -> Any:
            return getattr(x.at[i, j], method)(u)

        _assert_same(function, target, x, i, j, u)

    def test_numbers_that_are_not_finite(self, target, method):
        x = np.array([[np.inf], [np.nan], [-np.inf], [1.0], [np.nan], [2.0]], np.float32)
        u = np.array([[1.0], [2.0], [-np.inf], [np.nan]], np.float32)
        _assert_same(_written(method), target, x, np.array([0, 1, 2, 3], np.int32), u)

    def test_a_batch_of_any_size(self, target, method):
        converted = jax2tf.convert(
            _written(method), target=target, polymorphic_shapes=["n, 4", "m", "m, 4"]
        )
        function = tf.function(converted, autograph=False)
        specs = [tf.TensorSpec(s, d) for s, d in (((None, 4), tf.float32), ((None,), tf.int32))]
        graph = function.get_concrete_function(*specs, specs[0])
        for rows, updates in ((5, 3), (2, 4), (1, 1)):
            args = (
                _rows(rows, np.float32),
                np.resize(INDICES["repeated"], updates),
                _rows(updates, np.float32, 1),
            )
            expected = jax.jit(_written(method))(*args)
            np.testing.assert_array_equal(graph(*map(tf.constant, args)), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_bools(target):
    x, u = np.array([True, False, True]), np.array([False, True])
    for method in ("set", "min", "max"):
        _assert_same(_written(method), target, x, np.array([2, 2], np.int32), u)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scatter", [lax.scatter_add, lax.scatter_sub])
def test_what_is_dropped_changes_no_zero(target, scatter):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    x, u = np.array([-0.0, 0.0, -0.0], np.float32), np.array([1.0, 2.0], np.float32)

    def function(x: Any, i: Any, u: Any) -> Any:
        return scatter(x, i, u, numbers, mode="drop", unique_indices=True)

    _assert_same(function, target, x, np.array([[7], [1]], np.int32), u)


# The dtypes of which the engine computes no indices.
NO_INDICES = {"litert": ("uint64",), "tfjs": ("uint32", "uint64", "int64")}


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int64])
@pytest.mark.parametrize("target", TARGETS)
def test_indices_of_every_dtype(target, dtype):
    limits = np.iinfo(dtype)
    indices = np.array([0, 2, limits.max, limits.min, 2], dtype)[:, None]
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    name = np.dtype(dtype).name
    with jax.enable_x64(True):
        for mode in ("clip", "drop"):

            def function(x: Any, i: Any, u: Any, mode: str = mode) -> Any:
                return lax.scatter_add(x, i, u, numbers, mode=mode)

            x, u = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)
            if name in NO_INDICES.get(target, ()):
                words = rf"takes no \w+ of {name}|takes no \w+ of int64|no arrays of {name}"
                with pytest.raises(jax2tf.ConversionError, match=words):
                    _assert_same(function, target, x, indices, u)
            else:
                _assert_same(function, target, x, indices, u)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_no_op_that_the_engine_lacks(engine, method):
    for dtype in (np.float32, np.int32):
        args = _rows(5, dtype), INDICES["beyond"], _rows(5, dtype, 1)
        lacks = jax2tf.TARGETS[engine].lacks
        name = np.dtype(dtype).name
        lacking = {op for op, dtypes in lacks.items() if not dtypes or name in dtypes}
        graph = graph_of(_written(method), engine, *args).graph
        assert not op_types(graph).keys() & lacking


def test_updates_of_a_single_row_need_no_scatter_in_litert():
    args = _rows(5, np.float32), INDICES["one"], _rows(1, np.float32, 1)
    ops = op_types(graph_of(_written("set"), "litert", *args).graph)
    assert not {op for op in ops if "Scatter" in op or "Segment" in op or "Gather" in op}


def test_sums_are_rounded_step_by_step_in_litert():
    # One after the other the updates vanish; their sum does not.
    x, u = np.array([1.0], np.float32), np.full(4, 2.0**-25, np.float32)
    _assert_same(lambda x, u: x.at[jnp.zeros(4, np.int32)].add(u), "litert", x, u)
    # Each is lost in the sum before it: 2^25 + 1 - 2^25 is 0.
    u = np.array([2.0**25, 1.0, -(2.0**25)], np.float32)
    _assert_same(lambda x, u: x.at[jnp.zeros(3, np.int32)].add(u), "litert", 0 * x, u)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_over_updates_that_repeat_ends_where_none_is_left(target):
    indices = np.array([1, 1, 1, 1, 0, 1], np.int32)
    args = np.ones((2, 4), np.float32), indices, np.full((6, 4), 3, np.float32)
    _assert_same(_written("multiply"), target, *args)
