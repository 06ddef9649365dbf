"""Activations, losses, moments and clipping: TensorFlow's values, dtypes and errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

NAN, INF = np.nan, np.inf
POINTS = [-INF, -30.0, -1.0, -0.0, 0.5, 7.0, INF, NAN]


def x(tf):
    return tf.constant([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


CASES = [
    Case(
        f"{name} {dtype}",
        lambda tf, name=name, dtype=dtype: getattr(tf.nn, name)(tf.constant(POINTS[1:6], dtype)),
        rtol={"float16": 4e-3}.get(dtype, 1e-5),
        atol={"float16": 1e-3}.get(dtype, 1e-6),
        # On JAX each is a program that XLA compiles, and the rule for the dtype is the same.
        only=SUBSTRATES if dtype == "float32" or name == "gelu" else ("numpy",),
    )
    for name in (
        "relu",
        "relu6",
        "elu",
        "selu",
        "leaky_relu",
        "gelu",
        "silu",
        "crelu",
        "softmax",
        "log_softmax",
    )
    for dtype in ("float16", "float32", "float64")
] + [
    Case(
        "relu everywhere",
        lambda tf: [
            tf.nn.relu(tf.constant(POINTS)),
            tf.nn.elu(tf.constant(POINTS)),
            tf.nn.relu([-1, 2]),
        ],
    ),
    Case("elu of ints", lambda tf: tf.nn.elu([1])),
    Case("gelu approximated", lambda tf: tf.nn.gelu([1.0, -1.0], approximate=True), rtol=1e-5),
    Case(
        "constants in float64",
        lambda tf: [
            tf.nn.gelu(tf.constant([1.0, -2.0], tf.float64), approximate=True),
            tf.nn.gelu(tf.constant([1.0, -2.0], tf.float64)),
            tf.nn.leaky_relu(tf.constant([1.0, -2.0], tf.float64)),
            tf.nn.leaky_relu(tf.constant([1.0, -2.0], tf.float64), alpha=0.3),
            tf.nn.leaky_relu(tf.constant([1.0, -2.0]), alpha=2),
        ],
    ),
    Case("relu6 of bfloat16", lambda tf: tf.nn.relu6(tf.constant([7.0, -1.0, 2.5], tf.bfloat16))),
    Case("gelu of ints", lambda tf: tf.nn.gelu([1])),
    Case(
        "softmax over an axis",
        lambda tf: [
            tf.nn.softmax(x(tf), axis=0),
            tf.nn.softmax(tf.zeros([0, 3])),
            tf.nn.log_softmax(x(tf), axis=0),
        ],
        atol=1e-6,
    ),
    Case("softmax of ints", lambda tf: tf.nn.softmax([1, 2])),
    Case(
        "cross entropies",
        lambda tf: [
            tf.nn.softmax_cross_entropy_with_logits([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], x(tf)),
            tf.nn.sparse_softmax_cross_entropy_with_logits([2, 0], x(tf)),
            tf.nn.sigmoid_cross_entropy_with_logits([0.0, 1.0], [-3.0, 40.0]),
        ],
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "a label that is no class",
        lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits([5, 0], x(tf)),
    ),
    Case(
        "sigmoid cross entropy of two shapes",
        lambda tf: tf.nn.sigmoid_cross_entropy_with_logits([0.0], [1.0, 2.0]),
    ),
    Case(
        "moments",
        lambda tf: [tf.nn.moments(x(tf), [0]), tf.nn.moments(x(tf), [0, 1], keepdims=True)],
        rtol=1e-5,
    ),
    Case("l2_loss", lambda tf: tf.nn.l2_loss(x(tf))),
    Case(
        "batch_normalization",
        lambda tf: [
            tf.nn.batch_normalization(
                x(tf),
                *map(tf.constant, ([1.0, 0.0, 1.0], [2.0, 1.0, 0.5])),
                *((None, None) if bare else map(tf.constant, ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0]))),
                1e-3,
            )
            for bare in (True, False)
        ],
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "clip_by_value",
        lambda tf: [
            tf.clip_by_value(x(tf), 0.0, 1.0),
            tf.clip_by_value([1, 5], 2, 3),
            tf.clip_by_value([1.0], 3.0, 2.0),
            tf.clip_by_value([NAN], 0.0, 1.0),
        ],
    ),
    Case("clip_by_value that widens", lambda tf: tf.clip_by_value(1.0, [0.0, 0.0], 1.0)),
    Case(
        "clip_by_norm",
        lambda tf: [
            tf.clip_by_norm(x(tf), 1.0),
            tf.clip_by_norm(x(tf), 2.5, axes=[1]),
            tf.clip_by_norm([0.0], 1.0),
        ],
    ),
    Case(
        "polyval",
        lambda tf: [tf.math.polyval([2.0, 1.0, 3.0], [1.0, 2.0]), tf.math.polyval([], [1.0])],
    ),
    Case("polyval of a tuple", lambda tf: tf.math.polyval((1.0,), 1.0)),
    Case("lbeta", lambda tf: tf.math.lbeta([[1.0, 2.0], [0.5, 3.0]]), rtol=1e-5),
]


BIASED = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
CASES += [
    Case(f"bias_add {name}", lambda tf, a=arguments: tf.nn.bias_add(*a))
    for name, arguments in {
        "last": (BIASED, [1.0, 2.0, 3.0, 4.0]),
        "second": (BIASED, [1.0, 2.0, 3.0], "NCW"),
        "named last": (BIASED, [1.0, 2.0, 3.0, 4.0], "NWC"),
        "integers": (BIASED.astype(np.int32), [1, 2, 3, 4]),
        "of another size": (BIASED, [1.0, 2.0]),
        "of a vector": (BIASED[0, 0], [1.0, 2.0, 3.0, 4.0]),
        "of a matrix": (BIASED, [[1.0, 2.0, 3.0, 4.0]]),
        "of an unknown format": (BIASED, [1.0, 2.0, 3.0, 4.0], "WC"),
        "of another dtype": (BIASED, np.array([1.0, 2.0, 3.0, 4.0])),
    }.items()
]
CASES += [
    Case(
        "names of TensorFlow 1",
        lambda tf: (
            tf.compat.v1.floor_div([7, -7], [2, 2]),
            tf.compat.v1.debugging.is_strictly_increasing([1, 2, 2]),
            tf.compat.v1.debugging.is_non_decreasing([1, 2, 2]),
            tf.compat.v2.debugging.assert_positive([1]) is None,
            tf.compat.v1.debugging.is_numeric_tensor(tf.constant(1)),
        ),
    )
]


@over(CASES)
def test_neural_networks(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("name", ["relu", "elu", "selu", "gelu", "silu"])
def test_derivatives_are_finite_where_values_are_large(name):
    tf = tf_of("jax")
    for point in (-200.0, 0.0, 200.0):
        assert np.isfinite(jax.grad(getattr(tf.nn, name))(point))
    assert np.isfinite(
        jax.grad(lambda v: tf.reduce_sum(tf.clip_by_norm(v, 1.0)))(np.zeros(2, np.float32))
    ).all()
