"""call_tf beside TensorFlow's random state: it draws no numbers of its own."""

import subprocess
import sys

import jax
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

TRANSFORMED = {
    "jit": lambda f: jax.jit(f),
    "grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
    "jvp": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,))),
    "vmap": lambda f: jax.jit(jax.vmap(f)),
    "converted": lambda f: jax2tf.convert(f),
    "converted_native": lambda f: jax2tf.convert(f, native_serialization=True),
    "compiled": lambda f: tf.function(jax2tf.convert(f), autograph=False, jit_compile=True),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_call_leaves_the_random_generator_as_it_is(name):
    """tf.random.set_seed makes a sequence of numbers: one that is drawn moves all that follow."""
    tf.random.set_seed(1)
    expected = tf.random.normal([3]).numpy()
    tf.random.set_seed(1)
    TRANSFORMED[name](jax2tf.call_tf(tf.tanh))(X)
    np.testing.assert_array_equal(tf.random.normal([3]).numpy(), expected)


# TensorFlow cannot take this setting back: it needs a process of its own.
_DETERMINISTIC = """
import numpy as np, tensorflow as tf
from tests.impl.test_call_tf_determinism import TRANSFORMED, X
import jax, jax2tf
tf.config.experimental.enable_op_determinism()
for name, transformed in TRANSFORMED.items():
    function = lambda x: tf.tanh(x) * 2
    usual = transformed(lambda x: jax.numpy.tanh(x) * 2)
    actual, expected = transformed(jax2tf.call_tf(function))(X), usual(X)
    jax.tree.map(lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-5), actual, expected)
    print(name)
try:
    jax.jit(jax2tf.call_tf(lambda x: x + tf.random.normal([3])))(X)
except RuntimeError as error:
    print("seed" in str(error) and error.__notes__[0])
"""


def test_ops_that_have_to_be_deterministic_need_no_seed():
    done = subprocess.run(
        [sys.executable, "-c", _DETERMINISTIC], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        *TRANSFORMED,
        "jax2tf.call_tf(<lambda>): raised by the TensorFlow function",
    ], done.stderr
