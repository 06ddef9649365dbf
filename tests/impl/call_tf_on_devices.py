"""call_tf with several devices: test_call_tf_transformations.py runs this in a process with them.

JAX has eight devices of a CPU, and TensorFlow two.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from numpy.testing import assert_allclose

from jax2tf import CallTfError, call_tf

P = PartitionSpec
X = np.linspace(-2, 2, 16, dtype=np.float32)
W = np.linspace(0, 1, 4, dtype=np.float32)


@pytest.fixture(scope="module", autouse=True)
def two_devices():
    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)


@pytest.fixture(scope="module")
def mesh():
    assert jax.device_count() == 8
    return jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


@pytest.fixture(params=["op_by_op", "jit"])
def stage(request):
    return jax.jit if request.param == "jit" else lambda f: f


def _tf(x, w):
    return tf.sin(x) * tf.reduce_sum(w * w)


def _jax(x, w):
    return jnp.sin(x) * jnp.sum(w * w)


def _mapped(f, mesh):
    return jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))


def test_shard_map(stage, mesh):
    f = _mapped(call_tf(_tf), mesh)
    assert_allclose(stage(f)(X, W), _jax(X, W), rtol=1e-5)


@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad])
def test_the_gradient_of_what_every_device_has_is_a_sum(stage, mesh, transform):
    f = _mapped(call_tf(_tf), mesh)
    actual = stage(transform(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1)))(X, W)
    expected = transform(lambda *a: (_jax(*a) ** 2).sum(), argnums=(0, 1))(X, W)
    jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=1e-4, atol=1e-5), actual, expected)


def test_forward_mode(stage, mesh):
    f = _mapped(call_tf(_tf), mesh)
    actual = stage(lambda x, w: jax.jvp(f, (x, w), (x, w)))(X, W)
    expected = jax.jvp(_jax, (X, W), (X, W))
    jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=1e-4, atol=1e-5), actual, expected)


def test_collectives_around_the_call(mesh):
    def f(x, w):
        return jax.lax.psum(call_tf(_tf)(x, w), "x")

    mapped = jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())
    expected = _jax(X, W).reshape(8, 2).sum(0)
    assert_allclose(jax.jit(mapped)(X, W), expected, rtol=1e-4, atol=1e-5)


def test_pmap():
    f = jax.pmap(call_tf(_tf), in_axes=(0, None))
    assert_allclose(f(X.reshape(8, 2), W), _jax(X, W).reshape(8, 2), rtol=1e-5)


def test_sharded_arguments(stage, mesh):
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    assert_allclose(stage(call_tf(_tf))(x, W), _jax(X, W), rtol=1e-5)


def test_arguments_on_another_device():
    device = jax.devices()[3]
    y = jax.jit(call_tf(_tf))(jax.device_put(X, device), jax.device_put(W, device))
    assert y.devices() == {device}


def test_a_variable_on_another_device():
    with tf.device("CPU:1"):
        v = tf.Variable(W, name="far")

    def scaled(x):
        return x * v

    np.testing.assert_array_equal(call_tf(scaled)(W), W * W)
    np.testing.assert_array_equal(jax.jit(call_tf(scaled, compile=False))(W), W * W)
    with pytest.raises(
        CallTfError,
        match=r"call_tf\(scaled\): .*variable far is on CPU:1, and the function is compiled for "
        r"CPU:0\. Make the variable there \(tf.device\('CPU:0'\)\), pass its value",
    ):
        jax.jit(call_tf(scaled))(W)
    with pytest.raises(CallTfError, match=r"call_tf\(vjp\(scaled\)\): .*far is on CPU:1"):
        jax.jit(jax.grad(lambda x: call_tf(scaled)(x).sum()))(W)
