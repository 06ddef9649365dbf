"""call_tf under JAX's transformations: derivatives, batches, control flow, threads."""

import concurrent.futures
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from jax2tf import CallTfError, call_tf

X = np.linspace(-2, 2, 6, dtype=np.float32)


@pytest.fixture(params=["op_by_op", "jit"])
def stage(request):
    """How the function runs: as it is, or inside jax.jit."""
    return jax.jit if request.param == "jit" else lambda f: f


def _tf(x):
    return tf.math.sin(x) * tf.math.exp(x)


def _jax(x):
    return jnp.sin(x) * jnp.exp(x)


def _sum(f):
    return lambda x: f(x).sum()


TRANSFORMATIONS = {
    "grad": lambda f: jax.grad(_sum(f)),
    "value_and_grad": lambda f: jax.value_and_grad(_sum(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x + 1,)),
    "jacfwd": jax.jacfwd,
    "jacrev": jax.jacrev,
    "hessian": lambda f: jax.hessian(_sum(f)),
    "grad_of_grad": lambda f: jax.grad(_sum(jax.grad(_sum(f)))),
    "vmap": jax.vmap,
    "vmap_of_grad": lambda f: jax.vmap(jax.grad(f)),
    "third": lambda f: jax.vmap(jax.grad(jax.grad(jax.grad(f)))),
    "grad_of_vmap": lambda f: jax.grad(lambda x: jax.vmap(jax.vmap(f))(x.reshape(2, 3)).sum()),
    "remat": lambda f: jax.grad(jax.checkpoint(_sum(f))),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, y: (f(c), f(y)), x[0], x),
    "grad_of_scan": lambda f: jax.grad(
        lambda x: jax.lax.scan(lambda c, y: (f(c) + y, None), x[0], x)[0]
    ),
    "while": lambda f: (
        lambda x: jax.lax.while_loop(lambda c: jnp.sum(c) < 50, lambda c: jnp.abs(f(c)) + 1, x)
    ),
    "cond": lambda f: lambda x: jax.lax.cond(x[0] < 0, f, lambda x: x, x),
    "map": lambda f: lambda x: jax.lax.map(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_as_jax_does_with_its_own(stage, name):
    transform = TRANSFORMATIONS[name]
    actual, expected = stage(transform(call_tf(_tf)))(X), transform(_jax)(X)
    jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=2e-5, atol=1e-5), actual, expected)


def test_complex_derivatives_are_those_of_jax(stage):
    def f_jax(z):
        return z * z * (1 + 2j) + jnp.conj(z)

    def f_tf(z):
        return z * z * (1 + 2j) + tf.math.conj(z)

    z = np.complex64(1 + 2j)
    for transform in (
        lambda f: lambda z: jax.jvp(f, (z,), (3j + z,)),
        lambda f: lambda z: jax.vjp(f, z)[1](3j + z),
        lambda f: jax.grad(lambda z: jnp.real(f(z)) ** 2),
    ):
        expected = transform(f_jax)(z)
        actual = stage(transform(call_tf(f_tf)))(z)
        jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=1e-5), actual, expected)


HOST = {
    "grad": lambda f: lambda m: jax.grad(f)(m[0]),
    "jvp": lambda f: lambda m: jax.jvp(f, (m[0],), (m[1],)),
    "hessian": lambda f: lambda m: jax.hessian(f)(m[0]),
    "vmap": jax.vmap,
    "vmap_of_grad": lambda f: jax.vmap(jax.grad(f)),
    "scan": lambda f: lambda m: jax.lax.scan(lambda c, m: (c + f(m), f(m)), 0.0, m),
    "cond": lambda f: lambda m: jax.lax.cond(m[0, 0, 0] > 0, f, jnp.sum, m[0]),
}


def _cubes(m):
    """The sum of the cubes of two rows, by an op that XLA has not."""
    return tf.reduce_sum(tf.math.segment_sum(m * m * m, [0, 1]))


