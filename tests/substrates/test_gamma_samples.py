"""tf.random.stateless_gamma gives TensorFlow's own samples, and their derivatives."""

from __future__ import annotations

import jax
import numpy as np
import tensorflow

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

ALPHA = np.array([0.1, 0.5, 0.999, 1.0, 2.5, 1000.0])
CLOSE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def gamma(shape, alpha, dtype="float64", seed=(3, 7), **kwargs):
    return lambda tf: tf.random.stateless_gamma(shape, list(seed), alpha, dtype=dtype, **kwargs)


CASES = [
    Case(
        f"{dtype} of many",
        gamma([300, 6], ALPHA, dtype),
        rtol=rtol,
        only=SUBSTRATES if dtype == "float64" else ("numpy",),
    )
    for dtype, rtol in CLOSE.items()
] + [
    Case("one", gamma([], 2.0), rtol=1e-12, only=("numpy",)),
    Case("none", gamma([0, 6], ALPHA)),
    Case("a batch", gamma([4, 2, 6], ALPHA * np.ones((2, 1))), rtol=1e-12, only=("numpy",)),
    Case(
        "a rate",
        gamma([4, 2, 6], ALPHA, beta=np.array([[2.0], [0.5]])),
        rtol=1e-12,
        only=("numpy",),
    ),
    Case("another seed", gamma([4], 0.5, seed=(-3, 2**31 - 1)), rtol=1e-12, only=("numpy",)),
    Case("a shape that does not end so", gamma([6, 4], ALPHA)),
    Case("a seed of three", gamma([2], 1.0, seed=(1, 2, 3))),
    Case("integers", gamma([2], 1, "int32"), only=("numpy",)),
]


@over(CASES)
def test_samples(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_derivatives_under_jit_and_vmap():
    alpha = tensorflow.constant(ALPHA[1:5], tensorflow.float32)
    with tensorflow.GradientTape() as tape:
        tape.watch(alpha)
        total = tensorflow.reduce_sum(tensorflow.random.stateless_gamma([9, 4], [3, 7], alpha))
    expected = tape.gradient(total, alpha)

    def of(alpha):
        return tf.reduce_sum(tf.random.stateless_gamma([9, 4], [3, 7], alpha))

    tf = tf_of("jax")
    actual = jax.jit(jax.grad(of))(alpha.numpy())
    np.testing.assert_allclose(actual, expected, rtol=2e-3)
    batch = np.stack([alpha.numpy(), 2 * alpha.numpy()])
    np.testing.assert_allclose(jax.vmap(of)(batch)[0], total, rtol=1e-4)


def derivatives(name, dtype, a, x):
    first = {"IgammaGradA": "a", "RandomGammaGrad": "alpha"}[name]
    second = {"IgammaGradA": "x", "RandomGammaGrad": "sample"}[name]
    return lambda tf: getattr(tf.raw_ops, name)(
        **{first: tf.constant(a, dtype), second: tf.constant(x, dtype)}
    )


# Near the mean of the distribution and away from it, for small and large shapes.
SHAPES = np.exp(np.linspace(-4, 5, 40))[:, None]
POINTS = SHAPES * np.exp(np.linspace(-1, 1, 9) * np.minimum(1.5, 2 / np.sqrt(SHAPES)))
EDGES = np.array([-1.0, 1.0, np.nan, 2.0, 2.0, 2.0, np.inf, 50.0])


@over(
    [
        Case(f"{name} of {dtype}", derivatives(name, dtype, SHAPES, POINTS), rtol=rtol)
        for name in ("IgammaGradA", "RandomGammaGrad")
        for dtype, rtol in (("float32", 2e-3), ("float64", 3e-12))
    ]
    + [
        Case(
            f"{name} at edges",
            derivatives(name, "float64", EDGES, [1.0, 0.0, 1.0, -1.0, np.inf, np.nan, 2.0, 45.0]),
        )
        for name in ("IgammaGradA", "RandomGammaGrad")
    ]
    + [
        Case("float16", derivatives("IgammaGradA", "float16", [1.0], [1.0])),
        Case("other shapes", derivatives("IgammaGradA", "float32", [1.0, 2.0], [1.0, 2.0, 3.0])),
    ]
)
def test_derivatives_in_the_shape(case, substrate):
    assert_as_tensorflow(case, substrate)
