"""Runs a converted function in each mode and holds it against jax.jit."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

MODES = {
    "eager": lambda fun: fun,
    "graph": partial(tf.function, autograph=False),
    "compiled": partial(tf.function, autograph=False, jit_compile=True),
}
LOWERINGS = {"xla": True, "no_xla": False}
# Ops that compute nothing: what tf.function and convert put around any function, and constants.
AROUND = frozenset({"Placeholder", "Identity", "PreventGradient", "NoOp", "Const"})

each_mode = pytest.mark.parametrize("mode", MODES)
# Those in which one graph may serve every size.
each_graph_mode = pytest.mark.parametrize("mode", ["graph", "compiled"])
each_lowering = pytest.mark.parametrize("lowering", LOWERINGS)


def of_every_size(
    fun: Callable[..., Any], mode: str, *signature: tf.TensorSpec
) -> Callable[..., Any]:
    """The function as the mode runs it: one graph for every size, but in eager mode."""
    function = MODES[mode](fun)
    return function if mode == "eager" else function.get_concrete_function(*signature)


def graph_of(
    function: Callable[..., Any], target: str | jax2tf.Target, *args: Any
) -> tf.types.experimental.ConcreteFunction:
    """The graph of a function for a target, of arrays like these."""
    converted = jax2tf.convert(function, target=target, with_gradient=False)
    specs = [tf.TensorSpec(np.shape(x), x.dtype) for x in args]
    traced = tf.function(converted, autograph=False, input_signature=specs)
    return traced.get_concrete_function()


def ops_of(concrete: tf.types.experimental.ConcreteFunction) -> set[str]:
    """The types of a graph's ops, not of those inside the functions that it calls.

    (`op_types` of `harnesses.engine.graphs` counts those too.)
    """
    return {op.type for op in concrete.graph.get_operations()}


def ops_in_order(
    concrete: tf.types.experimental.ConcreteFunction, around: Set[str] = AROUND
) -> list[str]:
    """The types of a graph's ops in its order, without those of `around`.

    Ops inside the functions that the graph calls are left out, as in `ops_of`.
    """
    return [op.type for op in concrete.graph.get_operations() if op.type not in around]


def assert_near(
    actual: Any, expected: Any, ulps: float = 16, least: float = 0, each: bool = False
) -> None:
    """Equal to rounding in the dtype, relative to the largest element of each leaf.

    Args:
      actual: a tree of tensors or arrays.
      expected: a tree of the same structure, whose leaves have the same dtypes and shapes.
      ulps: the largest difference, in units in the last place of a number of that size.
      least: a leaf whose elements are all smaller is compared as if one were this large.
      each: whether each element has a tolerance of its own: that of its own size plus `least`.
    """
    __tracebackhide__ = True
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for (path, e), a in zip(
        jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(actual), strict=True
    ):
        e, a, where = np.asarray(e), np.asarray(a), jax.tree_util.keystr(path)
        assert (a.dtype, a.shape) == (e.dtype, e.shape), where
        rtol, atol = 0.0, 0.0
        if jax.numpy.issubdtype(e.dtype, np.inexact):
            size = np.abs(e[np.isfinite(e)], dtype=np.float64).max(initial=least)
            rounding = ulps * float(jax.numpy.finfo(e.dtype).eps)
            rtol, atol = (rounding, rounding * least) if each else (0.0, rounding * size)
        wide = e.dtype if e.dtype.kind in "iubc" else np.float64
        np.testing.assert_allclose(
            a.astype(wide), e.astype(wide), rtol=rtol, atol=atol, err_msg=where
        )


def check(fun: Callable[..., Any], args: tuple, mode: str, lowering: str, ulps: float = 16) -> None:
    """The converted function gives what jax.jit gives. Arguments may be pytrees that JAX knows."""
    converted = jax2tf.convert(fun, enable_xla=LOWERINGS[lowering])
    leaves, tree = jax.tree.flatten(args)
    results: list[Any] = []

    def on_leaves(*tensors: tf.Tensor) -> list[tf.Tensor]:
        # tf.function knows TensorFlow's structures alone.
        flat, structure = jax.tree.flatten(converted(*jax.tree.unflatten(tree, tensors)))
        results.append(structure)
        return flat

    flat = MODES[mode](on_leaves)(*map(tf.constant, map(np.asarray, leaves)))
    actual = jax.tree.unflatten(results[-1], [np.asarray(leaf) for leaf in flat])
    assert_near(actual, jax.jit(fun)(*args), ulps)


def gradient_in_graph(fun: Callable[..., Any]) -> Callable[[tf.Tensor], tf.Tensor]:
    """The gradient of a function by a tape, as a graph."""

    @tf.function(autograph=False)
    def gradient(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun(x)
        return tape.gradient(y, x)

    return gradient


def first_and_second(fun: Callable[..., Any], x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradient of a scalar function by a tape, and that of its squared norm by another."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = fun(x)
        first = inner.gradient(y, x)
        norm = tf.reduce_sum(first**2)
    return first, outer.gradient(norm, x)
