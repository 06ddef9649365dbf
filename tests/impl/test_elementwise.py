"""What the matrix cannot see of elementwise rules: which ops a graph holds, and how many."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from harnesses.harness import Harness, all_harnesses
from tests.running import graph_of, ops_in_order, ops_of


@pytest.mark.parametrize(("fun", "op"), [(lax.gt, "Less"), (lax.ge, "LessEqual")])
@pytest.mark.parametrize("target", ["xla", "tensorflow"])
def test_what_is_larger_is_asked_as_what_is_smaller(fun, op, target):
    """See the form "smaller_for_larger"."""
    x, y = (np.array(v, np.float32) for v in ([1, 2, np.nan, 4], [2, 1, 3, 4]))
    assert ops_in_order(graph_of(fun, target, x, y)) == [op]
    np.testing.assert_array_equal(jax2tf.convert(fun)(x, y), fun(x, y))


@pytest.mark.parametrize("fun", [lambda x: lax.top_k(x, 2), lambda x: jnp.searchsorted(x, x)])
def test_no_bits_of_float32_without_xla_ops(fun):
    ops = ops_in_order(graph_of(fun, "tensorflow", np.ones(3, np.float32)))
    assert not [op for op in ops if op == "Bitcast" or "Bitwise" in op or "Shift" in op]


def test_a_divisor_that_is_known_is_not_compared_with_zero():
    # jnp.remainder puts a 1 in the place of a divisor that is 0, whatever it is.
    ops = ops_in_order(graph_of(lambda x: x % 3, "xla", np.array([-7, 7], np.int32)))
    assert ops.count("Equal") == 1


@pytest.mark.parametrize("fun", [lambda x: x // 3, lambda x: x % 3, lambda x: lax.rem(x, 2)])
def test_division_by_a_constant_without_xla_ops_takes_what_all_engines_have(fun):
    x = np.array([-(2**31), -(2**31) + 1, -7, -6, -1, 0, 1, 6, 7, 2**31 - 1], np.int32)
    concrete = graph_of(fun, "tensorflow", x)
    assert "FloorDiv" in ops_of(concrete)
    assert not {"TruncateDiv", "TruncateMod"} & ops_of(concrete)
    converted = tf.function(jax2tf.convert(fun, enable_xla=False), autograph=False)
    np.testing.assert_array_equal(converted(x), jax.jit(fun)(x))


@pytest.mark.parametrize("constant", [0, -1, 32])
def test_a_constant_that_does_not_rule_it_out_is_taken_care_of(constant):
    x = np.ones(3, np.int32)
    shift = ops_of(graph_of(lambda x: lax.shift_left(x, constant), "xla", x))
    assert ("SelectV2" in shift) == (constant != 0)
    quotient = ops_of(graph_of(lambda x: lax.div(x, constant), "xla", x))
    assert ("SelectV2" in quotient) == (constant == 0)


@pytest.mark.parametrize(("exponent", "products"), [(2, 1), (3, 2), (4, 2), (7, 4), (100, 8)])
def test_integer_pow_squares_and_multiplies(exponent, products):
    function = functools.partial(lax.integer_pow, y=exponent)
    ops = ops_in_order(graph_of(function, "xla", np.ones(3, np.float32)))
    assert set(ops) <= {"Mul", "Square"}
    assert len(ops) == products


@pytest.mark.parametrize(
    ("fun", "selects"),
    [
        (lambda x: x * (x > 0), True),
        (lambda x: (x > 0) * x, True),
        (lambda x: 2.0 * (x > 0), True),
        (lambda x: x * (x > 0)[0], False),
        (lambda x: x * (x > 0).astype(jnp.bfloat16), False),
        (lambda x: x * (x > 0).astype(jnp.int32), False),
    ],
)
def test_products_with_a_mask_of_their_shape_and_dtype_are_selects(fun, selects):
    x = np.array([np.inf, -np.inf, np.nan], np.float32)
    ops = ops_of(graph_of(fun, "xla", x))
    assert ("SelectV2" in ops) == selects
    assert ("Mul" in ops) != selects
    np.testing.assert_array_equal(jax2tf.convert(fun)(x), jax.jit(fun)(x))


def test_a_mask_is_converted_only_if_it_is_also_a_number():
    def with_mask(x):
        mask = (x > 0).astype(x.dtype)
        return x * mask, mask

    x = np.ones(3, np.float32)
    assert ops_in_order(graph_of(with_mask, "xla", x)).count("Cast") == 1
    assert "Cast" not in ops_of(graph_of(lambda x: with_mask(x)[0], "xla", x))


def _elementwise() -> dict[str, Harness]:
    """A harness of each primitive and kind of dtype."""
    harnesses = [h for h in all_harnesses() if h.family == "elementwise" and not h.x64]
    return {f"{h.primitive}-{h.dtype.kind}": h for h in harnesses}


@pytest.mark.parametrize("name", _elementwise())
def test_no_xla_op_without_enable_xla(name):
    harness = _elementwise()[name]
    args = [np.asarray(x) for x in harness.make_args()]
    ops = ops_of(graph_of(harness.fun, "tensorflow", *args))
    assert [op for op in ops if "Xla" in op] == []


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("extremum", [lax.max, lax.min])
def test_an_infinity_that_is_written_in_the_program(extremum, infinity):
    x = np.array([1, -2, np.inf, -np.inf, np.nan], np.float32)

    def function(x):
        return extremum(np.float32(infinity), x), extremum(x, np.full(5, infinity, np.float32))

    converted = tf.function(jax2tf.convert(function), autograph=False)
    for actual, expected in zip(converted(x), function(x), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", ["square", "neg", "power"])
def test_products_in_place_of_what_an_engine_does_not_quantise(name):
    fun = {"square": jnp.square, "neg": jnp.negative, "power": lambda x: x**4}[name]
    x = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3e38], np.float32)
    graph = graph_of(fun, "litert", x)
    assert op_types(graph.graph).keys().isdisjoint({"Square", "Neg"})
    actual, expected = graph(tf.constant(x)).numpy(), np.asarray(jax.jit(fun)(x))
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual)[:6], np.signbit(expected)[:6])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 - x.T,
        lambda x: 2 / x.T,
        lambda x: 1 + -x.T,
        lambda x: jnp.full((3, 2), 2.0) - x.T,
        lambda x: np.arange(6, dtype=np.float32).reshape(3, 2) - x.T,
        lambda x: np.arange(6, dtype=np.float32).reshape(3, 2) / x.T,
        lambda x: lax.integer_pow(x.T, -1),
        lambda x: 7 - x.astype(jnp.int32).T,
        lambda x: ~x.astype(jnp.int32).T,
    ],
)
def test_a_constant_before_a_transpose_has_another_shape_than_the_result(function):
    """LiteRT's converter exchanges the two otherwise; tests/consumers runs it."""
    x = np.float32([[1, 2, 4], [8, 3, 5]])
    graph = graph_of(function, "litert", x)
    np.testing.assert_array_equal(graph(tf.constant(x)).numpy(), np.asarray(function(x)))
    moved = [op for op in graph.graph.get_operations() if op.type in ("Sub", "RealDiv")]
    for op in moved:
        for operand in op.inputs:
            is_constant = operand.op.type in ("Const", "BroadcastTo", "Fill")
            assert not is_constant or operand.shape not in ([], [3, 2])


