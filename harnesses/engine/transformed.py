"""The judges of transformed harnesses, in modes of their own that a run has to ask for.

    gradient   the vjp of a harness: JAX's, and TensorFlow's through a GradientTape in a graph
    poly       the vmap of a harness, converted once with a polymorphic batch, for several batches

Where JAX itself does not transform a harness so (an integer has no gradient, a callback no batch)
the outcome is "inapplicable", with JAX's words for it: there is nothing to be right about.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.engine.cells import Cell
from harnesses.engine.compare import Comparison, compare
from harnesses.engine.judge import Inapplicable, Judge, phase
from harnesses.harness import Harness

BATCHES = (1, 2, 7)

# Rounding errors of a backward pass add up, so gradients are held against the largest of them.
_GRADIENT_ULPS = {
    "bfloat16": 4,
    "float16": 4,
    "float32": 16,
    "float64": 16,
    "complex64": 16,
    "complex128": 16,
}


class GradientJudge(Judge):
    """Compares gradients along cotangents that differ from element to element."""

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        harness = cell.harness
        args = harness.make_args()
        with jax.enable_x64(harness.x64), jax.default_device(jax.devices(cell.device)[0]):
            try:
                function, primals = _of_floats(harness, args)
                cotangents = [_direction(r) for r in jax.eval_shape(function, *primals)]
                traced = jax.jit(_vjp(function)).trace(primals, cotangents)
            except Exception as error:
                return args, Inapplicable(str(error))
            try:
                gradients = traced.lower().compile()(primals, cotangents)
                return args, [np.asarray(g) for g in gradients]
            except Exception as error:
                return args, error

    def _run(self, cell: Cell, args: tuple) -> Any:
        function, primals = _of_floats(cell.harness, args)
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(function, cell.lowering, with_gradient=True)
                results = jax.eval_shape(function, *primals)
                operands = [list(map(tf.constant, primals)), list(map(_cotangent, results))]
                graph = tf.function(_taped(converted), autograph=False)
                self._inspect(cell, graph.get_concrete_function(*operands).graph)
            with phase("run"):
                return [_conjugate(g).numpy() for g in graph(*operands)]

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        harness = dataclasses.replace(
            cell.harness, scale="array", ulps=_GRADIENT_ULPS, tags=frozenset({"any_zero_sign"})
        )
        return compare(harness, args, expected, actual)


class PolyJudge(Judge):
    """Compares what one graph gives for batches of several sizes, example by example."""

    def _reference(self, cell: Cell) -> tuple[tuple, Any]:
        harness = cell.harness
        function = jax.vmap(harness.fun)
        with jax.enable_x64(harness.x64), jax.default_device(jax.devices(cell.device)[0]):
            batches = tuple(_batch(harness, size) for size in BATCHES)
            try:
                jax.eval_shape(function, *batches[0])
            except Exception as error:
                return batches, Inapplicable(str(error))
            try:
                jitted: Any = jax.jit(function)
                expected = [jax.tree.map(np.asarray, jitted(*batch)) for batch in batches]
                jitted.clear_cache()
                return batches, expected
            except Exception as error:
                return batches, error

    def _run(self, cell: Cell, args: tuple) -> Any:
        with self._settings(cell):
            with phase("lower"):
                converted = self._adapter.convert(
                    jax.vmap(cell.harness.fun),
                    cell.lowering,
                    with_gradient=True,
                    polymorphic_shapes="b, ...",
                )
                specs = jax.tree.map(
                    lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), args[0]
                )
                graph = tf.function(converted, autograph=False)
                self._inspect(cell, graph.get_concrete_function(*specs).graph)
            with phase("run"):
                return [
                    jax.tree.map(self._tensorflow.to_numpy, graph(*map(_constants, batch)))
                    for batch in args
                ]

    def _compare(self, cell: Cell, args: tuple, expected: Any, actual: Any) -> Comparison:
        comparisons = [
            _compare_examples(cell.harness, *batch)
            for batch in zip(args, expected, actual, strict=True)
        ]
        return max(comparisons, key=_severity)


JUDGES: dict[str, type[Judge]] = {"gradient": GradientJudge, "poly": PolyJudge}


# --- Gradients -------------------------------------------------------------------------------


def _of_floats(harness: Harness, args: tuple) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """The harness as a function of its floating arguments that gives its floating results."""
    if harness.check is not None:
        raise ValueError("its results are right in more than one way, and so are its gradients")
    leaves, tree = jax.tree.flatten(args)
    floats = [i for i, leaf in enumerate(leaves) if _is_differentiable(leaf)]
    if not floats:
        raise TypeError("it has no argument that TensorFlow differentiates by")

    def function(*primals: Any) -> list[Any]:
        given = list(leaves)
        for i, primal in zip(floats, primals, strict=True):
            given[i] = primal
        results = jax.tree.leaves(harness.fun(*jax.tree.unflatten(tree, given)))
        kept = [r for r in results if _is_differentiable(r)]
        if not kept:
            raise TypeError("it has no result that TensorFlow differentiates")
        return kept

    return function, [leaves[i] for i in floats]


def _vjp(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda primals, cotangents: jax.vjp(function, *primals)[1](cotangents)


def _taped(converted: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(primals: list[tf.Tensor], cotangents: list[tf.Tensor]) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(primals)
            results = converted(*primals)
        return tape.gradient(
            results,
            primals,
            output_gradients=cotangents,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )

    return gradient


def _direction(result: Any) -> np.ndarray:
    """A cotangent that differs from element to element."""
    size = int(np.prod(result.shape))
    return np.cos(np.arange(size)).reshape(result.shape).astype(result.dtype)


def _cotangent(result: Any) -> tf.Tensor:
    return _conjugate(tf.constant(_direction(result)))


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    # TensorFlow's gradient with respect to a complex value is the conjugate of JAX's.
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor


def _is_differentiable(leaf: Any) -> bool:
    # A tape watches no float8.
    return jnp.issubdtype(leaf.dtype, jnp.inexact) and leaf.dtype.name in _GRADIENT_ULPS


# --- Batches ---------------------------------------------------------------------------------


def _batch(harness: Harness, size: int) -> tuple:
    examples = [harness.make_args(example) for example in range(size)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *examples)


def _constants(tree: Any) -> Any:
    return jax.tree.map(tf.constant, tree)


def _compare_examples(harness: Harness, args: tuple, expected: Any, actual: Any) -> Comparison:
    if jax.tree.map(_spec, actual) != jax.tree.map(_spec, expected):
        return compare(harness, args, expected, actual)
    size = jax.tree.leaves(args)[0].shape[0]
    trees = (args, expected, actual)
    examples = [jax.tree.map(lambda leaf, i=i: leaf[i], trees) for i in range(size)]
    return max((compare(harness, *example) for example in examples), key=_severity)


def _spec(leaf: np.ndarray) -> tuple:
    return leaf.shape, leaf.dtype


def _severity(comparison: Comparison) -> tuple[bool, float]:
    return comparison.problem is not None, comparison.ulps or 0.0
