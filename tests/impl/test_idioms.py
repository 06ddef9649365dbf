"""What JAX's own functions look like is found in a program, and becomes one op of an engine."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import op_types
from jax2tf._src.export.onnx import engine as onnx
from jax2tf._src.lowering.passes import idioms
from tests.running import assert_near

# An engine that has them all.
EVERY = jax2tf.Target("every", idioms=idioms.NAMES - {"dynamic_update_slice", "masked_softmax"})
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(3, 4)) * 3).astype(np.float32)


def _softmax_by_hand(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _layer_norm_by_root(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _guarded_layer_norm(x):
    """As equinox.nn.LayerNorm computes it."""
    variance = jnp.maximum(0.0, x.var(keepdims=True))
    return (x - x.mean(keepdims=True)) * jax.lax.rsqrt(variance + 1e-5)


def _flax_layer_norm(scale, expanded):
    """As flax.linen.LayerNorm and flax.nnx.LayerNorm compute it."""

    def function(x):
        mean, mean_of_squares = x.mean(-1), jax.lax.square(x).mean(-1)
        variance = jnp.maximum(0.0, mean_of_squares - jax.lax.square(mean))
        centered = x - expanded(mean)
        factor = jax.lax.rsqrt(expanded(variance) + 1e-6)
        if scale is not None:
            factor = factor * scale.reshape((1,) * (x.ndim - 1) + (-1,))
        return centered * factor

    return function


SCALE = jnp.array([0.5, -1.0, 2.0, 3.0], jnp.float32)


# Each idiom in the ways in which users write it, and the op that tells that it was found.
FOUND = {
    "relu": (jax.nn.relu, "Relu"),
    "relu as a maximum": (lambda x: jnp.maximum(0, x), "Relu"),
    "relu6": (jax.nn.relu6, "Relu6"),
    "relu6 as a clip": (lambda x: jnp.clip(x, 0, 6), "Relu6"),
    "leaky_relu": (lambda x: jax.nn.leaky_relu(x, 0.3), "LeakyRelu"),
    "elu": (jax.nn.elu, "Elu"),
    "hard_swish": (jax.nn.hard_swish, "Relu6"),
    "gelu": (jax.nn.gelu, "Tanh"),
    "gelu, exact": (lambda x: jax.nn.gelu(x, approximate=False), "Erf"),
    "gelu by hand": (lambda x: x * 0.5 * (1 + jax.lax.erf(x / math.sqrt(2))), "Erf"),
    "softmax": (jax.nn.softmax, "Softmax"),
    "softmax by hand": (_softmax_by_hand, "Softmax"),
    "softmax, jitted": (jax.jit(lambda x: jax.nn.softmax(x, axis=-1)), "Softmax"),
    "log_softmax": (jax.nn.log_softmax, "LogSoftmax"),
    "mean": (lambda x: jnp.mean(x, 0), "Mean"),
    "mean, dimensions kept": (lambda x: x.mean((0, 1), keepdims=True), "Mean"),
    "variance": (lambda x: x.var(-1, keepdims=True), "SquaredDifference"),
    "layer_norm": (_layer_norm, "Pow"),
    "layer_norm by a root": (_layer_norm_by_root, "Pow"),
    "layer_norm of flax.linen": (
        _flax_layer_norm(SCALE, lambda x: jnp.expand_dims(x, -1)),
        "Pow",
    ),
    "layer_norm of flax.nnx": (_flax_layer_norm(SCALE, lambda x: x.reshape(*x.shape, 1)), "Pow"),
    "layer_norm without scale": (_flax_layer_norm(None, lambda x: x[..., None]), "Pow"),
    "layer_norm of equinox": (jax.vmap(_guarded_layer_norm), "Pow"),
    "layer_norm of each row": (
        lambda x: jax.vmap(jax.vmap(_guarded_layer_norm))(x[None])[0],
        "Pow",
    ),
    "variance of each row": (jax.vmap(lambda x: x.var(keepdims=True)), "SquaredDifference"),
    "one_hot": (lambda x: jax.nn.one_hot(jnp.argmax(x, -1), 5), "OneHot"),
    "erf": (jax.lax.erf, "Erf"),
    "quotient": (lambda x: x / 3.0, "Mul"),
}


def _graph(fun, *args, **options):
    options.setdefault("target", EVERY)
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in args]
    converted = jax2tf.convert(fun, with_gradient=False, **options)
    return tf.function(converted, autograph=False).get_concrete_function(*specs)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found(name):
    fun, op = FOUND[name]
    graph = _graph(fun, X)
    assert_near(graph(tf.constant(X)), jax.jit(fun)(X))
    assert op_types(graph.graph)[op] == 1
    without = _graph(fun, X, target=EVERY.without_idioms())
    assert without.graph.as_graph_def().node[0].op == "Placeholder"
    assert sum(op_types(graph.graph).values()) < sum(op_types(without.graph).values()) or (
        # As many nodes, in the order that converters look for; of a OneHot three are constants.
        name in ("gelu", "hard_swish", "one_hot", "quotient")
    )


# One_hot gives floats of another shape than it takes.
@pytest.mark.parametrize("name", [name for name in FOUND if name != "one_hot"])
def test_it_is_found_in_each_of_two_layers(name):
    fun, op = FOUND[name]
    inner = jax.jit(lambda x: jnp.tanh(fun(x) * 0.5) + jnp.zeros_like(x))
    graph = _graph(lambda x: inner(inner(x)), X)
    assert_near(graph(tf.constant(X)), jax.jit(lambda x: inner(inner(x)))(X))
    # One function that is called twice, and has a Tanh and a Mul besides.
    assert op_types(graph.graph)[op] - (op in ("Tanh", "Mul")) == 1


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found_in_a_loop(name):
    fun, op = FOUND[name]

    def loop(x):
        return jax.lax.scan(lambda c, row: (c + 1, fun(row + c)), jnp.zeros(()), x[None])[1]

    graph = _graph(loop, X)
    assert_near(graph(tf.constant(X)), jax.jit(loop)(X))
    assert op_types(graph.graph)[op] == 1


@pytest.mark.parametrize("name", FOUND)
def test_any_batch(name):
    fun, op = FOUND[name]
    converted = jax2tf.convert(fun, target=EVERY, polymorphic_shapes="b, _", with_gradient=False)
    function = tf.function(converted, autograph=False)
    graph = function.get_concrete_function(tf.TensorSpec([None, 4], tf.float32))
    assert op_types(graph.graph)[op] == 1
    for batch in (1, 3):
        assert_near(graph(tf.constant(X[:batch])), jax.jit(fun)(X[:batch]))


@pytest.mark.parametrize("name", FOUND)
def test_no_elements(name):
    fun, _ = FOUND[name]
    none = X[:, :, None][..., :0]
    if "softmax" in name or "one_hot" in name or "flax" in name:
        none = X[:0]
    expected = jax.jit(fun)(none)
    assert_near(_graph(fun, none)(tf.constant(none)), expected)


@pytest.mark.parametrize("name", FOUND)
def test_gradients_are_those_of_jax(name):
    fun, _ = FOUND[name]
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(jax2tf.convert(fun, target=EVERY), autograph=False)(x)
    if name == "one_hot":
        assert not np.any(tape.gradient(y, x, unconnected_gradients="zero"))
        return
    assert_near(tape.gradient(y, x), jax.grad(lambda x: fun(x).sum())(X), least=1)


class TestWhatIsAnotherThing:
    def _is_not_found(self, fun, op, *args, ulps=16):
        args = args or (X,)
        graph = _graph(fun, *args)
        assert op_types(graph.graph)[op] == 0
        assert_near(graph(*map(tf.constant, args)), jax.jit(fun)(*args), ulps=ulps)

    def test_another_function_of_the_name(self):
        @jax.jit
        def softmax(x):
            e = jnp.exp(x - x.min(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        self._is_not_found(softmax, "Softmax")

    def test_another_axis(self):
        self._is_not_found(lambda x: jax.nn.softmax(x, axis=0), "Softmax")

    def test_two_operands_where_there_is_one(self):
        def mixed(x, y):
            e = jnp.exp(x - y.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        self._is_not_found(mixed, "Softmax", X, X[::-1].copy())

    @pytest.mark.parametrize(
        ("fun", "op"),
        [
            (lambda x: jnp.maximum(x, 1e-3), "Relu"),
            (lambda x: jnp.clip(x, 0, 5), "Relu6"),
            (lambda x: jax.nn.elu(x, alpha=0.5), "Elu"),
            (lambda x: jnp.where(x > 0, x, 0.1 * x), "LeakyRelu"),
            (lambda x: x.sum(-1) / 3, "Mean"),
            (lambda x: x.var(-1, ddof=1), "SquaredDifference"),
        ],
        ids=["relu", "relu6", "elu", "leaky_relu", "mean", "variance"],
    )
    def test_another_number(self, fun, op):
        self._is_not_found(fun, op)

    def test_a_slope_that_is_an_argument(self):
        slope = np.float32(0.2)
        self._is_not_found(lambda x, a: jax.nn.leaky_relu(x, a), "LeakyRelu", X, slope)

    def test_a_dtype_of_which_engines_have_no_op(self):
        self._is_not_found(jax.nn.softmax, "Softmax", X.astype(np.float16))

    def test_a_part_of_it_is_read(self):
        """The op would be computed beside what others read."""

        def both(x):
            e = jnp.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True), e

        self._is_not_found(both, "Softmax")

    def test_a_side_effect_within(self):
        seen = []

        def told(x):
            e = jnp.exp(x - x.max(-1, keepdims=True))
            jax.debug.callback(seen.append, e[0, 0])
            return e / e.sum(-1, keepdims=True)

        self._is_not_found(told, "Softmax")
        assert len(seen) == 2  # in TensorFlow and in JAX


MASKS = {
    "causal": np.tri(4, dtype=bool),
    "of rows": np.array([True, True, False, True]),
    "of a batch": np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)[:, None, None],
    "of all": RNG.random((2, 3, 4, 4)) > 0.3,
}
FORMS = {
    "by where": lambda x, mask: jnp.where(mask, x, -1e9),
    "by the least number": lambda x, mask: jnp.where(mask, x, jnp.finfo(x.dtype).min),
    "by infinity": lambda x, mask: jnp.where(mask, x, -jnp.inf),
    "hidden": lambda x, mask: jnp.where(~mask, -1e9, x),
    "by a sum": lambda x, mask: x + jnp.where(mask, 0.0, -1e9),
    "hidden by a sum": lambda x, mask: x + jnp.where(~mask, -1e9, 0.0),
}


class TestMasksOfAttention:
    """For integers of 8 bits, what a mask hides is a little below the least score."""

    scores = (RNG.normal(size=(2, 3, 4, 4)) * 3).astype(np.float32)

    @pytest.mark.parametrize("by_hand", [False, True])
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("mask", MASKS)
    def test_no_number_is_far_from_the_scores(self, mask, form, by_hand):
        softmax = _softmax_by_hand if by_hand else jax.nn.softmax

        def shares(x, mask):
            return softmax(FORMS[form](x, mask))

        args = self.scores, MASKS[mask]
        graph = _graph(shares, *args, target=jax2tf.TARGETS["litert"].for_integers())
        assert op_types(graph.graph)["Softmax"] == 1
        constants = [op for op in graph.graph.get_operations() if op.type == "Const"]
        numbers = [tf.make_ndarray(op.get_attr("value")) for op in constants]
        assert max(np.abs(n).max(initial=0) for n in numbers if n.dtype == np.float32) == 8
        # Less than half a step of integers from 0 to 255.
        expected = np.asarray(jax.jit(shares)(*args))
        actual = graph(*map(tf.constant, args)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0.5 / 256)

    @pytest.mark.parametrize("fun", [jnp.where, lambda mask, x, f: x + jnp.where(mask, 0.0, f)])
    def test_a_number_that_is_near_stays(self, fun):
        def shares(x, mask):
            return jax.nn.softmax(fun(mask, x, -2.0))

        args = self.scores, MASKS["causal"]
        graph = _graph(shares, *args, target=jax2tf.TARGETS["litert"].for_integers())
        assert op_types(graph.graph)["Min"] == 0
        assert_near(graph(*map(tf.constant, args)), jax.jit(shares)(*args))

    def test_it_is_for_integers_alone(self):
        args = self.scores, MASKS["causal"]
        for options in ({"target": "litert"}, {"target": "litert", "assume_finite": True}):
            shares = lambda x, mask: jax.nn.softmax(jnp.where(mask, x, -1e9))  # noqa: E731
            graph = _graph(shares, *args, **options)
            assert op_types(graph.graph)["Min"] == 0
            assert_near(graph(*map(tf.constant, args)), jax.jit(shares)(*args))

    def test_any_batch_and_length(self):
        def shares(x):
            places = jnp.arange(x.shape[-1])
            return jax.nn.softmax(jnp.where(places[:, None] >= places, x, -1e9))

        target = jax2tf.TARGETS["litert"].for_integers()
        converted = jax2tf.convert(
            shares, target=target, polymorphic_shapes="b, _, l, l", with_gradient=False
        )
        function = tf.function(converted, autograph=False)
        graph = function.get_concrete_function(tf.TensorSpec([None, 3, None, None]))
        assert op_types(graph.graph)["Min"] == 1
        for x in (self.scores, self.scores[:1, :, :2, :2]):
            np.testing.assert_allclose(graph(tf.constant(x)), jax.jit(shares)(x), atol=0.5 / 256)


def test_slices_are_updated_in_one_op():
    def update(cache, row, i):
        return jax.lax.dynamic_update_slice(cache, row[None], (i, jnp.int32(0)))

    cache, row = np.zeros((5, 4), np.float32), X[0]
    for start in (0, 3, 7, -1):
        args = cache, row, np.int32(start)
        graph = _graph(update, *args, target="litert")
        assert op_types(graph.graph)["XlaDynamicUpdateSlice"] == 1
        assert_near(graph(*map(tf.constant, args)), jax.jit(update)(*args))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int64])
def test_slices_begin_at_indices_of_any_dtype(dtype):
    def update(cache, row, i):
        return jax.lax.dynamic_update_slice(cache, row[None], (i, i.dtype.type(0)))

    with jax.enable_x64(True):
        for start in (0, 3, np.iinfo(dtype).max):
            args = np.zeros((5, 4), np.float32), X[0], dtype(start)
            graph = _graph(update, *args, target="litert")
            assert_near(graph(*map(tf.constant, args)), jax.jit(update)(*args))


class TestParametersOfChannels:
    mean, scale, offset = (RNG.normal(size=4).astype(np.float32) for _ in range(3))

    def _counts(self, fun, *args):
        graphs = [_graph(fun, *args, target=t) for t in (EVERY, EVERY.without_idioms())]
        for graph in graphs:
            assert_near(graph(*map(tf.constant, args)), jax.jit(fun)(*args), least=1)
        return [op_types(graph.graph) for graph in graphs]

    def test_a_column_is_none(self):
        column = RNG.normal(size=(3, 1)).astype(np.float32)
        found, without = self._counts(lambda x: x + column, X)
        assert found == without

    @pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3, 4)])
    def test_batch_norm_is_a_product_and_a_sum(self, shape):
        x = np.resize(X, shape)

        def batch_norm(x, mean, scale, offset):
            return (x - mean) * scale + offset

        args = (self.mean, self.scale, self.offset)
        parameters = [p.reshape((1,) * (len(shape) - 1) + (4,)) for p in args]
        graph = _graph(batch_norm, x, *parameters)
        ops = [
            op for op in graph.graph.get_operations() if x.shape in [o.shape for o in op.outputs]
        ]
        assert [op.type for op in ops if op.type not in ("Placeholder", "Identity")] == [
            "Mul",
            "AddV2",
        ]
        expected = jax.jit(batch_norm)(x, *parameters)
        assert_near(graph(*map(tf.constant, (x, *parameters))), expected, least=1)

    @pytest.mark.parametrize(
        "batch_norm",
        [
            lambda x, m, v, s, b: (x - m) * jax.lax.rsqrt(v + 1e-3) * s + b,
            lambda x, m, v, s, b: b + s * ((x - m) * jax.lax.rsqrt(v + 1e-3)),
            lambda x, m, v, s, b: (x - m) / jnp.sqrt(v + 1e-3) * s + b,
            lambda x, m, v, s, b: (x - m) * (jax.lax.rsqrt(v + 1e-3) * s) + b,
        ],
        ids=["factor", "factor first", "root", "one factor"],
    )
    def test_batch_norm_by_statistics(self, batch_norm):
        """What is computed of channels alone becomes constants, whatever their order."""
        images = RNG.normal(size=(2, 3, 3, 4)).astype(np.float32)
        given = (self.mean, np.square(self.scale), self.scale, self.offset)
        graph = _graph(lambda x: batch_norm(x, *given), images)
        ops = [
            op.type
            for op in graph.graph.get_operations()
            if images.shape in [o.shape for o in op.outputs]
        ]
        assert [op for op in ops if op not in ("Placeholder", "Identity")] == ["Mul", "AddV2"]
        expected = jax.jit(lambda x: batch_norm(x, *given))(images)
        assert_near(graph(tf.constant(images)), expected, least=1)

    def test_statistics_of_each_row_are_none(self):
        """They would have to be computed for each row twice."""
        rows = [RNG.normal(size=(3, 1)).astype(np.float32) for _ in range(3)]
        found, without = self._counts(lambda x, m, s, b: (x - m) * s + b, X, *rows)
        assert found == without


class TestImagesThatGrow:
    images = RNG.normal(size=(2, 4, 6, 3)).astype(np.float32)

    @staticmethod
    def _resized(*sizes, method="bilinear", **options):
        def fun(x):
            shape = (x.shape[0], *sizes, x.shape[-1])
            return jax.image.resize(x, shape, method, **options)

        return fun

    @pytest.mark.parametrize("sizes", [(8, 12), (5, 7), (8, 9), (12, 7)])
    @pytest.mark.parametrize("options", [{}, {"antialias": False}], ids=["", "aliased"])
    def test_bilinear(self, sizes, options):
        fun = self._resized(*sizes, **options)
        graph = _graph(fun, self.images)
        assert op_types(graph.graph)["ResizeBilinear"] == 1
        assert not op_types(graph.graph).keys() & {"MatMul", "BatchMatMulV2", "Einsum"}
        assert_near(graph(tf.constant(self.images)), jax.jit(fun)(self.images), least=1)

    def test_nearest(self):
        fun = self._resized(12, 12, method="nearest")
        graph = _graph(fun, self.images)
        assert op_types(graph.graph)["ResizeNearestNeighbor"] == 1
        assert_near(graph(tf.constant(self.images)), jax.jit(fun)(self.images))

    @pytest.mark.parametrize("method", ["bilinear", "nearest"])
    def test_any_batch_and_gradients(self, method):
        fun = self._resized(8, 12, method=method)
        converted = jax2tf.convert(fun, target=EVERY, polymorphic_shapes="b, ...")
        function = tf.function(converted, autograph=False)
        spec = tf.TensorSpec([None, *self.images.shape[1:]], tf.float32)
        assert any("Resize" in op for op in op_types(function.get_concrete_function(spec).graph))
        for batch in (1, 2):
            images = tf.constant(self.images[:batch])
            with tf.GradientTape() as tape:
                tape.watch(images)
                result = function(images)
            assert_near(result, jax.jit(fun)(self.images[:batch]), least=1)
            gradient = jax.grad(lambda x: fun(x).sum())(self.images[:batch])
            assert_near(tape.gradient(result, images), gradient, least=1)

    @pytest.mark.parametrize(
        "fun",
        [
            _resized(2, 3),
            _resized(8, 3),
            _resized(4, 12),
            _resized(8, 12, method="cubic"),
            _resized(5, 7, method="nearest"),
            _resized(2, 3, method="nearest"),
        ],
        ids=["smaller", "lower", "wider", "cubic", "nearest, no multiple", "nearest, smaller"],
    )
    def test_others_are_not_found(self, fun):
        graph = _graph(fun, self.images)
        assert not any("Resize" in op for op in op_types(graph.graph))
        assert_near(graph(tf.constant(self.images)), jax.jit(fun)(self.images), least=1)

    @pytest.mark.parametrize("method", ["bilinear", "cubic", "lanczos3", "lanczos5"])
    @pytest.mark.parametrize("sizes", [(8, 12), (5, 7), (2, 3), (3, 9)])
    @pytest.mark.parametrize("options", [{}, {"antialias": False}], ids=["", "aliased"])
    def test_two_products(self, method, sizes, options):
        fun = self._resized(*sizes, method=method, **options)
        graph = _graph(fun, self.images, target="onnx")
        assert op_types(graph.graph)["BatchMatMulV2"] == 2
        assert op_types(graph.graph)["Reshape"] == 0
        assert_near(graph(tf.constant(self.images)), jax.jit(fun)(self.images), least=1)

    @pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
    def test_products_spread_what_is_not_finite(self, number):
        images = self.images.copy()
        images[0, 1, 2, 0] = number
        fun = self._resized(8, 12)
        graph = _graph(fun, images, target="onnx")
        assert op_types(graph.graph)["BatchMatMulV2"] == 2
        assert_near(graph(tf.constant(images)), jax.jit(fun)(images), least=1)

    @pytest.mark.parametrize(
        ("fun", "shape"),
        [(_resized(8, 6), (2, 4, 6, 3)), (_resized(8, 12), (2, 4, 6, 1))],
        ids=["one size alone", "one channel"],
    )
    def test_what_products_leave_alone(self, fun, shape):
        images = np.resize(self.images, shape)
        graph = _graph(fun, images, target="onnx")
        assert op_types(graph.graph)["BatchMatMulV2"] < 2
        assert_near(graph(tf.constant(images)), jax.jit(fun)(images), least=1)

    def test_engines_spread_no_nan(self):
        """A product with a NaN is one, so that the op stands in where numbers are finite alone."""
        fun = self._resized(8, 12)
        for finite, found in ((False, 0), (True, 1)):
            graph = _graph(fun, self.images, target="litert", assume_finite=finite)
            assert op_types(graph.graph)["ResizeBilinear"] == found


def test_kernels_are_flipped_at_conversion():
    """An engine that folds no constants would flip them in each call."""
    kernel = RNG.normal(size=(2, 2, 3, 3)).astype(np.float32)
    images = RNG.normal(size=(1, 4, 4, 3)).astype(np.float32)

    def up(x):
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=layout)

    graph = _graph(up, images, target="openvino")
    assert op_types(graph.graph)["ReverseV2"] == 0
    assert_near(graph(tf.constant(images)), jax.jit(up)(images), least=1)


def test_every_idiom_has_a_target_and_a_test():
    of_targets = {
        name
        for target in jax2tf.TARGETS.values()
        for name in target.idioms | target.finite_idioms | target.integer_idioms
    }
    # jax2tf.export gives ONNX the LSTM.
    assert of_targets | onnx.TARGET.finite_idioms == idioms.NAMES - {"finite"}
    tested = {name.split(",")[0].split(" ")[0] for name in FOUND}
    elsewhere = {
        "dynamic_update_slice",
        "batch_norm",
        "resize",
        "resize_by_products",
        "resize_nearest",
        "masked_softmax",
    }
    assert tested == of_targets - elsewhere


@pytest.mark.parametrize(
    "names",
    [
        ("gelu, exact", "gelu by hand"),
        ("softmax", "softmax by hand"),
        ("relu", "relu as a maximum"),
        ("relu6", "relu6 as a clip"),
        ("layer_norm", "layer_norm by a root"),
    ],
)
def test_one_thing_written_in_two_ways_becomes_the_same_ops(names):
    first, second = (op_types(_graph(FOUND[name][0], X).graph) for name in names)
    assert first == second


@pytest.mark.parametrize("name", ["gelu, exact", "gelu by hand"])
def test_gelu_is_found_where_erf_alone_is_not(name):
    graph = _graph(FOUND[name][0], X, target=EVERY.without_idioms("erf"))
    # As tf.nn.gelu is written.
    assert op_types(graph.graph)["Erfc"] == 1


def test_it_is_found_behind_a_broadcast_to_the_same_shape():
    def broadcast(x):
        # As a rule of vmap may write it; lax.broadcast_in_dim leaves it out.
        dimensions = tuple(range(x.ndim))
        return jax.lax.broadcast_in_dim_p.bind(
            x, shape=x.shape, broadcast_dimensions=dimensions, sharding=None
        )

    def function(x):
        powers = jnp.exp(x - broadcast(x.max(-1, keepdims=True)))
        return broadcast(powers) / powers.sum(-1, keepdims=True)

    graph = _graph(function, X)
    assert_near(graph(tf.constant(X)), function(X))
    assert op_types(graph.graph)["Softmax"] == 1
