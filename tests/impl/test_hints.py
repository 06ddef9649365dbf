"""Primitives that say how XLA lays out, spreads or names an array, which changes no values."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.experimental.xla_metadata import set_xla_metadata

import jax2tf
from tests.running import assert_near

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -2.0]], np.float32)
PAIRS = dataclasses.replace(
    jax2tf.TARGETS["tensorflow"],
    computes_in={"complex64": "float32", "complex128": "float64"},
)


@custom_partitioning
def spread(x):
    return jnp.cos(x)


spread.def_partition(
    infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
    partition=lambda mesh, args, result: (mesh, jnp.cos, result.sharding, (args[0].sharding,)),
    sharding_rule="i j -> i j",
)


def inspected(x):
    jax.debug.inspect_array_sharding(x, callback=lambda sharding: None)
    return x * 2


FUNCTIONS = {
    "custom_partitioning": spread,
    "inspect_sharding": inspected,
    "layout_constraint": lambda x: with_layout_constraint(x * 2, Layout(major_to_minor=(1, 0))),
    "xla_metadata": lambda x: set_xla_metadata(jnp.sin(x), key="value"),
}


@pytest.mark.parametrize("target", ["xla", "litert", "onnx", "openvino"])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_any_batch(name, mode, target):
    converted = jax2tf.convert(FUNCTIONS[name], target=target, polymorphic_shapes="b, _")
    if mode != "eager":
        converted = tf.function(converted, autograph=False, jit_compile=mode == "compiled")
    assert_near(np.asarray(converted(X)), jax.jit(FUNCTIONS[name])(X), ulps=4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_numbers(name):
    z = (X + 1j * X[::-1]).astype(np.complex64)
    converted = tf.function(jax2tf.convert(FUNCTIONS[name], target=PAIRS), autograph=False)
    assert_near(np.asarray(converted(z)), jax.jit(FUNCTIONS[name])(z), ulps=16)


@pytest.mark.parametrize("name", ["inspect_sharding", "layout_constraint"])
def test_gradients(name):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax2tf.convert(lambda x: jnp.sum(FUNCTIONS[name](x) ** 2))(x)
    expected = jax.grad(lambda x: jnp.sum((x * 2) ** 2))(X)
    assert_near(np.asarray(tape.gradient(y, x)), expected, ulps=4)
