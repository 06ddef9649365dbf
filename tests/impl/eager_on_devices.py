"""Functions that eager mode runs as one graph, or compiles, where TensorFlow has several devices.

Run in a process of its own (see test_eager_graphs.py).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.lowering import eager
from tests.impl import logical_devices

logical_devices.make(2)

X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def small(x):
    return jnp.sin(x) * 2.0 + x @ x.T @ x


def large(x):
    for _ in range(30):
        x = jnp.sin(x) * 2.0
    return x


@pytest.mark.parametrize("fun", [small, large, jax.jit(small)], ids=["small", "large", "compiled"])
def test_a_call_runs_on_the_device_around_it(fun):
    converted = jax2tf.convert(fun)
    for device in ("CPU:0", "CPU:1", "CPU:0"):
        with tf.device(device):
            results = [converted(tf.constant(X)) for _ in range(eager.CALLS_OP_BY_OP + 2)]
        for result in results:
            assert result.device.endswith(device)
            np.testing.assert_allclose(result, fun(X), rtol=1e-5)


def test_an_argument_may_be_on_another_device():
    with tf.device("CPU:1"):
        x = tf.constant(X)
    converted = jax2tf.convert(small)
    for _ in range(eager.CALLS_OP_BY_OP + 2):
        np.testing.assert_allclose(converted(x), small(X), rtol=1e-5)