@pytest.mark.parametrize("target", ["litert", "tensorflow"])
@pytest.mark.parametrize("shape", [(2, 1), (1, 3), (1, 1), (4, 1, 3), (4, 2, 1)])
def test_a_constant_beside_an_array_that_is_repeated(target, shape):
    # An equation of JAX's repeats a dimension of size 1 by itself, as TensorFlow's ops do.
    whole = (*np.broadcast_shapes(shape, (4, 2, 3))[-len(shape) :],)
    constant = np.arange(np.prod(whole), dtype=np.float32).reshape(whole)

    def fun(x):
        return constant - x

    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    graph = graph_of(fun, target, x)
    np.testing.assert_array_equal(graph(tf.constant(x)), jax.jit(fun)(x))


@pytest.mark.parametrize("target", ["tensorflow", "litert", "onnx", "xla"])
@pytest.mark.parametrize(
    "function", [jnp.divide, jnp.subtract, jnp.floor_divide], ids=lambda f: f.__name__
)
def test_ones_beside_a_column_that_is_repeated(function, target):
    """The constant is one number in the graph: the column alone has not the result's shape."""
    x = np.array([[1], [2]], np.int32 if function is jnp.floor_divide else np.float32)

    def fun(x):
        return function(jnp.full((2, 3), 5, x.dtype), x)

    converted = jax2tf.convert(fun, target=target, with_gradient=False)
    result = tf.function(converted, autograph=False)(x)
    np.testing.assert_array_equal(result, jax.jit(fun)(x))


