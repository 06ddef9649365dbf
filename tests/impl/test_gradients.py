"""Gradients of converted functions: JAX's own, in every way that TensorFlow asks for them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.running import first_and_second


def tf_gradient(fun, *args):
    """The gradient of fun's sum with respect to all of its arguments, by a tape."""
    tensors = [tf.convert_to_tensor(a) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = tf.reduce_sum(fun(*tensors))
    return tape.gradient(result, tensors)


def assert_close(actual, expected, rtol=1e-5):
    __tracebackhide__ = True
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol)


def product(x, y):
    return jnp.sin(x) * y + jnp.exp(y)


X = np.array([0.5, -1.0, 2.0], np.float32)
Y = np.array([1.5, 0.25, -2.0], np.float32)
WAYS = {
    "eager": lambda fun: fun,
    "tape inside the graph": lambda fun: tf.function(fun, autograph=False),
    "compiled": lambda fun: tf.function(fun, autograph=False, jit_compile=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jitted"])
def test_first_order(way, wrap):
    converted = jax2tf.convert(wrap(product))
    actual = WAYS[way](lambda x, y: tf_gradient(converted, x, y))(X, Y)
    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_tape_around_a_graph(jit_compile):
    graph = tf.function(jax2tf.convert(product), autograph=False, jit_compile=jit_compile)
    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    graph(X, Y)  # traced while no tape watches
    for a, e in zip(tf_gradient(graph, X, Y), expected, strict=True):
        assert_close(a, e)


def test_tf_gradients():
    converted = jax2tf.convert(product)

    @tf.function(autograph=False)
    def gradients(x, y):
        return tf.gradients(converted(x, y), [x, y])

    expected = jax.grad(lambda *a: product(*a).sum(), argnums=(0, 1))(X, Y)
    for a, e in zip(gradients(tf.constant(X), tf.constant(Y)), expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("way", WAYS)
def test_nested_tapes(way):
    def fun(x):
        return jnp.sin(x) * x**2

    converted = jax2tf.convert(fun)

    def third(x):
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = converted(x)
                d1 = t1.gradient(y, x)
            d2 = t2.gradient(d1, x)
        return d1, d2, t3.gradient(d2, x)

    x = np.float32(0.7)
    d1 = jax.grad(fun)
    d2 = jax.grad(d1)
    expected = (d1(x), d2(x), jax.grad(d2)(x))
    for a, e in zip(WAYS[way](third)(tf.constant(x)), expected, strict=True):
        assert_close(a, e)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shapes", [None, "b"])
def test_nested_tapes_around_a_graph(shapes, jit_compile):
    def fun(x):
        return jnp.sum(jnp.sin(x) * x**2) / x.shape[0]

    converted = jax2tf.convert(fun, polymorphic_shapes=shapes)
    graph = tf.function(converted, autograph=False, jit_compile=jit_compile)
    expected = jax.grad(fun)(X), jax.grad(lambda x: jnp.sum(jax.grad(fun)(x) ** 2))(X)
    for a, e in zip(first_and_second(graph, tf.constant(X)), expected, strict=True):
        assert_close(a, e, rtol=1e-4)
    inside = tf.function(first_and_second, autograph=False)
    for a, e in zip(inside(converted, tf.constant(X)), expected, strict=True):
        assert_close(a, e, rtol=1e-4)


def test_the_rules_are_jaxs():
    assert float(tf_gradient(jax2tf.convert(jax.nn.relu), np.float32(0))[0]) == 0

    @jax.custom_vjp
    def doubled(x):
        return x

    doubled.defvjp(lambda x: (x, None), lambda _, ct: (ct * 2,))
    assert float(tf_gradient(jax2tf.convert(doubled), np.float32(3))[0]) == 2

    @jax.custom_jvp
    def tripled(x):
        return x

    tripled.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 3))
    assert float(tf_gradient(jax2tf.convert(tripled), np.float32(3))[0]) == 3


def test_integers_and_unused_arguments():
    def fun(x, n, unused):
        return x * n, n + 1

    converted = jax2tf.convert(fun)
    x, n, unused = tf.constant(2.0), tf.constant(3), tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, unused])
        y, m = converted(x, n, unused)
    assert float(tape.gradient(y, x)) == 3
    assert float(tape.gradient(y, unused)) == 0
    assert tape.gradient(m, x) is None or float(tape.gradient(m, x)) == 0
    assert int(m) == 4


