"""Converted functions inside of TensorFlow's control flow, differentiated, saved and restored."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf

X = np.array([0.5, -1.0, 2.0], np.float32)


@jax.custom_vjp
def steep(x):
    """The identity, with a slope of 7: nobody but JAX knows its gradient."""
    return x * 1.0


steep.defvjp(lambda x: (steep(x), None), lambda _, cotangent: (cotangent * 7.0,))


def guarded(carry, x):
    carry = jnp.where(jnp.isnan(carry), 0.0, carry) * 1.5
    carry += jnp.sqrt(jnp.where(x > 0, x, 1.0)) * jnp.where(x > 0, 1.0, 0.0)
    return carry, carry


PROGRAMS = {
    "sin": lambda x: jnp.sin(x).sum(),
    "own rule": lambda x: steep(x).sum() * 0.1,
    "scan": lambda x: lax.scan(lambda c, a: (c * a + jnp.sin(a), c), 0.5, x)[0],
    "scan over a guard": lambda x: lax.scan(guarded, 0.3, x)[1].sum(),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.cos(c), x).sum(),
    "cond": lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x).sum(),
}
LOOPS = {"scan", "scan over a guard", "loop"}


def repeated(f, x):
    y = 1.0
    for _ in range(3):
        y = y * f(x) + 0.1
    return y


# What TensorFlow has around the function, and the same in JAX.
AROUND = {
    "cond": (
        lambda f, x: tf.cond(tf.reduce_sum(x) > 0, lambda: f(x), lambda: f(x * 2)),
        lambda f, x: lax.cond(x.sum() > 0, f, lambda x: f(x * 2), x),
    ),
    "switch_case": (
        lambda f, x: tf.switch_case(
            tf.cast(tf.reduce_sum(x) > 0, tf.int32), [lambda: f(x), lambda: f(x * 3)]
        ),
        lambda f, x: lax.cond(x.sum() > 0, lambda x: f(x * 3), f, x),
    ),
    "cond in cond": (
        lambda f, x: tf.cond(
            tf.reduce_sum(x) > 0,
            lambda: tf.cond(x[0] > 0, lambda: f(x), lambda: f(x * 2)),
            lambda: f(x * 3),
        ),
        lambda f, x: f(x),
    ),
    "while_loop": (
        lambda f, x: tf.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a * f(x) + 0.1), (0, tf.constant(1.0))
        )[1],
        repeated,
    ),
    "map_fn": (
        lambda f, x: tf.reduce_sum(tf.map_fn(f, tf.stack([x, x * 2]))),
        lambda f, x: f(x) + f(x * 2),
    ),
    "vectorized_map": (
        lambda f, x: tf.reduce_sum(tf.vectorized_map(f, tf.stack([x, x * 2]))),
        lambda f, x: f(x) + f(x * 2),
    ),
}


def around_function(name, around, specs, order=1, jit_compile=False):
    converted = jax2tf.convert(PROGRAMS[name], polymorphic_shapes=specs, saved_gradient_order=order)
    return tf.function(
        lambda x: AROUND[around][0](converted, x),
        autograph=False,
        input_signature=[tf.TensorSpec([None if specs else len(X)])],
        jit_compile=jit_compile,
    )


def restored(function, path):
    module = tf.Module()
    module.f = function
    tf.saved_model.save(module, str(path))
    # The functions live as long as the module.
    module = tf.saved_model.load(str(path))
    return lambda x: module.f(x)


def value_and_gradient(f, x):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tf.convert_to_tensor(tape.gradient(y, x))


def second_gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, gradient = value_and_gradient(f, x)
        total = tf.reduce_sum(gradient**2)
    return tf.convert_to_tensor(tape.gradient(total, x))


def assert_as_jax(f, name, around):
    def wanted(x):
        return AROUND[around][1](PROGRAMS[name], x)

    for got, want in zip(value_and_gradient(f, X), jax.value_and_grad(wanted)(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# The sizes are known and open in turn: each program and each thing around it has both of them, and
# each program has each thing around it once.
@pytest.mark.parametrize(
    ("name", "specs", "around"),
    [
        pytest.param(name, (None, "b")[(i + j) % 2], around, id=f"{name}-{around}")
        for i, name in enumerate(PROGRAMS)
        for j, around in enumerate(AROUND)
    ],
)
def test_gradient_in_control_flow(name, specs, around, tmp_path):
    f = around_function(name, around, specs)
    assert_as_jax(f, name, around)
    assert_as_jax(restored(f, tmp_path), name, around)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ["own rule", "cond"])
def test_second_gradient_in_control_flow(name, around, tmp_path):
    def wanted(x):
        return (jax.grad(lambda x: AROUND[around][1](PROGRAMS[name], x))(x) ** 2).sum()

    f = around_function(name, around, None, order=2)
    want = jax.grad(wanted)(X)
    np.testing.assert_allclose(second_gradient(f, X), want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        second_gradient(restored(f, tmp_path), X), want, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("around", ["cond", "switch_case", "cond in cond", "vectorized_map"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_in_compiled_control_flow(name, around):
    if around == "vectorized_map" and name in LOOPS:
        pytest.skip("XLA takes no gradient of a loop that tf.vectorized_map wrote")
    assert_as_jax(around_function(name, around, None, jit_compile=True), name, around)


@pytest.mark.parametrize("around", AROUND)
def test_tape_inside_of_what_is_saved(around, tmp_path):
    converted = jax2tf.convert(PROGRAMS["own rule"])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([len(X)])])
    def gradient(x):
        return value_and_gradient(lambda x: AROUND[around][0](converted, x), x)

    want = jax.value_and_grad(lambda x: AROUND[around][1](PROGRAMS["own rule"], x))(X)
    for f in (gradient, restored(gradient, tmp_path)):
        for got, expected in zip(f(tf.constant(X)), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("around", ["cond", "while_loop", "vectorized_map"])
def test_accumulator_in_control_flow(around):
    converted = jax2tf.convert(PROGRAMS["sin"])

    @tf.function(autograph=False)
    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = AROUND[around][0](converted, x)
        return accumulator.jvp(y)

    def wanted(x):
        return AROUND[around][1](PROGRAMS["sin"], x)

    want = jax.jvp(wanted, (X,), (np.ones_like(X),))[1]
    np.testing.assert_allclose(tangent(tf.constant(X)), want, rtol=1e-4)


class TestVectorizedMap:
    """tf.vectorized_map makes other ops of a function's: their gradients are still JAX's."""

    ROWS = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 3.0]], np.float32)

    def test_kink(self):
        x = tf.constant(self.ROWS)
        for f in (jax.nn.relu, jnp.abs):
            for wrap in (tf.function, lambda g: g):
                converted = wrap(jax2tf.convert(f))
                got = value_and_gradient(lambda x, g=converted: tf.vectorized_map(g, x), x)[1]
                np.testing.assert_array_equal(
                    got, jax.grad(lambda x, f=f: jax.vmap(f)(x).sum())(self.ROWS)
                )

    @pytest.mark.parametrize("rows", [0, 1, 3])
    @pytest.mark.parametrize("compiled", [True, False])
    @pytest.mark.parametrize("target", ["xla", "tensorflow"])
    def test_sorts_of_rows(self, rows, compiled, target):
        def sorts(x, y):
            pair = jax.lax.sort((x, y * 2), num_keys=1)
            return jnp.sort(x)[::-1], jnp.argsort(y, axis=-1), pair, jnp.median(x)

        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        y = np.float32([3, 1, 2, 0])
        converted = jax2tf.convert(sorts, target=target, with_gradient=False)
        mapped = tf.function(
            lambda x: tf.vectorized_map(lambda row: converted(row, y), x),
            jit_compile=compiled, autograph=False,
        )  # fmt: skip
        wanted = jax.vmap(sorts, (0, None))(x, y)
        for got, want in zip(tf.nest.flatten(mapped(x)), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(got, want)

    def test_argument_that_is_the_same_in_all_rows(self):
        def f(x, w, n):
            return steep(x) * w, jax.nn.relu(w) * n.astype(jnp.float32), n + 1

        def wanted(x, w):
            a, b, _ = jax.vmap(f, (0, None, 0))(x, w, n)
            return a.sum() + (b**2).sum()

        n, w = np.array([2, 3], np.int32), np.array([1.0, -2.0, 0.0], np.float32)
        converted = jax2tf.convert(f)

        @tf.function(autograph=False)
        def gradients(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                a, b, _ = tf.vectorized_map(
                    lambda row: converted(row[0], w, row[1]), (x, tf.constant(n))
                )
                y = tf.reduce_sum(a) + tf.reduce_sum(b**2)
            return tape.gradient(y, [x, w])

        got = gradients(tf.constant(self.ROWS), tf.constant(w))
        for g, want in zip(got, jax.grad(wanted, (0, 1))(self.ROWS, w), strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-6)

    def test_complex(self):
        def f(z):
            return steep(z) * z

        z = (self.ROWS * (1 + 2j)).astype(np.complex64)
        converted = jax2tf.convert(f)
        got = []
        for mapped in (
            lambda z: tf.vectorized_map(converted, z),
            lambda z: tf.stack([converted(row) for row in tf.unstack(z)]),
        ):
            got.append(value_and_gradient(tf.function(mapped, autograph=False), z)[1])
        np.testing.assert_allclose(got[0], got[1], rtol=1e-6)

    @pytest.mark.parametrize("wrap", [tf.function, lambda f: f], ids=["graph", "eager"])
    def test_call_tf_with_a_variable(self, wrap):
        v = tf.Variable([2.0, 3.0, 4.0])
        inner = jax2tf.call_tf(lambda x: x * v)
        converted = jax2tf.convert(lambda x: steep(inner(x)))

        @wrap
        def gradients(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.vectorized_map(converted, x))
            return list(map(tf.convert_to_tensor, tape.gradient(y, [x, v])))

        of_x, of_v = gradients(tf.constant(self.ROWS))
        np.testing.assert_allclose(of_x, np.broadcast_to(7 * v.numpy(), self.ROWS.shape))
        np.testing.assert_allclose(of_v, 7 * self.ROWS.sum(0))

    @pytest.mark.parametrize("wrap", [tf.function, lambda f: f], ids=["graph", "eager"])
    def test_gradient_of_a_jacobian(self, wrap):
        def f(x):
            return steep(x) * x

        @wrap
        def of_jacobian(x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = converted(x)
                total = tf.reduce_sum(tape.jacobian(y, x) ** 2)
            return outer.gradient(total, x)

        converted = jax2tf.convert(f)
        want = jax.grad(lambda x: (jax.jacrev(f)(x) ** 2).sum())(X)
        np.testing.assert_allclose(of_jacobian(tf.constant(X)), want, rtol=1e-5)


VARIABLE = [1.0, 2.0, 3.0]
AROUND_VARIABLES = {
    **{name: AROUND[name] for name in ("cond", "switch_case", "while_loop", "map_fn")},
    "cond in while_loop": (
        lambda f, x: AROUND["while_loop"][0](lambda x: AROUND["cond"][0](f, x), x),
        lambda f, x: repeated(lambda x: AROUND["cond"][1](f, x), x),
    ),
    "while_loop in cond": (
        lambda f, x: AROUND["cond"][0](lambda x: AROUND["while_loop"][0](f, x), x),
        lambda f, x: AROUND["cond"][1](lambda x: repeated(f, x), x),
    ),
}


def reads_variable(around):
    """A function that reads a variable through call_tf inside of control flow."""
    variable = tf.Variable(VARIABLE)
    scaled = jax2tf.call_tf(lambda x: x * variable)
    converted = jax2tf.convert(lambda x: jnp.sin(scaled(x)).sum())
    return variable, lambda x: AROUND_VARIABLES[around][0](converted, x)


def gradients_of(function, variable):
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, *map(tf.convert_to_tensor, tape.gradient(y, (x, variable)))

    return gradients


def assert_as_jax_of_variable(gradients, variable, around):
    def wanted(x, v):
        return AROUND_VARIABLES[around][1](lambda x: jnp.sin(x * v).sum(), x)

    v = variable.numpy()
    for x in (X, -X):
        want = (wanted(x, v), *jax.grad(wanted, (0, 1))(x, v))
        for got, expected in zip(gradients(tf.constant(x)), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("around", AROUND_VARIABLES)
def test_gradient_of_a_variable_in_control_flow(around):
    variable, function = reads_variable(around)
    gradients = gradients_of(tf.function(function, autograph=False), variable)
    for values in (VARIABLE, [-0.5, 0.25, 2.0]):
        variable.assign(values)
        assert_as_jax_of_variable(gradients, variable, around)


@pytest.mark.parametrize("around", AROUND_VARIABLES)
def test_saved_gradient_of_a_variable_in_control_flow(around, tmp_path):
    module = tf.Module()
    module.variable, function = reads_variable(around)
    signature = [tf.TensorSpec([len(X)])]
    gradients = gradients_of(function, module.variable)
    module.f = tf.function(gradients, autograph=False, input_signature=signature)
    assert_as_jax_of_variable(module.f, module.variable, around)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert_as_jax_of_variable(loaded.f, loaded.variable, around)


@pytest.mark.parametrize("around", ["cond", "switch_case"])
def test_gradient_of_a_variable_in_compiled_control_flow(around):
    variable, function = reads_variable(around)
    compiled = tf.function(function, autograph=False, jit_compile=True)
    assert_as_jax_of_variable(gradients_of(compiled, variable), variable, around)
    inside = tf.function(gradients_of(function, variable), autograph=False, jit_compile=True)
    assert_as_jax_of_variable(inside, variable, around)
