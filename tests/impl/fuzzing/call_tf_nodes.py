"""Nodes of random functions for call_tf: each has a form in TensorFlow and one in JAX.

A node takes one value or two and gives one. Both forms take any dtype and shape: what is not of the
kind that a node computes with is made so first, in the same way on both sides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Node:
    """One function in two languages.

    Attributes:
      of_tf: its form in TensorFlow.
      of_jax: its form in JAX.
      arity: how many values it takes.
    """

    of_tf: Callable[..., Any]
    of_jax: Callable[..., Any]
    arity: int = 1


# --- What makes operands fit -------------------------------------------------------------------


def tf_float(x: Any) -> Any:
    """Integers, bool and short floats in float32; the others stay as they are."""
    return x if x.dtype.name in _KEPT else tf.cast(x, tf.float32)


def jax_float(x: Any) -> Any:
    """The same in JAX."""
    return x if x.dtype.name in _KEPT else x.astype(np.float32)


_KEPT = ("float32", "float64", "complex64", "complex128")


def _of_floats(of_tf: Callable[..., Any], of_jax: Callable[..., Any]) -> Node:
    return Node(lambda x: of_tf(tf_float(x)), lambda x: of_jax(jax_float(x)))


def _of_reals(of_tf: Callable[..., Any], of_jax: Callable[..., Any]) -> Node:
    return Node(
        lambda x: of_tf(tf.math.real(tf_float(x))), lambda x: of_jax(jnp.real(jax_float(x)))
    )


def _of_vectors(of_tf: Callable[..., Any], of_jax: Callable[..., Any]) -> Node:
    """Over the first axis; a scalar is a vector of one."""

    def in_tf(x: Any) -> Any:
        x = tf_float(x)
        return of_tf(x if x.shape.rank else x[None])

    def in_jax(x: Any) -> Any:
        x = jax_float(x)
        return of_jax(x if x.ndim else x[None])

    return Node(in_tf, in_jax)


def _of_two(of_tf: Callable[..., Any], of_jax: Callable[..., Any]) -> Node:
    """The second one in the dtype of the first, and its sum if its shape does not fit."""

    def in_tf(x: Any, y: Any) -> Any:
        x, y = tf_float(x), tf_float(y)
        y = y if y.shape == x.shape else tf.reduce_sum(y)
        y = y if x.dtype.is_complex or not y.dtype.is_complex else tf.math.real(y)
        return of_tf(x, tf.cast(y, x.dtype))

    def in_jax(x: Any, y: Any) -> Any:
        x, y = jax_float(x), jax_float(y)
        y = y if y.shape == x.shape else jnp.sum(y)
        y = y if jnp.iscomplexobj(x) else jnp.real(y)
        return of_jax(x, y.astype(x.dtype))

    return Node(in_tf, in_jax, arity=2)


# --- Nodes with something to say -----------------------------------------------------------------


@tf.custom_gradient
def _custom_in_tf(x: Any) -> Any:
    return x * x, lambda upstream: tf.convert_to_tensor(upstream) * 3 * x


@jax.custom_jvp
def _custom_in_jax(x: Any) -> Any:
    return x * x


# TensorFlow's rule holds for the result too, when that is differentiated once more.
_custom_in_jax.defjvp(
    lambda primals, tangents: (_custom_in_jax(*primals), 3 * primals[0] * tangents[0])
)


def _loop_in_tf(x: Any) -> Any:
    return tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.sin(y) + x),
        (tf.constant(0), x),
        maximum_iterations=3,
    )[1]


def _loop_in_jax(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + x, x)


def _branch_in_tf(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0.3, lambda: tf.sin(x), lambda: x * x)


def _branch_in_jax(x: Any) -> Any:
    return jax.lax.cond(jnp.sum(x) > 0.3, jnp.sin, lambda x: x * x, x)


def _jacobian_in_tf(x: Any) -> Any:
    """A batch of TensorFlow's own inside of a tf.function, as tape.jacobian makes one."""
    return tf.function(
        lambda x: tf.vectorized_map(lambda row: row * tf.reduce_sum(x), x[:1]), autograph=False
    )(x)


