"""JAX inside TensorFlow inside JAX, and the other way round, for a sample of the harnesses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from harnesses.engine.cells import Selection
from harnesses.engine.compare import compare
from harnesses.harness import CALL_TF
from jax2tf import call_tf, convert
from limitations.ledger import load

_LIMITED = {primitive for entry in load() for primitive in entry.primitive}
_NOT_PASSED = {"random", "callbacks"}  # typed keys; what XLA does not compile
SAMPLE = [
    harness
    for harness in Selection(sample=60).harnesses()
    if harness.primitive not in _LIMITED and harness.family not in _NOT_PASSED
]
OF_TENSORFLOW = [
    harness
    for harness in Selection(sample=20, direction=CALL_TF).harnesses()
    if not {p for entry in load(direction=CALL_TF) for p in entry.primitive} & {harness.primitive}
]


@pytest.mark.parametrize("harness", SAMPLE, ids=lambda harness: harness.name)
def test_call_of_converted(harness):
    with jax.enable_x64(harness.x64):
        args = harness.make_args()
        expected = jax.tree.map(np.asarray, jax.jit(harness.fun)(*args))
        actual = jax.jit(call_tf(convert(harness.fun)))(*args)
        assert compare(harness, args, expected, jax.tree.map(np.asarray, actual)).problem is None


@pytest.mark.parametrize("harness", OF_TENSORFLOW, ids=lambda harness: harness.name)
def test_converted_call(harness):
    with jax.enable_x64(True):
        args = harness.make_args()
        expected = jax.tree.map(np.asarray, harness.fun(*map(tf.constant, args)))
        converted = convert(call_tf(harness.fun))
        for run in (converted, tf.function(converted, autograph=False)):
            actual = jax.tree.map(np.asarray, run(*map(tf.constant, args)))
            assert compare(harness, args, expected, actual).problem is None


@pytest.mark.parametrize("options", [{"enable_xla": False}, {"native_serialization": True}])
def test_other_lowerings(options):
    x = np.ones(3, np.float32)
    back = call_tf(convert(jnp.sin, **options))
    assert_allclose(jax.jit(back)(x), np.sin(x), rtol=1e-6)
    assert_allclose(jax.jit(jax.grad(lambda x: back(x).sum()))(x), np.cos(x), rtol=1e-6)
    there = convert(lambda x: jnp.cos(call_tf(tf.sin)(x)), **options)
    assert_allclose(tf.function(there, autograph=False)(x), np.cos(np.sin(x)), rtol=1e-6)
