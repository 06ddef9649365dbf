"""Derivatives that a library gives by JAX's decorators: tapes take these and look no further."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest
import tensorflow

import tf_substrates
from tests.substrates.comparing import tf_of
from tf_substrates.rewriter import edits, rules
from tf_substrates.rewriter.places import Substrate

# Each function is x * x and says that its derivative is 10 * x.
SOURCE = """
import functools
import jax
import jax.custom_derivatives as derivatives
from jax import custom_jvp as forward
import tensorflow as tf

JAX_MODE = False

def _rule(primals, tangents):
    (x,) = primals
    return x * x, 10.0 * x * tangents[0]

@jax.custom_jvp
def by_attribute(x):
    return tf.square(x)
by_attribute.defjvp(_rule)

def _imported():
    from jax import custom_vjp
    made = custom_vjp(lambda x: x * x)
    made.defvjp(lambda x: (x * x, x), lambda x, upstream: (10.0 * x * upstream,))
    return made
by_import = _imported()

@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _raised(x, power):
    return x ** power
@_raised.defjvp
def _rule_of_raised(power, primals, tangents):
    return primals[0] ** power, 5.0 * power * primals[0] * tangents[0]
by_number = lambda x: _raised(x, 2)

by_another_name = forward(lambda x: tf.multiply(x, x))
by_another_name.defjvps(lambda tangent, result, x: 10.0 * x * tangent)
by_gradient = jax.custom_gradient(lambda x: (x * x, lambda upstream: 10.0 * x * upstream))
by_module = derivatives.custom_jvp(lambda x: x * x)
by_module.defjvp(_rule)
is_own = isinstance(forward(len), jax.custom_jvp)
"""
FORWARD = ["by_attribute", "by_number", "by_another_name", "by_module"]
REVERSE = ["by_import", "by_gradient"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    (folder / "gives_derivatives.py").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        tf_substrates.install("jax", ["gives_derivatives"])
        yield importlib.import_module("tf_substrates.on_jax.gives_derivatives")


def _by_tape(tf, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) + x
    return tape.gradient(y, x)


def _in_loop(tf, f, x):
    def step(i, total):
        return i + 1, total + _by_tape(tf, f, x)

    return tf.while_loop(lambda i, _: i < 1, step, (0, tf.zeros_like(x)))[1]


def _of_loop(tf, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, y = tf.while_loop(lambda i, _: i < 1, lambda i, y: (i + 1, y + f(x)), (0, x))
    return tape.gradient(y, x)


def _jacobian(tf, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) + x
    return tf.linalg.diag_part(tape.jacobian(y, x))


def _forward(tf, f, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x) + x
    return accumulator.jvp(y)


WAYS = {
    "tape": _by_tape,
    "tape under jit": lambda tf, f, x: jax.jit(lambda x: _by_tape(tf, f, x))(x),
    "tape in tf.function": lambda tf, f, x: tf.function(lambda x: _by_tape(tf, f, x))(x),
    "tape in while_loop": _in_loop,
    "tape in while_loop under jit": lambda tf, f, x: jax.jit(lambda x: _in_loop(tf, f, x))(x),
    "tape of while_loop": _of_loop,
    "tape of while_loop under jit": lambda tf, f, x: jax.jit(lambda x: _of_loop(tf, f, x))(x),
    "tape in map_fn": lambda tf, f, x: tf.map_fn(lambda x: _by_tape(tf, f, x), x),
    "jacobian": _jacobian,
    "forward accumulator": _forward,
    "jax.grad": lambda tf, f, x: jax.grad(lambda x: tf.reduce_sum(f(x) + x))(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_derivative_is_the_one_that_the_library_gives(library, way):
    tf, x = tf_of("jax"), jax.numpy.array([3.0, -2.0])
    for name in FORWARD if way == "forward accumulator" else FORWARD + REVERSE:
        found = WAYS[way](tf, getattr(library, name), x)
        np.testing.assert_array_equal(found, 10 * x + 1, err_msg=name)


@pytest.mark.parametrize("name", FORWARD + REVERSE)
def test_a_second_derivative_is_of_the_given_one(library, name):
    tf, x = tf_of("jax"), jax.numpy.array([3.0, -2.0])
    second = _by_tape(tf, lambda x: _by_tape(tf, getattr(library, name), x), x)
    np.testing.assert_array_equal(second, [11.0, 11.0])


def test_a_class_that_isinstance_asks_for_stays(library):
    assert library.is_own
    assert not isinstance(library.by_gradient, jax.custom_jvp)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import jax\njax.custom_jvp(f)", "_as_recorded(jax.custom_jvp)(f)"),
        ("import jax as j\n@j.custom_vjp\ndef f(x): ...", "@_as_recorded(j.custom_vjp)"),
        ("from jax import custom_jvp as c\nc(f)", "_as_recorded(c)(f)"),
        ("import own\nown.custom_jvp(f)", "\nown.custom_jvp(f)"),
        ("custom_jvp = 1\ncustom_jvp", "1\ncustom_jvp"),
        ("import jax\nt = f'{jax.custom_jvp}'", "t = f'{jax.custom_jvp}'"),
    ],
)
def test_what_is_wrapped(source, expected):
    on_jax, on_numpy = Substrate("jax", {}), Substrate("numpy", {})
    assert expected in edits.as_text(source, rules.edits_of(source, on_jax))
    assert edits.as_text(source, rules.edits_of(source, on_numpy)) == source


def test_an_argument_is_the_same_by_its_name_outside_of_custom_gradient():
    def product(tf, state, factor):
        @tf.custom_gradient
        def inner(x, y):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x, y])
                found = x * factor * factor
            by_x, by_y = (tape.gradient(found, v, unconnected_gradients="zero") for v in (x, y))
            return found, lambda upstream: (upstream * by_x, upstream * by_y)

        return inner(state, factor)

    for tf in (tensorflow, tf_of("jax")):
        x, y = tf.constant(2.0), tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            found = product(tf, x, y)
        assert list(map(float, tape.gradient(found, [x, y]))) == [9, 12]
    gradients = jax.jit(jax.grad(lambda x, y: product(tf_of("jax"), x, y), (0, 1)))(2.0, 3.0)
    assert list(map(float, gradients)) == [9, 12]