def _jacobian_in_jax(x: Any) -> Any:
    return x[:1] * jnp.sum(x)


NODES: Mapping[str, Node] = {
    "identity": Node(tf.identity, lambda x: x),
    "sin": _of_floats(tf.sin, jnp.sin),
    "exp": _of_floats(lambda x: tf.exp(x / 4), lambda x: jnp.exp(x / 4)),
    "square": _of_floats(lambda x: x * x, lambda x: x * x),
    "conj": _of_floats(tf.math.conj, jnp.conj),
    "tanh": _of_reals(tf.tanh, jnp.tanh),
    "where": _of_reals(
        lambda x: tf.where(x > 0.1, x, 2 * x), lambda x: jnp.where(x > 0.1, x, 2 * x)
    ),
    "stop": _of_floats(tf.stop_gradient, jax.lax.stop_gradient),
    "to_complex": _of_reals(
        lambda x: tf.cast(x, tf.complex64) * (1 + 2j),
        lambda x: x.astype(np.complex64) * (1 + 2j),
    ),
    "to_float64": _of_reals(
        lambda x: tf.cast(x, tf.float64) / 2,
        lambda x: x.astype(jax.dtypes.canonicalize_dtype(float)) / 2,
    ),
    "to_int": _of_reals(
        lambda x: tf.cast(tf.floor(x * 3), tf.int32), lambda x: jnp.floor(x * 3).astype(np.int32)
    ),
    "to_uint16": _of_reals(
        lambda x: tf.cast(tf.abs(x) * 3 + 0.5, tf.uint16),
        lambda x: (jnp.abs(x) * 3 + 0.5).astype(np.uint16),
    ),
    "to_bool": _of_reals(lambda x: x > 0.2, lambda x: x > 0.2),
    "sum": _of_floats(tf.reduce_sum, jnp.sum),
    "constant": Node(
        lambda x: tf.constant([1.5, 2.5]), lambda x: jnp.array([1.5, 2.5], np.float32)
    ),
    "reverse": _of_vectors(lambda x: tf.reverse(x, [0]), lambda x: x[::-1]),
    # Of complex numbers TensorFlow's XLA has no Cumsum.
    "cumsum": _of_vectors(
        lambda x: tf.cumsum(tf.math.real(x)), lambda x: jnp.cumsum(jnp.real(x), 0)
    ),
    "gather": _of_vectors(lambda x: tf.gather(x, [0, 0]), lambda x: x[np.array([0, 0])]),
    "slice": _of_vectors(lambda x: x[:1], lambda x: x[:1]),
    "flatten": _of_vectors(lambda x: tf.reshape(x, [-1]), lambda x: x.reshape(-1)),
    "concat": _of_vectors(
        lambda x: tf.concat([x, x * 2], 0), lambda x: jnp.concatenate([x, x * 2])
    ),
    "custom": _of_reals(_custom_in_tf, _custom_in_jax),
    "loop": _of_reals(_loop_in_tf, _loop_in_jax),
    "branch": _of_reals(_branch_in_tf, _branch_in_jax),
    "own_batch": _of_vectors(_jacobian_in_tf, _jacobian_in_jax),
    "add": _of_two(lambda x, y: x + y, lambda x, y: x + y),
    "mul": _of_two(lambda x, y: x * y, lambda x, y: x * y),
    "outer": _of_two(
        lambda x, y: tf.tensordot(tf.reshape(x, [-1]), tf.reshape(y, [-1]), 0),
        lambda x, y: jnp.tensordot(x.reshape(-1), y.reshape(-1), 0),
    ),
    "dot": _of_two(lambda x, y: tf.reduce_sum(x * y), lambda x, y: jnp.sum(x * y)),
}

# What TensorFlow runs for one element and not over a batch, where a function is a graph.
REFUSED: Mapping[str, Callable[[Any], Any]] = {
    "as_numpy": lambda x: tf.constant(tf_float(x).numpy()),
    "python_branch": lambda x: x if tf.reduce_any(tf.cast(x, tf.bool)) else x[None],
    "wrong_rank": lambda x: tf.matmul(tf.reshape(tf_float(x), [-1]), tf.ones([2])),
}
