"""Parameters with defaults: what the caller leaves out stays a Python value of the function."""

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf

import jax2tf


def by_position(x, train=False):
    return x if train else jnp.sin(x)


def by_keyword(x, *, train=False):
    return x if train else jnp.sin(x)


class Layer:
    def __call__(self, x, train=False):
        return x if train else jnp.sin(x)


FUNCTIONS = {
    "by position": by_position,
    "by keyword": by_keyword,
    "partial": partial(by_keyword, train=False),
    "callable object": Layer(),
    "jitted, static": jax.jit(by_position, static_argnames="train"),
}


@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(
    "wrap",
    [lambda f: f, tf.function, partial(tf.function, jit_compile=True)],
    ids=["eager", "graph", "compiled"],
)
def test_a_default_is_not_traced(fun, wrap):
    x = tf.constant([0.5, 1.0])
    tf.debugging.assert_near(wrap(jax2tf.convert(fun))(x), tf.sin(x))


def test_an_argument_for_a_parameter_with_a_default_may_be_given_either_way():
    converted = tf.function(jax2tf.convert(lambda x, y=None: x if y is None else jnp.sin(y)))
    x, y = tf.constant(1.0), tf.constant(2.0)
    assert converted(x) == x
    assert converted(x, y) == tf.sin(y)
    assert converted(x, y=y) == tf.sin(y)
    assert converted(x=x, y=y) == tf.sin(y)


@pytest.mark.parametrize(
    ("fun", "signature"),
    [
        (lambda x, y: x, "(x, y)"),
        (lambda x, y=1: x, "(x, *args, **kwargs)"),
        (lambda x, *rest, k: x, "(x, *args, k)"),
        (lambda x, *, k=1: x, "(x, **kwargs)"),
        (lambda x, **kw: x, "(x, **kwargs)"),
    ],
)
def test_required_parameters_keep_their_names(fun, signature):
    assert str(inspect.signature(jax2tf.convert(fun))) == signature


def test_a_saved_function_has_the_names_of_its_parameters(tmp_path):
    module = tf.Module()
    specs = [tf.TensorSpec([2], tf.float32)]
    module.f = tf.function(jax2tf.convert(by_position), autograph=False, input_signature=specs)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert set(loaded.signatures["serving_default"].structured_input_signature[1]) == {"x"}
