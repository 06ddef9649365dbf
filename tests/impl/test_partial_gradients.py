"""Gradients of some arguments, where JAX has none of others: only what is asked for counts."""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

P = np.array([1.5, -2.0, 0.5], np.float32)
X = np.array([0.25, 3.0, -1.0], np.float32)
N = np.array([2, 0, 1], np.int32)
Z = np.array([1 + 2j, -0.5j, 3], np.complex64)


def doubled(x):
    """A loop of unknown length, which JAX does not differentiate in reverse mode."""
    return lax.while_loop(lambda c: jnp.abs(c).sum() < 50, lambda c: c * 1.5, x)


def conjugate_gradients(matrix, target):
    """Solves by a loop over a pytree; it ends when the residual is small."""
    zeros = jnp.zeros_like(target)
    state = {"x": zeros, "r": target, "p": target, "i": 0}

    def step(s):
        moved = matrix @ s["p"]
        rate = (s["r"] @ s["r"]) / (s["p"] @ moved)
        r = s["r"] - rate * moved
        along = (r @ r) / (s["r"] @ s["r"])
        return {"x": s["x"] + rate * s["p"], "r": r, "p": r + along * s["p"], "i": s["i"] + 1}

    return lax.while_loop(lambda s: (s["i"] < 9) & (s["r"] @ s["r"] > 1e-9), step, state)["x"]


def window(x):
    """A reduction of windows that JAX has no derivative of."""
    return lax.reduce_window(x, np.float32(0), lambda a, b: a * b + a + b, (2,), (1,), "SAME")


# Functions of p, of which JAX has a gradient, and of another argument, of which it has none.
MODELS = {
    "while": (lambda p, x: (doubled(x) * p).sum(), X),
    "while of complex numbers": (lambda p, z: (jnp.abs(doubled(z)) * p).sum(), Z),
    "complex result": (lambda p, x: doubled(x) * (p + 1j), X),
    "while of integers": (lambda p, n: (doubled(n.astype(np.float32)) * p).sum(), N),
    "window": (lambda p, x: (window(x) * jnp.sin(p)).sum(), X),
    "update": (lambda p, x: (jnp.asarray(x).at[0].apply(jnp.sin) * p).sum(), X),
    "conjugate gradients": (
        lambda p, m: conjugate_gradients(np.eye(3, dtype=np.float32) + jnp.outer(m, m), X) @ p,
        X,
    ),
    "in a jit": (lambda p, x: jax.jit(lambda x: doubled(x) * 2)(x) @ p, X),
    "in a branch": (lambda p, x: lax.cond(p[0] > 0, doubled, jnp.cos, x) @ p, X),
}
WRAPS = {
    "eager": lambda f: f,
    "graph": functools.partial(tf.function, autograph=False),
    "compiled": functools.partial(tf.function, autograph=False, jit_compile=True),
}
each_wrap = pytest.mark.parametrize("wrap", WRAPS)
each_model = pytest.mark.parametrize("model", MODELS)
without_warnings = pytest.mark.filterwarnings("ignore:.*JAX has no gradient")


def expected(fun, x):
    """JAX's gradient of p, conjugated as TensorFlow has it where the result is complex."""
    result, pullback = jax.vjp(lambda p: fun(p, x), P)
    return pullback(jnp.ones_like(result))[0]


def save(folder, fun, *signature):
    module = tf.Module()
    module.f = tf.function(fun, autograph=False, input_signature=signature)
    tf.saved_model.save(module, str(folder))
    return tf.saved_model.load(str(folder)).f


@without_warnings
@each_wrap
@each_model
@pytest.mark.parametrize("watched", ["one", "both"])
def test_an_argument_that_has_one(model, wrap, watched):
    fun, x = MODELS[model]
    p, x = tf.constant(P), tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(p)
        if watched == "both" and x.dtype != tf.int32:
            tape.watch(x)
        y = WRAPS[wrap](jax2tf.convert(fun))(p, x)
    np.testing.assert_allclose(tape.gradient(y, p), expected(fun, x.numpy()), rtol=1e-5)


@without_warnings
@each_model
def test_restored(tmp_path, model):
    fun, x = MODELS[model]
    f = save(tmp_path, jax2tf.convert(fun), tf.TensorSpec([3]), tf.TensorSpec(x.shape, x.dtype))
    p, x = tf.constant(P), tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(p)
        y = f(p, x)
    np.testing.assert_allclose(tape.gradient(y, p), expected(fun, x.numpy()), rtol=1e-5)


@pytest.mark.parametrize("model", ["while", "window", "update", "while of complex numbers"])
@pytest.mark.parametrize("asked", ["other", "both"])
@pytest.mark.parametrize("place", ["eager", "tape in a graph", "tf.gradients"])
def test_what_is_asked_for_is_refused(model, asked, place):
    fun, x = MODELS[model]
    converted = jax2tf.convert(fun)

    def gradient(p, x):
        sources = [x] if asked == "other" else [p, x]
        if place == "tf.gradients":
            return tf.gradients(converted(p, x), sources)
        with tf.GradientTape() as tape:
            tape.watch([p, x])
            y = converted(p, x)
        return tape.gradient(y, sources)

    run = gradient if place == "eager" else tf.function(gradient, autograph=False)
    with pytest.raises(jax2tf.NotDifferentiableError, match=r"stop_gradient of argument") as error:
        run(tf.constant(P), tf.constant(x))
    assert "JAX cannot differentiate" in str(error.value)


