"""Gradients over axes of unknown size, where JAX's own rules ask for numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from tests.running import LOWERINGS, MODES, assert_near, each_graph_mode, each_lowering


def gradient_graph(
    fun: Callable[..., Any], lowering: str, mode: str, *signature: tf.TensorSpec, **options: Any
) -> Callable[..., Any]:
    """The gradients of a scalar function by a tape, as one graph of every size."""
    converted = jax2tf.convert(fun, enable_xla=LOWERINGS[lowering], **options)

    def gradients(*args: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = converted(*args)
        return tape.gradient(y, args)

    return MODES[mode](gradients).get_concrete_function(*signature)


def assert_gradient(
    fun: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    mode: str = "graph",
    lowering: str = "xla",
    spec: str = "n, m",
    ulps: float = 32,
) -> None:
    """The gradient of the sum of squares of `fun`, in one graph for arrays of several sizes."""

    def scalar(x):
        return sum(jnp.sum(y**2) for y in jax.tree.leaves(fun(x)))

    signature = tf.TensorSpec([None] * arrays[0].ndim, arrays[0].dtype)
    graph = gradient_graph(scalar, lowering, mode, signature, polymorphic_shapes=spec)
    for x in arrays:
        expected = jax.jit(jax.grad(scalar))(x)
        (actual,) = graph(tf.constant(x))
        assert_near(np.asarray(actual), np.asarray(expected), ulps)


RNG = np.random.RandomState(0)
ARRAYS = [RNG.normal(size=size).astype(np.float32) for size in ((1, 1), (3, 5), (8, 2))]
CUMULATIVE = {
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
}


class TestCumulative:
    @each_lowering
    @pytest.mark.parametrize("name", CUMULATIVE)
    def test_axes_and_directions(self, name, lowering):
        both = [(0, False), (1, True)]
        assert_gradient(
            lambda x: [CUMULATIVE[name](x, axis, reverse=r) for axis, r in both],
            ARRAYS,
            lowering=lowering,
        )

    @pytest.mark.parametrize("name", CUMULATIVE)
    def test_compiled(self, name):
        assert_gradient(lambda x: CUMULATIVE[name](x, 0), ARRAYS, mode="compiled")

    def test_products_with_zeros(self):
        x = np.array([[2.0, 0.0, 3.0, 0.0], [1.0, -2.0, 0.5, 4.0]], np.float32)
        assert_gradient(lambda x: lax.cumprod(x, 1), [x])

    def test_what_is_not_finite(self):
        x = np.array([[np.inf, 1.0, 2.0], [-np.inf, 0.5, np.inf], [np.nan, 1.0, 0.0]], np.float32)
        assert_gradient(lambda x: jnp.where(jnp.isfinite(x), lax.cummax(x, 0), 0.0), [x])

    def test_second_order(self):
        def penalty(x):
            return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.cumprod(x) ** 2))(x) ** 2)

        arrays = [x.ravel() for x in ARRAYS]
        assert_gradient(penalty, arrays, spec="n", ulps=128)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
    def test_dtypes(self, dtype):
        with jax.enable_x64(dtype == "float64"):
            arrays = [x.astype(jnp.dtype(dtype)) for x in ARRAYS[:2]]
            assert_gradient(lambda x: lax.cumprod(x, 0), arrays)


class TestReductions:
    @each_lowering
    @each_graph_mode
    @pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)], ids=str)
    def test_products(self, axis, mode, lowering):
        assert_gradient(partial(jnp.prod, axis=axis), ARRAYS, mode=mode, lowering=lowering)

    @each_lowering
    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("spec", ["b, 4", "3, b"])
    def test_one_open_axis(self, spec, axis, lowering):
        def affine(a, b):
            return a * b + a + b

        def fun(x):
            return jnp.prod(x, axis=axis), lax.reduce(x, np.float32(0), affine, (axis,))

        arrays = [RNG.normal(size=(3, 4)).astype(np.float32)]
        assert_gradient(fun, arrays, spec=spec, lowering=lowering)

    def test_products_of_no_elements(self):
        assert_gradient(lambda x: jnp.prod(x[:, :0], axis=1) * jnp.sum(x), ARRAYS)

    def test_over_no_axis(self):
        def nothing(x):
            return lax.reduce(x, np.float32(2), lambda a, b: a * b + a, ())

        assert_gradient(lambda x: [jnp.prod(x, axis=()), nothing(x)], ARRAYS)

    @pytest.mark.parametrize("zeros", [1, 2])
    def test_products_with_zeros(self, zeros):
        x = np.array([[2.0, 5.0, 3.0, 4.0]], np.float32)
        x[0, 1 : 1 + zeros] = 0
        assert_gradient(partial(jnp.prod, axis=1), [x])

    def test_products_of_what_turns_out_to_be_empty(self):
        arrays = [np.ones((1, 2), np.float32), np.full((3, 2), 2, np.float32)]
        assert_gradient(lambda x: jnp.prod(x[1:], 0) * jnp.sum(x), arrays)

    @each_lowering
    def test_by_a_function(self, lowering):
        def affine(a, b):
            return a * b + a + b

        def fun(x):
            return lax.reduce(x, np.float32(0), affine, (0,))

        assert_gradient(fun, ARRAYS, lowering=lowering)

    def test_of_two_operands_at_once(self):
        def smallest_and_largest(x):
            def combine(a, b):
                return lax.min(a[0], b[0]), lax.max(a[1], b[1])

            inits = np.float32(np.inf), np.float32(-np.inf)
            return lax.reduce((x, 2 * x), inits, combine, (0, 1))

        assert_gradient(smallest_and_largest, ARRAYS)


ROWS = [RNG.normal(size=(2, n)).astype(np.float32) for n in (1, 2, 5, 6, 8)]


class TestFourier:
    """JAX's own rule for the real FFT is wrong for even lengths where the length is symbolic."""

    @each_lowering
    @each_graph_mode
    def test_real(self, mode, lowering):
        def fun(x):
            y = jnp.fft.rfft(x)
            return jnp.abs(y * (1 + lax.iota(np.float32, y.shape[1])))

        assert_gradient(fun, ROWS, mode=mode, lowering=lowering, ulps=64)

    def test_real_of_two_dimensions(self):
        arrays = [RNG.normal(size=size).astype(np.float32) for size in ((2, 6), (5, 4), (4, 5))]
        assert_gradient(lambda x: jnp.real(jnp.fft.rfft2(x)), arrays, ulps=64)

    def test_there_and_back(self):
        def smoothed(x):
            y = lax.fft(x, "RFFT", x.shape[1:])
            y = y / (1 + lax.iota(np.float32, y.shape[1]))
            return lax.fft(y, "IRFFT", x.shape[1:])

        assert_gradient(smoothed, ROWS, ulps=64)

    def test_complex(self):
        assert_gradient(lambda x: jnp.abs(jnp.fft.fft(x)[:, ::2]), ROWS, ulps=64)