@pytest.mark.parametrize("target", ["litert", "tensorflow"])
def test_a_constant_beside_a_softmax_of_an_open_batch(target):
    constant = np.arange(3, dtype=np.float32)[None]

    def fun(x):
        return (constant - jnp.max(x, -1, keepdims=True)) * x

    converted = jax2tf.convert(fun, target=target, polymorphic_shapes="b, 3", with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.TensorSpec([None, 3]))
    for batch in (1, 4):
        x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
        np.testing.assert_array_equal(graph(tf.constant(x)), jax.jit(fun)(x))


_BELOW_ONE = np.float32([-0.9, -0.5, -1e-3, -1e-6, 0, 1e-5, 0.1, 0.3, 0.7, 0.99])
_ABOVE_ONE = np.float32([1, 1.001, 1.5, 2, 3, 10, 1e4])


@pytest.mark.parametrize(
    ("op", "x"),
    [
        *((op, _BELOW_ONE) for op in (lax.acos, lax.asin, lax.atanh, lax.log1p, lax.tan)),
        *((op, np.append(_BELOW_ONE, 3 * _BELOW_ONE)) for op in (lax.cosh, lax.sinh, lax.expm1)),
        *((op, np.append(_ABOVE_ONE, -_ABOVE_ONE)) for op in (lax.asinh, lax.atan)),
        (lax.acosh, _ABOVE_ONE),
    ],
)
def test_functions_that_an_engine_computes_by_others(op, x):
    converted = jax2tf.convert(op, target="litert", with_gradient=False)
    result = tf.function(converted, autograph=False)(tf.constant(x)).numpy()
    np.testing.assert_allclose(result, np.asarray(op(x)), rtol=8 * np.finfo(np.float32).eps)


# Of a bool's number: never below zero.
SIGNS_OF_BOOLS = {
    "less": lambda x: (x > 0).astype(jnp.int32) < 0,
    "at least": lambda x: (x > 0).astype(jnp.float32) >= 0,
    "larger": lambda x: lax.gt(jnp.float32(0), (x > 0).astype(jnp.float32)),
    "at most": lambda x: lax.le(np.int8(0), (x > 0).astype(jnp.int8)),
    "moved": lambda x: (x > 0).astype(jnp.int32).T[::-1].reshape(-1) < 0,
    "there and back": lambda x: (x > 0).astype(jnp.int32).astype(jnp.float32) < 0,
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("target", ["xla", "tensorflow", "litert"])
@pytest.mark.parametrize("name", SIGNS_OF_BOOLS)
def test_the_sign_of_a_number_that_was_a_bool_is_known(name, target, is_open):
    function = SIGNS_OF_BOOLS[name]
    converted = jax2tf.convert(
        function,
        target=target,
        with_gradient=False,
        polymorphic_shapes=["b, _"] if is_open else None,
    )
    x = np.array([[0.5, -1.0, 2.0], [0.0, np.nan, np.inf]], np.float32)
    spec = tf.TensorSpec([None if is_open else 2, 3], tf.float32)
    concrete = tf.function(converted, autograph=False).get_concrete_function(spec)
    compared = [op for op in concrete.graph.get_operations() if op.type in COMPARISONS]
    assert len([op for op in compared if op.outputs[0].shape.rank]) == 1
    np.testing.assert_array_equal(concrete(tf.constant(x)), jax.jit(function)(x), strict=True)


COMPARISONS = frozenset({"Greater", "GreaterEqual", "Less", "LessEqual"})


def test_other_comparisons_of_numbers_that_were_bools_stay():
    def function(x):
        number = (x > 0).astype(jnp.int32)
        return number < 1, number > 0, number - 1 < 0, -number < 0, lax.lt(0, number), number <= 0

    x = np.array([0.5, -1.0, 0.0, np.nan], np.float32)
    for target in ("xla", "tensorflow"):
        concrete = tf.function(jax2tf.convert(function, target=target), autograph=False)
        for actual, expected in zip(concrete(x), jax.jit(function)(x), strict=True):
            np.testing.assert_array_equal(actual, expected, strict=True)
