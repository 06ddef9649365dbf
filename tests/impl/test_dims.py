"""Polymorphic shapes: specs, solving, evaluation, checks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import dims
from tests.running import MODES, each_graph_mode


def unknown(*shape):
    return tf.TensorSpec(shape, tf.float32)


@each_graph_mode
@pytest.mark.parametrize(
    ("spec", "signature", "fun", "sizes"),
    [
        ("b, _", [(None, 3)], lambda x: x + 1, [(1, 3), (5, 3)]),
        ("(b, ...)", [(None, 3, 2)], lambda x: x * x.shape[0], [(2, 3, 2), (4, 3, 2)]),
        ("b, 2*b", [(None, None)], lambda x: jnp.reshape(x, (-1,)), [(2, 4), (3, 6)]),
        ("b, b", [(None, None)], lambda x: x @ x, [(2, 2), (3, 3)]),
        ("b", [(None,)], lambda x: jnp.zeros((2 * x.shape[0] + 1,)) + x[0], [(2,), (3,)]),
        ("b", [(None,)], lambda x: jnp.sum(x) / x.shape[0], [(2,), (3,)]),
        ("b", [(None,)], lambda x: jnp.concatenate([x, x]).reshape(x.shape[0], 2), [(2,), (3,)]),
        ("b", [(None,)], lambda x: jnp.arange(x.shape[0]) + x, [(2,), (3,)]),
    ],
)
def test_one_graph_serves_every_size(mode, spec, signature, fun, sizes):
    converted = jax2tf.convert(fun, polymorphic_shapes=spec)
    specs = [unknown(*s) for s in signature]
    graph = MODES[mode](converted, input_signature=specs)
    for shape in sizes:
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        expected = np.asarray(jax.jit(fun)(x))
        np.testing.assert_allclose(np.asarray(graph(x)), expected, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(converted(x)), expected, rtol=1e-5)
    assert graph.experimental_get_tracing_count() == 1


def test_sizes_share_a_trace():
    traces = []

    def fun(x):
        traces.append(x.shape)
        return x

    converted = jax2tf.convert(fun, polymorphic_shapes="b, _")
    for n in (1, 2, 3):
        assert converted(np.ones((n, 3), np.float32)).shape == (n, 3)
    assert [str(t) for t in traces] == ["(b, 3)"]


def test_known_dimensions_stay_known():
    converted = jax2tf.convert(lambda x: jnp.tanh(x) @ jnp.ones((3, 4)), polymorphic_shapes="b, _")
    graph = tf.function(converted, autograph=False).get_concrete_function(unknown(None, 3))
    assert graph.output_shapes.as_list() == [None, 4]


@pytest.mark.parametrize(
    ("shapes", "sizes", "values"),
    [
        (["a, b"], [(2, 3)], {"a": 2, "b": 3}),
        (["a + b, a - b"], [(8, 2)], {"a": 5, "b": 3}),
        (["2*a + 3*b", "a + b"], [(12,), (5,)], {"a": 3, "b": 2}),
        (["a*b", "a"], [(6,), (2,)], {"a": 2, "b": 3}),
        (["floordiv(a, 2)", "a"], [(2,), (5,)], {"a": 5}),
        (["3*a + 2"], [(14,)], {"a": 4}),
        (["max(a, 3), a"], [(3, 2)], {"a": 2}),
        (["b1, 2*n_0 + b1"], [(3, 7)], {"b1": 3, "n_0": 2}),
        # A size that is 1 with a factor that is -1.
        (["a - b", "a"], [(1,), (4,)], {"a": 4, "b": 3}),
    ],
)
def test_variables_are_solved(shapes, sizes, values):
    scope = jax.export.SymbolicScope()
    symbolic = [jax.export.symbolic_shape(s, scope=scope) for s in shapes]
    solution = dims.solve(symbolic, [tf.zeros(s) for s in sizes], str)
    assert solution.values == values
    assert dims.check(solution, dims.Assumptions()) == []


class TestRefused:
    """The argument, the spec, the shape and what to do are named."""

    def test_unsolvable(self):
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes="mod(a, 3)")
        with pytest.raises(ValueError, match=r"cannot solve dimension variable a .*argument x\."):
            converted(np.ones(2))

    def test_no_whole_solution(self):
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes="2*a + 1")
        with pytest.raises(ValueError, match=r"argument x.shape\[0\]"):
            converted(np.ones(4))

    def test_unequal(self):
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes="b, b")
        with pytest.raises(ValueError, match=r"x.shape\[1\] should be b.*b = 4"):
            converted(np.ones((4, 5)))

    def test_empty(self):
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes="b")
        with pytest.raises(ValueError, match="variable b should be at least 1: 0 >= 1 is false"):
            converted(np.ones(0))

    def test_a_constraint(self):
        converted = jax2tf.convert(
            lambda x: x, polymorphic_shapes="b", polymorphic_constraints=["b >= 8"]
        )
        assert converted(np.ones(8)).shape == 8
        with pytest.raises(ValueError, match="constraint b >= 8 does not hold: 7 >= 8 is false"):
            converted(np.ones(7))

    @pytest.mark.parametrize(
        ("constraint", "size", "words"),
        [
            ("b >= 8", 7, "b >= 8"),
            ("mod(b, 4) == 0", 6, r"mod\(b, 4\) == 0"),
            ("b <= 3", 4, "b <= 3"),
        ],
    )
    def test_in_a_graph_when_it_runs(self, constraint, size, words):
        converted = jax2tf.convert(
            lambda x: x * 2, polymorphic_shapes="b", polymorphic_constraints=[constraint]
        )
        graph = tf.function(converted, autograph=False, input_signature=[unknown(None)])
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            graph(np.ones(size, np.float32))

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ("b", "has 1 dimensions, but the argument has shape"),
            ("b, 4", "does not fit its shape"),
            ("b, _, c", "does not fit its shape|has 3 dimensions"),
            ("b, B*", "does not fit its shape"),
        ],
    )
    def test_a_spec_that_does_not_fit(self, spec, words):
        with pytest.raises(ValueError, match=words) as error:
            jax2tf.convert(lambda x: x, polymorphic_shapes=spec)(np.ones((2, 3)))
        assert "argument x:" in str(error.value)
        assert repr(spec) in str(error.value)

    def test_an_unknown_placeholder(self):
        converted = tf.function(jax2tf.convert(lambda x: x, polymorphic_shapes="_, 3"))
        with pytest.raises(ValueError, match="does not fit its shape"):
            converted.get_concrete_function(unknown(None, 3))

    def test_unknown_rank(self):
        converted = tf.function(jax2tf.convert(lambda x: x, polymorphic_shapes="b, ..."))
        with pytest.raises(ValueError, match="its rank is unknown"):
            converted.get_concrete_function(tf.TensorSpec(None))

    def test_a_tree_of_specs_that_is_no_prefix(self):
        converted = jax2tf.convert(lambda x, y: x, polymorphic_shapes=["b, ..."])
        with pytest.raises(
            ValueError,
            match=r"polymorphic_shapes has 1 specs, and 2 arguments came by position \(of x, y\)",
        ):
            converted(np.ones(2), np.ones(2))


def test_a_prefix_of_specs():
    def fun(tree, y):
        return {"sum": tree["a"] + tree["b"] + y}

    converted = jax2tf.convert(fun, polymorphic_shapes=["b, _", jax2tf.PolyShape("b", None)])
    tree = {"a": np.ones((2, 3)), "b": np.ones((2, 3))}
    assert converted(tree, np.ones((2, 3)))["sum"].shape == (2, 3)


def test_gradients_of_a_polymorphic_function():
    def fun(x):
        return jnp.sum(jnp.sin(x)) / x.shape[0]

    converted = jax2tf.convert(fun, polymorphic_shapes="b, _")

    @tf.function(autograph=False, input_signature=[unknown(None, 2)])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    for n in (1, 3):
        x = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
        np.testing.assert_allclose(gradient(x), jax.grad(fun)(x), rtol=1e-5)


def test_shapes_that_tensorflow_cannot_tell_apart():
    def two_draws(key, scale):
        few = jax.random.gamma(key, scale)
        return few, jax.random.gamma(key, jnp.concatenate([scale, scale]))

    converted = tf.function(
        jax2tf.convert(two_draws, polymorphic_shapes=("...", "b")),
        input_signature=[tf.TensorSpec([2], tf.uint32), tf.TensorSpec([None])],
        autograph=False,
    )
    for size in (1, 3):
        args = np.array([0, size], "uint32"), np.full(size, 1.5, "float32")
        for actual, expected in zip(converted(*args), jax.jit(two_draws)(*args), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda key, x: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0),
        lambda key, x: x + jax.random.normal(key, x.shape),
        lambda key, x: jax.vmap(jax.random.bits)(jax.random.split(key, x.shape[0])),
    ],
    ids=["dropout", "noise", "split"],
)
def test_random_numbers_of_polymorphic_shapes(draw, impl, enable_xla):
    def fun(data, x):
        return draw(jax.random.wrap_key_data(data, impl=impl), x)

    data = np.asarray(jax.random.key_data(jax.random.key(5, impl=impl)))
    converted = tf.function(
        jax2tf.convert(fun, polymorphic_shapes=(None, "b, _"), enable_xla=enable_xla),
        input_signature=[tf.TensorSpec(data.shape, tf.uint32), tf.TensorSpec([None, 3])],
        autograph=False,
    )
    for size in (1, 4):
        x = np.full((size, 3), 0.5, "float32")
        np.testing.assert_allclose(converted(data, x), jax.jit(fun)(data, x), rtol=1e-6)


@pytest.mark.parametrize("enable_xla", [True, False])
@each_graph_mode
@pytest.mark.parametrize(
    ("strides", "padding", "dilations"),
    [(1, "VALID", (1, 1)), (2, "VALID", (1, 2)), (2, [(1, -1)], (2, 1)), (1, "SAME", (1, 1))],
)
def test_a_convolution_of_what_no_window_fits_is_empty(
    strides, padding, dilations, mode, enable_xla
):
    def fun(x):
        return jax.lax.conv_general_dilated(
            x,
            jnp.arange(1.0, 4.0).reshape(3, 1, 1),
            (strides,),
            padding,
            lhs_dilation=dilations[:1],
            rhs_dilation=dilations[1:],
            dimension_numbers=("NWC", "WIO", "NWC"),
        )

    assert_right_for_narrow_inputs(fun, mode, enable_xla)


@pytest.mark.parametrize("enable_xla", [True, False])
@each_graph_mode
@pytest.mark.parametrize(("start", "reduce"), [(0.0, jax.lax.add), (-np.inf, jax.lax.max)])
@pytest.mark.parametrize("strides", [1, 2])
def test_a_pooling_of_what_no_window_fits_is_empty(strides, start, reduce, mode, enable_xla):
    def fun(x):
        return jax.lax.reduce_window(x, start, reduce, (1, 3, 1), (1, strides, 1), "VALID")

    assert_right_for_narrow_inputs(fun, mode, enable_xla)


@pytest.mark.parametrize("enable_xla", [True, False])
@each_graph_mode
@pytest.mark.parametrize("window", [(1, 1, 1, 2), (1, 3, 1, 1), (1, 1, 2, 2), (1, 2, 3, 1)])
def test_a_pooling_of_four_dimensions_may_be_empty(window, mode, enable_xla):
    def fun(x):
        x = jnp.broadcast_to(x, (1, 2, *x.shape))
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, (1, 1, 1, 1), "VALID")

    converted = jax2tf.convert(fun, polymorphic_shapes="b, w", enable_xla=enable_xla)
    converted = MODES[mode](converted, input_signature=[unknown(None, None)])
    for shape in ((2, 1), (1, 2), (2, 2), (3, 4)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(converted(x), jax.jit(fun)(x), strict=True)


SCANS = {
    "forward": lambda x: jax.lax.scan(lambda c, r: (c + r, c), jnp.zeros(x.shape[1]), x[1:]),
    "reverse": lambda x: jax.lax.scan(
        lambda c, r: (c + r, (c, r.sum())), jnp.zeros(x.shape[1]), x[1:], reverse=True
    ),
    "narrow": lambda x: jax.lax.map(lambda r: r * 2, x[1:, 1:]),
    "keys": lambda x: jax.lax.map(
        lambda r: jax.random.split(jax.random.key(r[0].astype(int)), x.shape[1]), x[1:]
    ),
    "gradient": lambda x: jax.grad(
        lambda v: jax.lax.scan(lambda c, r: (jnp.sin(c) * r, c), v[0], v[1:])[1].sum() + v.sum()
    )(x),
}


@pytest.mark.parametrize("enable_xla", [True, False])
@each_graph_mode
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_may_turn_out_to_have_no_steps(name, mode, enable_xla):
    def fun(x):
        result = SCANS[name](x)
        return jax.random.key_data(result) if name == "keys" else result

    converted = jax2tf.convert(fun, polymorphic_shapes="m, n", enable_xla=enable_xla)
    converted = MODES[mode](converted, input_signature=[unknown(None, None)])
    for shape in ((1, 2), (2, 1), (1, 1), (3, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        expected = jax.tree.leaves(jax.jit(fun)(x))
        for a, e in zip(jax.tree.leaves(converted(x)), expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-6, strict=True)


def assert_right_for_narrow_inputs(fun, mode, enable_xla):
    converted = jax2tf.convert(fun, polymorphic_shapes="b, w, _", enable_xla=enable_xla)
    signature = [unknown(None, None, 1)]
    graph = MODES[mode](converted, input_signature=signature)
    for width in (1, 2, 3, 6):
        x = np.arange(2 * width, dtype=np.float32).reshape(2, width, 1)
        for function in (graph, converted):
            actual, expected = np.asarray(function(x)), np.asarray(jax.jit(fun)(x))
            np.testing.assert_allclose(actual, expected, strict=True)