@pytest.mark.parametrize("name", HOST)
def test_on_the_host_where_xla_compiles_it_not(name):
    m = np.random.default_rng(0).normal(size=(3, 2, 2)).astype(np.float32) + 2 * np.eye(2)
    m = m.astype(np.float32)
    with pytest.raises(CallTfError, match="XLA has no SegmentSum"):
        jax.jit(HOST[name](call_tf(_cubes)))(m)
    actual = jax.jit(HOST[name](call_tf(_cubes, compile=False)))(m)
    expected = HOST[name](lambda m: jnp.sum(m**3))(m)
    jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=1e-4, atol=1e-5), actual, expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex128"])
def test_derivatives_of_other_dtypes(stage, dtype):
    def total(f):
        return lambda x: jnp.real(f(x)).sum()

    with jax.enable_x64(True):
        x = jnp.asarray([0.5, -1.0], dtype)
        for transform in (jax.grad, lambda f: jax.vmap(jax.grad(f))):
            actual = stage(transform(total(call_tf(tf.sin))))(x)
            expected = transform(total(jnp.sin))(x)
            assert actual.dtype == expected.dtype == dtype
            eps = float(jnp.finfo(dtype).eps)
            wide = np.complex128
            assert_allclose(actual.astype(wide), expected.astype(wide), rtol=4 * eps)


def test_integers_have_no_gradient(stage):
    f = call_tf(lambda x, n: x * tf.cast(n, tf.float32))
    dx, dn = stage(jax.grad(f, argnums=(0, 1), allow_int=True))(2.0, 3)
    assert float(dx) == 3.0
    assert dn.dtype == jax.dtypes.float0


def test_what_is_not_connected_has_zeros(stage):
    f = call_tf(lambda x, y: x * 2)
    assert [float(g) for g in stage(jax.grad(f, argnums=(0, 1)))(1.0, 5.0)] == [2.0, 0.0]
    assert [float(t) for t in stage(lambda: jax.jvp(f, (1.0, 5.0), (1.0, 1.0)))()] == [2.0, 2.0]


def test_the_same_value_as_two_arguments(stage):
    f = call_tf(lambda x, y: x * x * y)
    x = jnp.float32(3)
    assert [float(g) for g in stage(jax.grad(f, argnums=(0, 1)))(x, x)] == [18.0, 9.0]


def test_custom_gradients_of_tensorflow_hold(stage):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: upstream * 3 * x

    assert float(stage(jax.grad(call_tf(f)))(2.0)) == 6.0
    assert float(stage(lambda x: jax.jvp(call_tf(f), (x,), (1.0,))[1])(2.0)) == 6.0


def test_custom_gradients_of_tensorflow_hold_in_batches(stage):
    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda upstream: (upstream * 3 * y, upstream * 5 * x)

    def total(x, y):
        return jax.vmap(jax.vmap(call_tf(f), (0, None)), (0, 0))(x, y).sum()

    x, y = jnp.arange(6.0).reshape(2, 3), jnp.array([2.0, 7.0])
    dx, dy = stage(jax.grad(total, argnums=(0, 1)))(x, y)
    np.testing.assert_array_equal(dx, [[6, 6, 6], [21, 21, 21]])
    np.testing.assert_array_equal(dy, 5 * x.sum(1))
    tangent = stage(lambda x, y: jax.jvp(total, (x, y), (x, y))[1])(x, y)
    assert float(tangent) == float((x * dx).sum() + (y * dy).sum())
    # The gradient is linear in y: its derivative is TensorFlow's of the custom one.
    second = stage(jax.jacfwd(jax.grad(total), argnums=1))(x, y)
    np.testing.assert_array_equal(second.sum(2), np.full((2, 3), 3))


def test_forward_mode_of_a_gradient_that_clips(stage):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1.0, 1.0)

    assert float(stage(jax.grad(call_tf(f)))(2.0)) == 1.0
    assert float(stage(lambda x: jax.jvp(call_tf(f), (x,), (1.0,))[1])(2.0)) == 4.0


