"""What Core ML's converter lacks, in what it has: the numbers stay JAX's.

Core ML's models run on Apple's systems alone, so TensorFlow runs the graphs here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import graph_of, ops_of

COREML = jax2tf.TARGETS["coreml"]
FLOATS = np.array([[1, np.nan, -2, np.inf], [-0.0, 0, -np.inf, 3]], np.float32)
ENDS = np.array([[1, 2**31 - 1, 3], [-(2**31), 0, -7]], np.int32)
MASK = np.array([[True, False, True], [False, False, True]])


def assert_same(function, *args, ulps=0):
    concrete = graph_of(function, COREML, *args)
    expected = np.asarray(jax.jit(function)(*args))
    actual = concrete(*map(tf.constant, args)).numpy()
    if ulps:
        np.testing.assert_array_max_ulp(actual, expected, ulps)
    else:
        np.testing.assert_array_equal(actual, expected, strict=True)
    if expected.dtype.kind == "f":
        # JAX's NaNs have signs of their own.
        is_number = ~np.isnan(expected)
        signs = (np.signbit(x[is_number]) for x in (actual, expected))
        np.testing.assert_array_equal(*signs)
    return ops_of(concrete)


OF_NANS = {
    "argmax": lambda x: jnp.argmax(x, axis=1),
    "cummax": lambda x: lax.cummax(x, axis=1),
    "max": lambda x: jnp.max(x, axis=1),
    "maximum": lambda x: jnp.maximum(x, x[::-1]),
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 7),
    "sort": lambda x: jnp.sort(x, axis=1),
    "top_k": lambda x: lax.top_k(x, 2)[0],
}


@pytest.mark.parametrize("name", OF_NANS)
def test_nan_without_is_nan(name):
    assert "IsNan" not in assert_same(OF_NANS[name], FLOATS)


def test_order_of_all_floats_without_is_nan():
    is_less = lax.lt_to_p.bind
    assert "IsNan" not in assert_same(is_less, FLOATS, np.ascontiguousarray(FLOATS[:, ::-1]))


def test_angle_without_atan2():
    numbers = np.array([0, -0.0, 1e-30, 0.5, -0.5, 3, -7e30, np.inf, -np.inf, np.nan], np.float32)
    y, x = (np.ascontiguousarray(v) for v in np.meshgrid(numbers, numbers))
    ops = assert_same(jnp.arctan2, y, x, ulps=2)
    assert "Atan" in ops
    assert "Atan2" not in ops


@pytest.mark.parametrize("function", [lax.eq, lax.ne, lax.bitwise_xor])
def test_bools_beside_one_another(function):
    assert_same(function, MASK, np.ascontiguousarray(MASK[::-1]))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_bools_by_index(mode):
    assert_same(lambda x, i: x.at[i].get(mode=mode), MASK, np.array([1, 5, 0], np.int32))


def test_bools_in_order():
    assert_same(lambda x: lax.sort(x, dimension=1), MASK)
    numbers = np.array([[3, 1, 2], [1, 0, 1]], np.int32)
    assert_same(lambda x, y: lax.sort((x, y), dimension=1)[1], numbers, MASK)


@pytest.mark.parametrize("function", [lax.div, lax.rem, jnp.floor_divide])
def test_signs_of_quotients(function):
    divisors = np.array([[-3, 2, 0], [5, -1, -2]], np.int32)
    assert_same(function, np.array([[7, -9, 4], [-8, 6, -7]], np.int32), divisors)


@pytest.mark.parametrize("number", [0, 7, 2**31 - 1, -(2**31)])
def test_padding_of_integers(number):
    ops = assert_same(lambda x: lax.pad(x, np.int32(number), [(1, 0, 0), (0, 2, 1)]), ENDS)
    assert "Pad" in ops
    assert "PadV2" not in ops


def test_writes_where_indices_repeat():
    places = np.array([3, 1, 3, -9, 1, 7, 0], np.int32)
    rows = np.arange(14, dtype=np.float32).reshape(7, 2)
    ops = assert_same(lambda x, i, v: x.at[i].set(v), np.zeros((5, 2), np.float32), places, rows)
    assert not ops & {"TensorScatterUpdate", "UnsortedSegmentMax"}
    assert_same(lambda x, i, v: x.at[i].mul(v), np.ones((5, 2), np.float32), places, rows)


def test_loops_have_no_largest_number_of_steps():
    def f(x):
        return lax.scan(lambda c, y: (c + y, c * 2), x[0], x)[1]

    assert_same(f, np.arange(12, dtype=np.float32).reshape(4, 3))
    graph = graph_of(f, COREML, ENDS).graph.as_graph_def()
    comparisons = [n for fn in graph.library.function for n in fn.node_def if n.op == "Less"]
    assert len(comparisons) == 1


def test_more_dimensions_are_refused():
    assert_same(lambda x: x.reshape(1, 2, 1, 3, 1) * 2, ENDS)
    with pytest.raises(
        jax2tf.UnsupportedPrimitiveError,
        match=r"array of 6 dimensions, .*'coreml' has none of .* 5",
    ):
        graph_of(lambda x: x.reshape(1, 2, 1, 3, 1, 1) * 2, COREML, ENDS)


def test_ops_of_its_own():
    """Ops that other engines lack, and are spared, this one has."""
    assert "Tan" in assert_same(jnp.tan, FLOATS[:, :1], ulps=4)
    assert "Tan" not in ops_of(graph_of(jnp.tan, jax2tf.TARGETS["tensorflow"], FLOATS))
    assert not jax2tf.Target("mine", own_ops={"Tan": ("float16",)}).wants("Tan", "float32")


def test_a_primitive_without_results():
    def f(x):
        jax.debug.callback(lambda y: None, x)
        return x * 2

    target = jax2tf.Target("mine", lacks={"Sin": (), "Bitcast": ()})
    np.testing.assert_array_equal(jax2tf.convert(f, target=target)(ENDS), ENDS * 2)
