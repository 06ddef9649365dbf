"""Stateless samplers give TensorFlow's own samples for its seeds."""

from __future__ import annotations

import dataclasses
import math

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

LOGITS = np.array([[0.5, -1.0, 2.0, 0.0], [1.0, 1.0, -3.0, -np.inf], [0.0, 0.0, 0.0, 5.0]])


def with_state(sampler, *arguments, **kwargs):
    """Three calls of one generator and one of another, from a seed of the whole."""

    def program(tf):
        tf.random.set_seed(5)
        draw = getattr(tf.random, sampler)
        first = [draw([n], *arguments, seed=11, **kwargs) for n in (3, 3, 5)]
        return first, draw([2], *arguments, **kwargs), draw([2], *arguments, **kwargs)

    return program


CASES += [
    Case(
        f"truncated normal {d}",
        lambda tf, d=d: tf.random.stateless_truncated_normal([301], [3, 7], 1.0, 2.0, d),
        rtol={"float16": 4e-3}.get(d, 1e-5),
        atol={"float16": 4e-3}.get(d, 1e-5),
    )
    for d in ("float16", "float32", "float64")
]
CASES += [
    Case("categorical", lambda tf: tf.random.stateless_categorical(LOGITS, 7, [3, 7])),
    Case(
        "categorical int32",
        lambda tf: tf.random.stateless_categorical(LOGITS.astype(np.float32), 4, [3, 7], tf.int32),
    ),
    Case("categorical of a vector", lambda tf: tf.random.stateless_categorical([1.0], 4, [3, 7])),
    Case("categorical of none", lambda tf: tf.random.stateless_categorical([[]], 4, [3, 7])),
    Case("uniform with a state", with_state("uniform")),
    Case("integers with a state", with_state("uniform", 0, 100, dtype="int32")),
    Case("integers without a limit", with_state("uniform", dtype="int32")),
    Case("normal with a state", with_state("normal"), rtol=1e-5, atol=1e-6),
    Case("doubles with a state", with_state("normal", dtype="float64")),
    Case("truncated with a state", with_state("truncated_normal"), rtol=1e-5, atol=1e-6),
]


def rows_with_state(call):
    """Three calls of one generator and one of another, from a seed of the whole."""

    def program(tf):
        tf.random.set_seed(5)
        return [call(tf, seed) for seed in (3, 3, 4, None)]

    return program


CASES += [
    Case(
        f"rows in a random order {shape}",
        rows_with_state(
            lambda tf, seed, shape=shape: tf.random.shuffle(
                tf.reshape(tf.range(math.prod(shape)), shape), seed=seed
            )
        ),
    )
    for shape in ([9], [12], [5, 3], [1], [0, 2])
] + [
    Case("no rows to shuffle", lambda tf: tf.random.shuffle(tf.constant(3), seed=1)),
    Case(
        "classes with a state",
        rows_with_state(lambda tf, seed: tf.random.categorical(LOGITS, 7, seed=seed)),
    ),
    Case(
        "gamma with a state",
        rows_with_state(
            lambda tf, seed: tf.random.gamma([3], [0.5, 2.0], 1.5, tf.float64, seed=seed)
        ),
        rtol=1e-10,
    ),
    Case(
        "poisson with a state",
        rows_with_state(lambda tf, seed: tf.random.poisson([3], [0.5, 20.0], seed=seed)),
    ),
]

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
    "truncated normal float64",
    "categorical",
    "categorical of a vector",
    "rows in a random order [12]",
    "classes with a state",
    "gamma with a state",
    "uniform with a state",
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


def test_what_has_a_state_needs_a_seed_under_jit():
    tf = tf_of("jax")
    with pytest.raises(ValueError, match=r"tf.random.normal: it has no seed, and inside jax.jit"):
        jax.jit(lambda: tf.random.normal([2]))()
    for draw in (
        lambda: tf.random.shuffle(tf.range(4)),
        lambda: tf.random.categorical(LOGITS, 2),
        lambda: tf.random.gamma([2], 1.0),
        lambda: tf.random.poisson([2], 1.0),
    ):
        with pytest.raises(ValueError, match=r"has no seed, and inside jax\.jit"):
            jax.jit(draw)()
    tf.random.set_seed(3)
    expected = np.asarray(tf.random.normal([2], seed=4))
    tf.random.set_seed(3)
    draw = jax.jit(lambda: tf.random.normal([2], seed=4))
    np.testing.assert_array_equal(draw(), draw())
    np.testing.assert_allclose(draw(), expected, rtol=1e-6)
    drawn = [tf_of("numpy").random.uniform([2]) for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_classes_without_64_bits():
    seed, logits = [3, 7], LOGITS.astype(np.float32)
    found = tf_of("jax").random.stateless_categorical(logits, 20, seed)
    expected = tf_of("numpy").random.stateless_categorical(logits, 20, seed)
    np.testing.assert_array_equal(found, np.asarray(expected))


def test_another_algorithm_is_refused():
    with pytest.raises(NotImplementedError, match="alg='threefry' is not here"):
        tf_of("numpy").random.stateless_uniform([1], [1, 2], alg="threefry")


@over(
    [
        Case(
            f"seeds {whole} and {seed}",
            lambda tf, whole=whole, seed=seed: [
                tf.random.set_seed(whole),
                tf.random.uniform([3], seed=seed),
            ][1],
        )
        for whole, seed in [(5, 2**31 + 6), (5, 2**80 + 1), (2**31 + 1, 3), (0, 0), (5, -3)]
    ]
)
def test_seeds_beyond_31_bits(case, substrate):
    assert_as_tensorflow(case, substrate)
