"""Functions that engines took for others, or did not take, in graphs of any batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from tests.consumers.engines import target_of
from tests.running import assert_near


def _times_variance(x: jax.Array) -> jax.Array:
    return x * jnp.var(x, keepdims=True)


@jax.jit
def _first(condition: jax.Array, x: jax.Array) -> jax.Array:
    """`x` where the condition holds, and NaN elsewhere."""
    return jnp.where(condition, x, jnp.log(-jnp.abs(x) - 1))


@jax.jit
def _unless_nan(number: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.select_n(jnp.isnan(number), x, jnp.log(-jnp.abs(x) - 1))


@jax.jit
def _picked(index: jax.Array) -> jax.Array:
    return jnp.array([1.0, 2.0, 4.0])[index]


FUNCTIONS = {
    "top_k": lambda x: jax.lax.top_k(x, 3),
    "argsort": lambda x: jnp.argsort(x, axis=-1),
    "sort": lambda x: jnp.sort(x, axis=-1)[:, ::-1],
    # What is not chosen is NaN, or infinite.
    "entropy": lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0),
    "masked": lambda x: jnp.where(x > 0, x, -jnp.inf),
    "masked softmax": lambda x: jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf)),
    "variance": lambda x: x.var(axis=-1),
    # Of nothing both are NaN.
    "mean of nothing": lambda x: (x[:, :0].mean(axis=-1), x[:, :0].var(axis=-1)),
    # NaN becomes 0.
    "integers": lambda x: jnp.log(x).astype(jnp.int32),
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "remainder": lambda x: x % 0.3,
    "one hot": lambda x: jax.nn.one_hot(jnp.argmax(x, axis=-1), 7),
    # What is out of bounds is dropped.
    "dropped": lambda x: x.at[:, jnp.array([1, 9, 4, 7])].set(5.0),
    # The last place is 6: LiteRT took what keeps an index in bounds for Relu6.
    "taken": lambda x: jnp.take(x, jnp.argsort(x[0]) * 3 - 4, axis=1),
    "slice": lambda x: jax.lax.dynamic_slice_in_dim(x, jnp.argmax(x[0]) + 3, 1, axis=1),
    "updated slice": lambda x: jax.lax.dynamic_update_slice_in_dim(
        x, x[:, :1] + 1, jnp.argmax(x[0]) + 3, axis=1
    ),
    # The numbers of steps stand in the loop, and 0 outside of it.
    "scan": lambda x: jax.lax.scan(lambda c, y: (c + y, c * 2 + y), jnp.zeros(()), x[0])[1],
    "reverse scan": lambda x: jax.lax.scan(
        lambda c, y: (c + y, c * 2 + y), jnp.zeros(()), x[0], reverse=True
    )[1],
    # LiteRT has lists of arrays of one known shape alone.
    "stacked rows": lambda x: jax.lax.scan(lambda c, y: (c + y, c * 2 + y), x[:, 0], x.T)[1],
    "stacked rows in reverse": lambda x: jax.lax.scan(
        lambda c, y: (c + y, {"a": c, "b": c > y}), x[:, 0], x.T, reverse=True
    )[1],
    "as many steps as rows": lambda x: jax.lax.scan(lambda c, y: (c + y, c * y), x[0], x)[1],
    # No engine has complex numbers, or all that JAX does with them.
    "spectrum": lambda x: jnp.abs(jnp.fft.rfft(x)),
    "complex": lambda x: jnp.angle(jnp.exp(1j * x) * (x + 2j) / (1 - 1j * x[:, ::-1])),
    "loop": lambda x: jax.lax.fori_loop(0, 4, lambda i, y: y * 0.5 + x[:, i, None], x * 0),
    # LiteRT's converter refused a comparison with zero of what was a bool.
    "integers made of bools": lambda x: (
        jnp.arange(6.0).reshape(2, 3)[(x[0] > 0).astype(int)],
        (x > 0).astype(int) % 2,
        (x > 0).astype(int) // 2,
        (x > 0).astype(float) < 0,
        jnp.heaviside(x > 0, 0.5),
        jnp.take_along_axis(x, (x > 0).astype(int), 1),
        x[:, :2].at[:, (x[0, :2] > 0).astype(int)].set(7.0),
    ),
    "integers made of bools in a shared function": lambda x: (
        _picked((x[0] > 0).astype(int)) + _picked((x[0] > 1).astype(int))
    ),
    # OpenVINO lost the dimension of one of which integers were reversed.
    "integers in reverse along one": lambda x: (
        jnp.flip(jnp.argsort(x, 1)[:, None], 1),
        jnp.flip(jnp.argsort(x, 1)[:, :, None], (1, 2)).squeeze(2),
        jnp.sort(jnp.argsort(x, 1)[None], axis=0, descending=True),
        jax.lax.cummax(jnp.argmax(x, 1, keepdims=True), 1, reverse=True),
    ),
    # A condition that a shared function, a loop or a branch is given is a constant outside of it,
    # and ONNX's converter made a sum of products of the choice.
    "variances in a mapped function": lambda x: jax.vmap(_times_variance)(
        jax.vmap(_times_variance)(x)
    ),
    "shared choice by a constant": lambda x: _first(True, x) + _first(True, x * 2),
    "shared choice by a mask": lambda x: _first(x[0] == x[0], x) + _first(np.arange(7) >= 0, x * 2),
    "shared choice by the NaN of a constant": lambda x: (
        _unless_nan(np.float32(1), x) + _unless_nan(np.float32(1), x * 2)
    ),
    "choice by a constant in a loop": lambda x: jax.lax.fori_loop(
        0, 3, lambda i, c: (_first(c[1], c[0]) + 1, c[1]), (x, True)
    )[0],
    "choice by a constant in a branch": lambda x: jax.lax.cond(
        x[0, 0] > -9, lambda c, x: _first(c, x), lambda c, x: x, True, x
    ),
    # LiteRT and OpenVINO overwrote what a step moves before they read it.
    "moved carry": lambda x: jax.lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], c[0]), (x, x * 2)),
    "exchanged carries": lambda x: jax.lax.scan(
        lambda c, y: (jax.jit(lambda a, b: (b, a))(*c), c[1] * y), (x[0], x[0] * 2), x[0]
    ),
    # They did so where it is moved by ops that a converter folds.
    "carry moved by a sum of one": lambda x: jax.lax.fori_loop(
        0, 4, lambda i, c: (c[0] + c[1], c[0].sum(0, keepdims=True)), (x[:1], x[:1] * 2)
    ),
    "carry moved by a slice of all": lambda x: jax.lax.fori_loop(
        0,
        4,
        lambda i, c: (c[0] + c[1], jax.lax.dynamic_slice(c[0], (i, 0), c[0].shape)),
        (x[:1], x[:1] * 2),
    ),
    "carry moved by a sum with what a loop keeps": lambda x: jax.lax.fori_loop(
        0, 4, lambda i, c: (c[0] + c[1], c[0] + c[2], c[2]), (x[:1], x[:1] * 2, jnp.zeros((1, 7)))
    ),
    "no steps that overwrite a carry": lambda x: jax.lax.fori_loop(
        0,
        jnp.argmax(x[0] * 0),
        lambda i, c: jax.lax.dynamic_update_slice(c, jnp.sin(x[:1] * i), (0, 0)),
        x[:1],
    ),
    # Who has stopped keeps a number, and no product of it with infinity.
    "mapped loop": lambda x: jax.vmap(
        lambda x: jax.lax.while_loop(
            lambda c: c[0] > 1, lambda c: (1 / c[1], c[1] + x), (jnp.inf, x)
        )
    )(jnp.abs(x[0]) + 0.1),
    "first of bools": lambda x: jnp.argmax(x > 0, axis=-1),
    # LiteRT's converter exchanged the operands.
    "constants less a transpose": lambda x: (
        1 - jax.nn.sigmoid(x.T),
        2 / x.T,
        1 + -x.T,
        7 - (x * 5).astype(jnp.int32).T,
    ),
    "constants less a transposed row": lambda x: (
        np.arange(7, dtype=np.float32)[:, None] - x[:1].T,
        np.arange(14, dtype=np.float32).reshape(7, 2) / jnp.stack([x[0], x[0] + 1]).T,
        jnp.full((7, 2), 2.0) - jnp.stack([x[0], x[0] + 1]).T,
        3 * jax.lax.integer_pow(jnp.stack([x[0], x[0] + 1]).T, -1),
        ~(x[:1] * 5).astype(jnp.int32).T,
        jnp.sort(jnp.stack([x[0], x[0] + 1, x[0]]) > 0, axis=0),
    ),
    "diagonal": lambda x: jnp.diagonal(x[:1].T @ x[:1]),
    # TensorFlow.js adds into zeros alone.
    "bincount": lambda x: jnp.bincount(jnp.argsort(x[0]), length=4),
    "added": lambda x: x.at[jnp.arange(2), jnp.array([3, 9])].add(5.0),
    "subtracted": lambda x: x.at[:, jnp.array([3, 9, 3])].add(-1.0, mode="drop"),
    # OpenVINO takes them in float32.
    "large integers": lambda x: [
        function(jnp.argsort(x, axis=1) * 357913941 - 3, axis)
        for function in (jnp.max, jnp.min, jnp.flip)
        for axis in (0, 1)
    ],
    "large quotients": lambda x: [
        (jnp.argsort(x, axis=1) * 357913941 - 3) // 7,
        (jnp.argsort(x, axis=1) * 357913941 - 3) % (jnp.argsort(x[0]) * 1001 + 1),
    ],
    "large neighbours": lambda x: (
        jnp.argsort(x, axis=1) * 357913941
        < (jnp.argsort(x, axis=1) * 357913941 + jnp.argsort(x[0]) - 2)
    ),
    # LiteRT's converter refused what it made of a row by a matrix that is no constant.
    "row by a matrix": lambda x: x[0] @ (x.T @ x),
    "segment sum": lambda x: jax.ops.segment_sum(x.T, jnp.argsort(x[0]) // 2, 5),
}


# What the target of an engine refuses, with the words of the message.
BITS = {
    "shifted": lambda x: jnp.argsort(x[0]) << 2,
    "shifted back": lambda x: jnp.argsort(x[0]) >> 1,
    "both": lambda x: jnp.argsort(x[0]) & 5,
    "one of two": lambda x: jnp.argsort(x[0]) ^ 5,
    "either": lambda x: jnp.argsort(x[0]) | 8,
    "none": lambda x: ~jnp.argsort(x[0]),
    "unsigned": lambda x: (
        (jnp.argsort(x[0]).astype(jnp.uint32) ^ np.uint32(0xF0000000)) >> 3
    ).astype(jnp.int32),
    "of a float": lambda x: jax.lax.bitcast_convert_type(x, jnp.int32),
    "to a float": lambda x: jax.lax.bitcast_convert_type(
        (jnp.argsort(x[0]) - 2) * 0x1C0FFEE3, jnp.float32
    ),
    "of a known key": lambda x: x + jax.random.normal(jax.random.key(3), (7,)),
}
REFUSED = {
    ("openvino", "of a float"): "no bits of a float32 array with an open dimension",
}


@pytest.mark.parametrize("engine", consumers.NEEDS)
@pytest.mark.parametrize("name", BITS)
def test_bits(name, engine):
    refused = REFUSED.get((engine, name))
    if refused is None:
        a_function_has_any_batch(BITS[name], engine)
        return
    with pytest.raises(jax2tf.ConversionError, match=refused) as raised:
        a_function_has_any_batch(BITS[name], engine)
    assert "test_functions.py" in str(raised.value)


@pytest.mark.parametrize("engine", consumers.NEEDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_any_batch(name, engine):
    a_function_has_any_batch(FUNCTIONS[name], engine)


def a_function_has_any_batch(function, engine):
    converted = jax2tf.convert(
        function,
        target=target_of(engine),
        polymorphic_shapes="b, ...",
        polymorphic_checks=False,
        with_gradient=False,
    )
    graph = graph_of(converted, [tf.TensorSpec([None, 7], tf.float32)])
    model = consumers.engine(engine).convert(graph)
    for batch in (1, 3):
        x = np.random.default_rng(batch).normal(size=(batch, 7)).astype(np.float32)
        result = jax.tree.unflatten(graph.tree, model([x]))
        assert_near(result, jax.jit(function)(x), ulps=64)