@pytest.mark.parametrize("place", ["graph", "restored"])
def test_what_a_graph_does_not_have_is_nan_and_said_once(tmp_path, place):
    converted = jax2tf.convert(MODELS["while"][0])
    spec = tf.TensorSpec([3])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if place == "graph":
            f = tf.function(converted, autograph=False)
        else:
            f = save(tmp_path, converted, spec, spec)
        p, x = tf.constant(P), tf.constant(X)
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch([p, x])
                y = f(p, x)
            of_p, of_x = tape.gradient(y, [p, x])
    np.testing.assert_allclose(of_p, expected(MODELS["while"][0], X), rtol=1e-5)
    assert np.isnan(of_x).all()
    (message,) = [str(w.message) for w in caught if "no gradient" in str(w.message)]
    assert "argument x: Reverse-mode differentiation" in message
    assert "\n" not in message


@without_warnings
@each_wrap
def test_a_result_that_has_one_of_each_argument(wrap):
    def both(p, x):
        return p * x, doubled(x)

    f = WRAPS[wrap](jax2tf.convert(both))
    p, x = tf.constant(P), tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([p, x])
        product, looped = f(p, x)
    np.testing.assert_array_equal(tape.gradient(product, p), X)
    np.testing.assert_array_equal(tape.gradient(product, x), P)
    np.testing.assert_array_equal(tape.gradient(looped, p), np.zeros(3))
    if wrap == "eager":
        with pytest.raises(jax2tf.NotDifferentiableError, match="while_loop"):
            tape.gradient(looped, x)
    else:
        assert np.isnan(tape.gradient(looped, x)).all()


@without_warnings
@each_wrap
def test_variables_of_a_module(wrap):
    module = jax2tf.Module(lambda p: (doubled(p["x"]) * p["w"]).sum(), {"w": P, "x": X})
    with tf.GradientTape(persistent=True) as tape:
        y = WRAPS[wrap](module)()
    gradient = tape.gradient(y, module.parameters["w"])
    np.testing.assert_allclose(gradient, doubled(X), rtol=1e-6)
    if wrap == "eager":
        with pytest.raises(jax2tf.NotDifferentiableError, match=r"stop_gradient of argument p\['x"):
            tape.gradient(y, module.parameters["x"])


@pytest.mark.parametrize("asked", ["w", "v"])
@pytest.mark.parametrize("place", ["eager", "graph"])
def test_what_was_computed_before(asked, place):
    """The remedy of the message leaves the gradient that was wanted."""
    converted = jax2tf.convert(MODELS["while"][0])
    w, v = tf.Variable(P), tf.Variable(X)
    stop = tf.stop_gradient if asked == "w" else (lambda x: x)

    def gradient():
        with tf.GradientTape() as tape:
            y = converted(w * 2.0, stop(v * 2.0))
        return tape.gradient(y, {"w": w, "v": v}[asked])

    run = gradient if place == "eager" else tf.function(gradient, autograph=False)
    if asked == "w":
        np.testing.assert_allclose(run(), 2 * doubled(2 * X), rtol=1e-6)
    else:
        with pytest.raises(jax2tf.NotDifferentiableError, match="while_loop"):
            run()


def test_a_second_order_of_what_has_one():
    def fun(p, x):
        return (doubled(x) * p**3).sum()

    p, x = tf.constant(P), tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as inner:
            inner.watch([p, x])
            y = jax2tf.convert(fun)(p, x)
        gradient = inner.gradient(y, p)
    np.testing.assert_allclose(outer.gradient(gradient, p), doubled(X) * 6 * P, rtol=1e-5)


def orbit(state):
    """Two bodies, until they have gone once around."""

    def step(s):
        pull = -s["q"] / jnp.sum(s["q"] ** 2) ** 1.5
        v = s["v"] + 0.1 * pull
        return {"q": s["q"] + 0.1 * v, "v": v, "t": s["t"] + 0.1}

    return lax.while_loop(lambda s: s["t"] < 1, step, {**state, "t": jnp.zeros(())})


SOLVERS = {
    "orbit": (orbit, {"q": P, "v": X}),
    "conjugate gradients": (lambda t: conjugate_gradients(jnp.diag(2 + t * t), t), X),
}


@pytest.mark.parametrize("open_size", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_saving_what_has_no_gradient_at_all(tmp_path, name, open_size):
    fun, arrays = SOLVERS[name]
    spec = jax.tree.map(lambda x: tf.TensorSpec([None if open_size else len(x)]), arrays)
    converted = jax2tf.convert(fun, polymorphic_shapes="n" if open_size else None)
    with pytest.warns(UserWarning, match="JAX has no gradient with respect to argument"):
        f = save(tmp_path, converted, spec)
    x = jax.tree.map(tf.constant, arrays)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), y, fun(arrays)
    )
    if name == "orbit":  # its time has one, which is zero
        assert all(np.isnan(g).all() for g in tf.nest.flatten(tape.gradient(y, x)))
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="JAX cannot differentiate it"):
            tape.gradient(y, x)
