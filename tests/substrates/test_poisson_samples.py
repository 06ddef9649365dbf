"""Samples of Poisson and truncated normal distributions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

POISSON = [
    Case(
        f"{name} rates",
        lambda tf, rates=rates, dtype=dtype: tf.random.stateless_poisson(
            [7, len(rates)], [3, 11], tf.constant(rates, tf.float64), dtype=getattr(tf, dtype)
        ),
    )
    for name, rates, dtype in [
        ("small", [0.0, 0.3, 2.5, 9.9], "int32"),
        ("large", [10.0, 31.5, 400.0], "float64"),
        ("mixed", [4.0, 40.0], "int64"),
    ]
] + [
    Case("no samples", lambda tf: tf.random.stateless_poisson([0, 1], [1, 2], [3.0])),
    Case("another shape", lambda tf: tf.random.stateless_poisson([3], [1, 2], [3.0, 4.0])),
]


@over(POISSON)
def test_poisson_samples_are_those_of_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
@pytest.mark.parametrize("limits", [(-0.5, 1.5), (2.0, 9.0), (-7.0, -3.0), (-np.inf, 0.0)])
def test_truncated_normal_samples_have_the_moments(limits, substrate):
    stats = pytest.importorskip("scipy.stats")
    tf = tf_of(substrate)
    low, high = map(np.float32, limits)
    samples = np.asarray(
        tf.random.stateless_parameterized_truncated_normal(
            [4000], [5, 6], np.float32(0.5), np.float32(1.5), low, high
        )
    )
    law = stats.truncnorm((low - 0.5) / 1.5, (high - 0.5) / 1.5, 0.5, 1.5)
    assert samples.dtype == np.float32
    assert (samples >= low).all()
    assert (samples <= high).all()
    assert abs(samples.mean() - law.mean()) < 5 * law.std() / 4000**0.5
    assert abs(samples.std() / law.std() - 1) < 0.08
