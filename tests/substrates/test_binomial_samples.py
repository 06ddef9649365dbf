"""Samples of binomial distributions."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

BINOMIAL = [
    Case(
        name,
        lambda tf, n=n, p=p, of=of, dtype=dtype: tf.random.stateless_binomial(
            [40, len(n)],
            [3, 11],
            tf.constant(n, getattr(tf, of)),
            tf.constant(p, getattr(tf, of)),
            output_dtype=getattr(tf, dtype),
        ),
    )
    for name, n, p, of, dtype in [
        ("few are expected", [1.0, 7.0, 20.0, 60.0], [0.3, 0.5, 0.2, 0.1], "float64", "int32"),
        ("many are expected", [30.0, 100.0, 5000.0], [0.4, 0.25, 0.5], "float64", "float64"),
        ("most succeed", [7.0, 100.0, 9.0, 30.0], [0.9, 0.75, 1.0, 0.55], "float64", "int64"),
        ("none", [0.0, 5.0, -2.0], [0.4, 0.0, 0.9], "float64", "float32"),
        ("no probability", [5.0, 5.0], [np.nan, -0.3], "float64", "float32"),
        ("float32", [9.0, 200.0, 17.0], [0.3, 0.6, 0.5], "float32", "int32"),
    ]
] + [
    Case(
        "probabilities of one count",
        lambda tf: tf.random.stateless_binomial([3, 2, 2], [1, 2], [[10.0], [50.0]], [0.2, 0.7]),
    ),
    Case("no samples", lambda tf: tf.random.stateless_binomial([0, 1], [1, 2], [3.0], [0.5])),
    Case("another shape", lambda tf: tf.random.stateless_binomial([3], [1, 2], [3.0, 4.0], 0.5)),
    Case(
        "two dtypes",
        lambda tf: tf.random.stateless_binomial(
            [2], [1, 2], tf.constant(3.0), tf.constant(0.5, tf.float64)
        ),
    ),
    Case("a seed of three", lambda tf: tf.random.stateless_binomial([2], [1, 2, 3], 3.0, 0.5)),
]


@over(BINOMIAL)
def test_binomial_samples_are_those_of_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("p", [0.05, 0.4, 0.8])
def test_binomial_samples_have_the_moments_under_jit(p):
    tf = tf_of("jax")
    draw = jax.jit(lambda n, p: tf.random.stateless_binomial([3000], [5, 6], n, p))
    samples = np.asarray(draw(np.float32(50), np.float32(p)))
    assert samples.dtype == np.int32
    spread = (50 * p * (1 - p)) ** 0.5
    assert abs(samples.mean() - 50 * p) < 5 * spread / 3000**0.5
    assert abs(samples.std() / spread - 1) < 0.08