def test_sparse_gradients_become_dense(stage):
    f = call_tf(lambda x: tf.reduce_sum(tf.gather(x, [0, 2, 2])))
    np.testing.assert_array_equal(stage(jax.grad(f))(jnp.ones(4)), [1, 0, 2, 0])
    assert float(stage(lambda x: jax.jvp(f, (x,), (x,))[1])(jnp.ones(4))) == 3.0


def test_derivatives_that_tensorflow_makes_for_xla_and_cannot_differentiate(stage):
    f = call_tf(lambda x: tf.slice(tf.sin(x), [1], [2]))
    x = jnp.arange(4.0)
    jvp = stage(lambda x: jax.jvp(f, (x,), (x,))[1])(x)
    assert_allclose(jvp, np.cos(x[1:3]) * x[1:3], rtol=1e-6)
    scatter = call_tf(lambda x: tf.scatter_nd([[0], [2]], x, [4]))
    np.testing.assert_array_equal(
        stage(lambda x: jax.jvp(scatter, (x,), (x,))[1])(jnp.ones(2)), [1, 0, 1, 0]
    )


def test_float8_has_no_gradient_in_tensorflow():
    f = call_tf(lambda x: tf.cast(x, tf.float32))
    with pytest.raises(CallTfError, match=r"does not differentiate float8_e5m2 \(argument x\)"):
        jax.vjp(f, jnp.ones(2, jnp.float8_e5m2))[1](jnp.ones(2))


def test_linear_functions_can_be_transposed(stage):
    f = call_tf(lambda x: 2 * x[1:])
    x = jnp.arange(3.0)
    (y,) = stage(lambda c: jax.linear_transpose(f, x)(c))(jnp.ones(2))
    np.testing.assert_array_equal(y, [0, 2, 2])


def _normalized(x):
    return tf.raw_ops.LRN(input=x)


def _no_rule(x):
    return tf.foldl(lambda a, b: a * 0.5 + tf.sin(b), x[0])


class TestBatches:
    def test_axes_and_arguments_that_are_not_mapped(self, stage):
        f = call_tf(lambda x, y: tf.tensordot(x, y, 1))
        x, y = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.ones(3, np.float32)
        np.testing.assert_array_equal(stage(jax.vmap(f, (1, None)))(x, y), x.sum(0))

    def test_a_loop_where_there_is_no_rule_and_the_jaxpr_says_so(self, stage):
        x = np.random.default_rng(0).normal(size=(2, 1, 2, 2, 3)).astype(np.float32)
        f = jax.vmap(call_tf(_normalized))
        expected = np.stack([_normalized(e) for e in x])
        assert_allclose(stage(f)(x), expected, rtol=1e-6)
        assert "vmap_by_loop(_normalized)" in str(jax.make_jaxpr(f)(x))
        assert "vmap(_tf)" in str(jax.make_jaxpr(jax.vmap(call_tf(_tf)))(X))

    def test_the_gradient_of_a_loop_is_a_loop_and_the_module_says_so(self):
        x = np.random.default_rng(0).normal(size=(2, 1, 2, 2, 3)).astype(np.float32)
        f = jax.jit(jax.vmap(jax.grad(_sum(call_tf(_no_rule)))))
        assert "vmap_by_loop_vjp__no_rule" in f.lower(x).as_text()

    def test_the_gradient_of_a_loop(self, stage):
        x = np.random.default_rng(0).normal(size=(2, 1, 2, 2, 3)).astype(np.float32)
        f = call_tf(_normalized)
        expected = np.stack([jax.grad(_sum(f))(e) for e in x])
        assert_allclose(stage(jax.grad(_sum(jax.vmap(f))))(x), expected, rtol=1e-5)

    def test_a_loop_where_xla_does_not_compile_the_rule(self, stage):
        f = jax.vmap(call_tf(lambda x: tf.foldl(lambda a, b: a * 0.5 + tf.sin(b), x)))
        x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
        expected = jax.vmap(
            lambda x: jax.lax.scan(lambda a, b: (a * 0.5 + jnp.sin(b), None), x[0], x[1:])[0]
        )
        assert_allclose(stage(f)(x), expected(x), rtol=1e-5, atol=1e-6)
        gradient = stage(jax.grad(_sum(f)))(x)
        assert_allclose(gradient, jax.grad(_sum(expected))(x), rtol=1e-5, atol=1e-6)

    def test_on_the_host(self):
        f = call_tf(lambda x: tf.strings.length(tf.strings.as_string(x)), compile=False)
        np.testing.assert_array_equal(jax.jit(jax.vmap(f))(np.array([1, 10, 100])), [1, 2, 3])