def test_complex():
    def fun(z):
        return jnp.abs(z * z + z) ** 2

    z = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
    expected = jax.grad(lambda z: fun(z).sum())(z)
    # TensorFlow's convention for a complex argument is the conjugate of JAX's.
    assert_close(tf_gradient(jax2tf.convert(fun), z)[0], np.conj(expected), rtol=1e-4)


def test_forward_mode():
    converted = jax2tf.convert(product)
    x, y = tf.constant(X), tf.constant(Y)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        result = converted(x, y)
    _, expected = jax.jvp(lambda x: product(x, Y), (X,), (np.ones_like(X),))
    assert_close(accumulator.jvp(result), expected)


def test_variables():
    weights = {"w": tf.Variable(X), "b": tf.Variable(Y)}
    converted = jax2tf.convert(lambda p, x: p["w"] * x + p["b"])
    with tf.GradientTape() as tape:
        result = tf.reduce_sum(converted(weights, X))
    gradients = tape.gradient(result, weights)
    assert_close(gradients["w"], X)
    assert_close(gradients["b"], np.ones(3))


def test_switched_off():
    converted = jax2tf.convert(product, with_gradient=False)
    assert_close(converted(X, Y), product(X, Y))
    with pytest.raises(LookupError, match=r"convert\(product, with_gradient=False\) was asked for"):
        tf_gradient(converted, X, Y)


def test_switched_off_in_a_graph_for_engines():
    converted = jax2tf.convert(product, with_gradient=False, enable_xla=False)
    function = tf.function(converted, autograph=False)
    graph = function.get_concrete_function(tf.constant(X), tf.constant(Y)).graph
    assert "PreventGradient" not in {op.type for op in graph.get_operations()}
    with pytest.raises(LookupError, match=r"jax2tf\.convert\.product\.with_gradient\.False"):
        tf_gradient(function, X, Y)


def test_a_training_step_computes_forward_once():
    def fun(x):
        return jnp.sum(jnp.exp(jnp.sin(x)))

    converted = jax2tf.convert(fun)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([3])])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return y, tape.gradient(y, x)

    graph = step.get_concrete_function().graph.as_graph_def()
    ops = [n.op for n in graph.node] + [n.op for f in graph.library.function for n in f.node_def]
    assert (ops.count("Sin"), ops.count("Exp")) == (1, 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_among_the_residuals_selects(way):
    converted = jax2tf.convert(lambda x: jnp.max(x, 1))
    x = np.array([[1, 1, 0], [np.nan, 1, 0]], np.float32)
    (gradient,) = WAYS[way](lambda x: tf_gradient(converted, x))(x)
    np.testing.assert_array_equal(gradient, [[0.5, 0.5, 0], [0, 0, 0]])


def test_nothing_of_the_gradient_is_made_before_it_is_asked_for():
    traces = []

    @jax.custom_vjp
    def fun(x):
        return x

    fun.defvjp(lambda x: (x, None), lambda _, ct: (traces.append("backward") or ct,))
    graph = tf.function(jax2tf.convert(fun), autograph=False)
    graph(X)
    assert traces == []
    assert_close(tf_gradient(graph, X)[0], np.ones(3))
    assert traces


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: jnp.linalg.inv(a),
        lambda a: jnp.linalg.solve(a, jnp.ones(3)),
        lambda a: jnp.linalg.det(a),
        lambda a: jnp.linalg.qr(a)[1],
        lambda a: jax.scipy.linalg.expm(a),
        lambda a: jax.lax.cond(a[0, 0] > 0, jnp.sin, jnp.cos, a),
        lambda a: jax.lax.scan(lambda c, x: (c @ jnp.tanh(a), x * c), jnp.eye(3), a)[1],
    ],
    ids=["inv", "solve", "det", "qr", "expm", "cond", "scan"],
)
@pytest.mark.parametrize("way", WAYS)
def test_loops_and_branches_inside(fun, way):
    a = np.eye(3, dtype="float32") + np.arange(9, dtype="float32").reshape(3, 3) / 20
    converted = jax2tf.convert(fun)
    gradient = WAYS[way](lambda a: tf_gradient(converted, a))
    expected = jax.jit(jax.grad(lambda a: jnp.sum(fun(a))))(a)
    np.testing.assert_allclose(gradient(tf.constant(a))[0], expected, rtol=2e-5, atol=2e-5)
