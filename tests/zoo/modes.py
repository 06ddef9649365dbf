"""The ways in which a program of the zoo is run, each held against jax.jit of the same function."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf
from harnesses.engine import derivatives, vjps
from tests.running import assert_near
from tests.zoo.program import Program

# One is a size that JAX's broadcasting treats differently; the other is in no program's arguments.
BATCHES = (1, 5)


def _eager(program: Program) -> None:
    fun, args = program.build()
    _assert_as_in_jax(program, jax2tf.convert(fun)(*args))


def _traced(program: Program, enable_xla: bool = True, **options: Any) -> None:
    converted = _OnLeaves(program, enable_xla=enable_xla)
    function = tf.function(converted, autograph=False, **options)
    _assert_as_in_jax(program, converted.tree_of(function(*converted.leaves)))


def _saved(program: Program) -> None:
    """What is restored gives the results, and the gradient where there is one."""
    converted = _OnLeaves(program)
    differentiable = "gradient" not in program.fails
    module = tf.Module()
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in converted.leaves]
    module.call = tf.function(converted, autograph=False, input_signature=specs)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=differentiable)
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        tf.saved_model.save(module, folder, options=options)
        restored = tf.saved_model.load(folder)
    _assert_as_in_jax(program, converted.tree_of(restored.call(*converted.leaves)))
    if differentiable:
        _assert_gradients(program, restored.call, converted.leaves)


def _gradient(program: Program) -> None:
    """A tape around the graph, as TensorFlow's users train."""
    converted = _OnLeaves(program)
    _assert_gradients(program, tf.function(converted, autograph=False), converted.leaves)


def _polymorphic(program: Program) -> None:
    """One graph, traced for an open batch, runs batches of several sizes."""
    fun, args = program.build()
    converted = _OnLeaves(
        program,
        polymorphic_shapes=program.batch,
        polymorphic_constraints=program.constraints,
    )
    axes = _batch_axes(program)
    specs = [
        tf.TensorSpec([None if i in open_ else n for i, n in enumerate(leaf.shape)], leaf.dtype)
        for leaf, open_ in zip(converted.leaves, axes, strict=True)
    ]
    graph = tf.function(converted, autograph=False).get_concrete_function(*specs)
    for size in BATCHES:
        leaves = [_resized(x, open_, size) for x, open_ in zip(converted.leaves, axes, strict=True)]
        expected = jax.jit(fun)(*jax.tree.unflatten(jax.tree.structure(args), leaves))
        actual = converted.tree_of(graph(*map(tf.constant, leaves)))
        assert_near(_arrays(actual), expected, program.ulps)


PROGRAM_MODES: dict[str, Callable[[Program], None]] = {
    "eager": _eager,
    "graph": _traced,
    "compiled": partial(_traced, jit_compile=True),
    "savedmodel": _saved,
    "gradient": _gradient,
    "no_xla": partial(_traced, enable_xla=False),
    "polymorphic": _polymorphic,
}


class _OnLeaves:
    """The converted function on the leaves of its arguments: tf.function knows no other trees."""

    def __init__(self, program: Program, **options: Any):
        fun, args = program.build()
        leaves, self._in_tree = jax.tree.flatten(args)
        self.leaves = list(map(np.asarray, leaves))
        self._converted = jax2tf.convert(fun, **options)

    def __call__(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
        results = self._converted(*jax.tree.unflatten(self._in_tree, tensors))
        leaves, self._out_tree = jax.tree.flatten(results)
        return leaves

    def tree_of(self, results: Sequence[tf.Tensor]) -> Any:
        """The results in the function's tree."""
        return jax.tree.unflatten(self._out_tree, results)


@functools.cache
def in_jax(program: Program) -> Any:
    """What jax.jit gives."""
    fun, args = program.build()
    return jax.tree.map(np.asarray, jax.jit(fun)(*args))


@functools.cache
def gradients_in_jax(program: Program) -> list[np.ndarray]:
    """JAX's gradients with respect to the floating arguments, along `vjps.direction`."""
    fun, args = program.build()
    leaves, tree = jax.tree.flatten(args)
    leaves = list(map(np.asarray, leaves))
    chosen = [i for i, leaf in enumerate(leaves) if vjps.is_inexact(leaf)]

    def gradients(*operands: jax.Array) -> Any:
        def of_floats(*floats: jax.Array) -> list[jax.Array]:
            given = list(operands)
            for i, value in zip(chosen, floats, strict=True):
                given[i] = value
            results = jax.tree.leaves(fun(*jax.tree.unflatten(tree, given)))
            return [r for r in map(jnp.asarray, results) if vjps.is_inexact(r)]

        results, pullback = jax.vjp(of_floats, *(operands[i] for i in chosen))
        return pullback([jnp.asarray(vjps.direction(r)) for r in results])

    return list(map(np.asarray, jax.jit(gradients)(*leaves)))


def _symbolic_in_jax(program: Program) -> None:
    """JAX's trace for the open size."""
    fun, args = program.build()
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args)
    jax.jit(fun).trace(
        *jax.export.symbolic_args_specs(shapes, program.batch, constraints=program.constraints)
    )


# What JAX itself does, where a mode has JAX transform the function.
LAWS: dict[str, Callable[[Program], Any]] = {
    "gradient": gradients_in_jax,
    "polymorphic": _symbolic_in_jax,
}


def _assert_as_in_jax(program: Program, actual: Any) -> None:
    assert_near(_arrays(actual), in_jax(program), program.ulps)


def _assert_gradients(program: Program, function: Any, leaves: Sequence[np.ndarray]) -> None:
    tensors = list(map(tf.constant, leaves))
    floats = [t for t in tensors if vjps.is_differentiable(t)]
    actual = derivatives.gradients(function, tensors, floats)
    expected = gradients_in_jax(program)
    # Some gradients are zero but for rounding errors: that of a bias before a normalisation or in
    # the keys of attention.
    least = max((np.abs(g).max(initial=0) for g in expected), default=0) / 64
    assert_near(_arrays(actual), expected, program.gradient_ulps or 4 * program.ulps, least)


def _arrays(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def _batch_axes(program: Program) -> list[list[int]]:
    """Which axes of each leaf are open."""
    _, args = program.build()
    # None among the arguments is an empty tree, but a spec of its own.
    specs = jax.tree.map(lambda s: s or "", program.batch, is_leaf=lambda s: s is None)
    return [
        [i for i, d in enumerate(spec.split(",")) if d.strip(" ()").isalpha()]
        for spec in jax.tree.leaves(jax.tree.broadcast(specs, args))
    ]


def _resized(leaf: np.ndarray, axes: Sequence[int], size: int) -> np.ndarray:
    for axis in axes:
        leaf = np.take(leaf, np.arange(size) % leaf.shape[axis], axis)
    return leaf
