"""Stateless samplers give TensorFlow's own samples for its seeds."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

SEEDS = [[3, 7], [-3, -7], [0, 2**31 - 1]]


def uniform(**kwargs):
    return lambda tf: tf.random.stateless_uniform(**{"shape": [7], "seed": [3, 7], **kwargs})


CASES = (
    [Case(f"uniform {s}", uniform(seed=s)) for s in SEEDS]
    + [
        Case(
            "uniform of a 64-bit seed",
            lambda tf: tf.random.stateless_uniform([3], tf.constant([2**40, -5], tf.int64)),
        )
    ]
    + [Case(f"uniform {d}", uniform(dtype=d)) for d in ("float16", "bfloat16", "float64")]
    + [
        Case(f"every bit of {d}", uniform(dtype=d, minval=None))
        for d in ("int32", "int64", "uint32", "uint64")
    ]
    + [
        Case(f"uniform {d} in a range", uniform(dtype=d, minval=-5, maxval=10))
        for d in ("int32", "int64")
    ]
    + [
        Case("uniform floats in a range", uniform(minval=-2.0, maxval=5.0), atol=1e-6),
        Case("uniform of a shape", uniform(shape=[2, 3])),
        Case("uniform of nothing", uniform(shape=[0])),
        Case("uniform of many", lambda tf: tf.random.stateless_uniform([5001], [1, 2])[-3:]),
        Case("integers with one limit", uniform(dtype="int32", minval=0)),
        Case("an empty range", uniform(dtype="int32", minval=3, maxval=3)),
        Case("a seed of three", uniform(seed=[1, 2, 3])),
        Case("a seed of floats", uniform(seed=[1.0, 2.0])),
        Case("split", lambda tf: tf.random.split([3, 7], 3)),
        Case("fold_in", lambda tf: tf.random.fold_in([3, 7], 9)),
    ]
    + [
        Case(
            f"normal {d} {s}",
            lambda tf, d=d, s=s: tf.random.stateless_normal([5], s, 1.0, 2.0, d),
            rtol={"float16": 4e-3}.get(d, 1e-5),
            atol={"float16": 4e-3}.get(d, 1e-6),
        )
        for d in ("float16", "float32", "float64")
        for s in SEEDS[:2]
    ]
)


# On JAX the ten rounds are compiled anew for each number of samples: one case of each kind.
ON_JAX = {
    "uniform [3, 7]",
    "uniform [-3, -7]",
    "uniform float64",
    "uniform bfloat16",
    "every bit of int32",
    "every bit of uint64",
    "uniform int32 in a range",
    "uniform of a shape",
    "a seed of three",
    "integers with one limit",
    "split",
    "fold_in",
    "normal float32 [3, 7]",
    "normal float64 [3, 7]",
}
assert {case.name for case in CASES} >= ON_JAX
CASES = [
    dataclasses.replace(case, only=SUBSTRATES if case.name in ON_JAX else ("numpy",))
    for case in CASES
]


@over(CASES)
def test_samples(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_samples_under_jit_are_the_same_without_64_bits():
    tf = tf_of("jax")
    seed = np.array([3, -7], np.int32)

    compiled = jax.jit(lambda seed: tf.random.stateless_normal([4], seed))(seed)
    assert compiled.dtype == np.float32
    plain = tf_of("numpy").random.stateless_normal([4], seed)
    np.testing.assert_allclose(compiled, np.asarray(plain), rtol=1e-6)


def test_another_algorithm_is_refused():
    with pytest.raises(NotImplementedError, match="alg='threefry' is not here"):
        tf_of("numpy").random.stateless_uniform([1], [1, 2], alg="threefry")