# What convolutions are made with, beside strides of (2, 3).
CONVOLUTIONS = {
    "same": {"padding": "SAME"},
    "valid": {"padding": "VALID"},
    "numbers": {"padding": [(1, 0), (0, 2)]},
    "negative numbers": {"strides": (1, 1), "padding": [(-1, 0), (0, -1)]},
    "stride 1": {"strides": (1, 1), "padding": "VALID"},
    "feature groups": {"padding": "SAME", "groups": 3},
    "feature groups, valid": {"padding": "VALID", "groups": 3},
    "batch groups": {"padding": "VALID", "batch_groups": 2},
    "window dilation": {"padding": "SAME", "rhs_dilation": (1, 2)},
    "base dilation": {"padding": [(1, 1), (2, 0)], "lhs_dilation": (3, 2)},
}


class TestConvolutions:
    """Of any height and width: the paddings of their transposes depend on the sizes."""

    @pytest.mark.parametrize("case", CONVOLUTIONS)
    def test_gradient(self, case):
        self.check(jax.grad(partial(self.loss, **CONVOLUTIONS[case]), (0, 1)), case)

    @pytest.mark.parametrize("case", ["same", "valid", "base dilation"])
    @pytest.mark.parametrize("first", [0, 1])
    def test_second_order(self, case, first):
        loss = partial(self.loss, **CONVOLUTIONS[case])

        def slope(x, w):
            return jnp.sum(jnp.cos(jax.grad(loss, first)(x, w)))

        self.check(jax.grad(slope, (0, 1)), case)

    def test_without_xla_ops(self):
        gradient = jax.grad(partial(self.loss, padding="SAME"), (0, 1))
        self.check(gradient, "same", lowering="no_xla")

    def test_a_window_that_does_not_fit(self):
        """The convolution is empty, and the gradient is 0."""
        gradient = jax.grad(partial(self.loss, padding="VALID"), (0, 1))
        self.check(gradient, "valid", sizes=[(1, 1), (1, 5)])

    @staticmethod
    def loss(x, w, strides=(2, 3), groups=1, batch_groups=1, **params):
        y = lax.conv_general_dilated(
            x,
            w,
            strides,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
            batch_group_count=batch_groups,
            **params,
        )
        return jnp.sum(jnp.sin(y))

    def check(self, fun, case, lowering="xla", sizes=((4, 4), (5, 8), (7, 6))):
        """The function of (x, w) gives in one graph what it gives in JAX."""
        groups = CONVOLUTIONS[case].get("groups", 1)
        w = RNG.normal(size=(3, 2, 3 // groups, 6)).astype(np.float32)
        converted = jax2tf.convert(
            fun, polymorphic_shapes=["2*b, h, w, _", None], enable_xla=LOWERINGS[lowering]
        )
        graph = tf.function(converted, autograph=False).get_concrete_function(
            tf.TensorSpec([None, None, None, 3]), tf.TensorSpec(w.shape)
        )
        for height, width in sizes:
            x = RNG.normal(size=(2, height, width, 3)).astype(np.float32)
            actual = graph(tf.constant(x), tf.constant(w))
            for a, e in zip(actual, jax.jit(fun)(x, w), strict=True):
                assert_near(np.asarray(a), np.asarray(e), ulps=64)


class TestPads:
    @pytest.mark.parametrize("size", [5, 3, 2, 1])
    def test_of_what_may_be_empty(self, size):
        def fun(x):
            return jnp.sum(jnp.sin(lax.pad(x[2:], 0.0, [(1, 1, 1)])))

        x = RNG.normal(size=size).astype(np.float32)
        actual = jax2tf.convert(jax.grad(fun), polymorphic_shapes="n")(x)
        assert_near(np.asarray(actual), np.asarray(jax.grad(fun)(x)), ulps=4)


class TestReductionsWithIntegers:
    """JAX has no derivative of a reduction that carries integers along."""

    @staticmethod
    def largest(x):
        def larger(a, b):
            return tuple(jnp.where(a[0] > b[0], p, q) for p, q in zip(a, b, strict=True))

        rows = lax.broadcasted_iota(jnp.int32, x.shape, 0)
        return lax.reduce((x, rows), (np.float32(-np.inf), np.int32(-1)), larger, (0,))

    def test_in_jax(self):
        def of_rule(x):
            return jnp.sum(self.largest(x)[0] ** 2)

        def of_max(x):
            return jnp.sum(jnp.max(x, 0) ** 2)

        for x in ARRAYS:
            np.testing.assert_allclose(jax.grad(of_rule)(x), jax.grad(of_max)(x), rtol=1e-6)

    @each_lowering
    def test_of_every_size(self, lowering):
        assert_gradient(lambda x: self.largest(x)[0], ARRAYS, lowering=lowering)

    def test_saved(self, tmp_path):
        module = tf.Module()
        module.f = tf.function(
            jax2tf.convert(self.largest), input_signature=[tf.TensorSpec([3, 5])], autograph=False
        )
        tf.saved_model.save(module, str(tmp_path))
        restored = tf.saved_model.load(str(tmp_path))
        with tf.GradientTape() as tape:
            x = tf.Variable(ARRAYS[1])
            largest, row = restored.f(x)
        np.testing.assert_array_equal(row, np.argmax(ARRAYS[1], 0))
        np.testing.assert_array_equal(
            tape.gradient(largest, x), np.arange(3)[:, None] == np.argmax(ARRAYS[1], 0)
        )