def test_on_eight_devices():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    script = Path(__file__).with_name("call_tf_on_devices.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(script)],
        env=os.environ | {"XLA_FLAGS": flags.strip()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_threads_that_are_the_first_to_differentiate():
    """TensorFlow builds gradients of nested functions once, and no two threads may do so."""

    def differentiated():
        ready = threading.Barrier(3)
        nested = tf.function(lambda x: tf.sin(x) * x, autograph=False)
        f = jax.grad(call_tf(tf.function(lambda x: nested(x) + nested(x * 2), autograph=False)))

        def work(_):
            ready.wait()
            return f(np.float32(0.5))

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            return list(pool.map(work, range(3)))

    actual = [differentiated() for _ in range(10)]
    expected = jax.grad(lambda x: jnp.sin(x) * x + jnp.sin(x * 2) * x * 2)(0.5)
    assert_allclose(actual, np.full((10, 3), expected), rtol=1e-5)


def _used_op_by_op(called):
    jax.jvp(called, (0.3,), (1.0,))


def _used_by_a_tape(called):
    x = tf.constant(0.3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = called.function(x)
    tape.gradient(y, x)


@pytest.mark.parametrize("use", [lambda called: None, _used_op_by_op, _used_by_a_tape])
@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad,
        lambda f: jax.grad(jax.checkpoint(f)),
        jax.jacfwd,
        jax.hessian,
        lambda f: jax.grad(jax.hessian(f)),
        lambda f: lambda x: jax.vmap(jax.hessian(f))(jnp.stack([x, -x])),
    ],
)
def test_a_branch_in_a_graph_of_its_own(derivative, use):
    """TensorFlow makes of tf.cond's gradient what XLA does not compile, unless told in time."""
    function = tf.function(
        lambda x: tf.cond(x > 0, lambda: tf.sin(x) * x, lambda: x * 3), autograph=False
    )
    called = call_tf(function)
    called.function = function
    use(called)
    expected = derivative(lambda x: jnp.where(x > 0, jnp.sin(x) * x, x * 3))(jnp.float32(0.3))
    assert_allclose(jax.jit(derivative(called))(jnp.float32(0.3)), expected, rtol=1e-5)
    assert_allclose(derivative(called)(jnp.float32(0.3)), expected, rtol=1e-5)


def test_threads():
    """Eight threads call one and different functions, eagerly and compiled, and none waits long."""
    v = tf.Variable(2.0)
    shared = call_tf(lambda x: x * v)
    host = call_tf(lambda x: tf.sin(x), compile=False)

    def work(n):
        own = call_tf(lambda x: x + n)
        x = np.full(8, n, np.float32)
        for _ in range(5):
            np.testing.assert_array_equal(jax.jit(shared)(x), 2 * x)
            np.testing.assert_array_equal(shared(x), 2 * x)
            np.testing.assert_array_equal(jax.jit(own)(x), x + n)
            np.testing.assert_array_equal(jax.vmap(jax.grad(shared))(x), np.full(8, 2.0))
            assert_allclose(jax.jit(host)(x), np.sin(x), rtol=1e-6)
        return n

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(work, n) for n in range(8)]
        assert [f.result(timeout=120) for f in futures] == list(range(8))
