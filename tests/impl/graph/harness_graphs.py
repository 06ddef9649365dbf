"""Graphs of harnesses, closed or with an open first dimension, as TensorFlow infers their types."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import tensorflow as tf

import jax2tf
from harnesses.engine.modes import constant
from harnesses.harness import all_harnesses
from jax2tf._src.graph import inference
from jax2tf._src.graph.dimensions import evaluate
from jax2tf._src.graph.from_tensorflow import program_of
from jax2tf._src.graph.graph import Graph, Node, graphs_in
from jax2tf._src.graph.inlining import inlined

TARGETS = ("tensorflow", "litert", "onnx")
# The name of the open dimension.
OPEN = "b"


def harnesses(step: int) -> list[Any]:
    """One in `step` of the harnesses of this version of JAX, chosen by their names.

    A new harness changes none of the others. Programs of several devices are left out: engines run
    on one, and JAX takes minutes to refuse some of them with open sizes.
    """
    every = [h for h in all_harnesses() if h.runs_on(jax.__version__) and h.family != "sharding"]
    return [h for h in every if zlib.crc32(h.name.encode()) % step == 0]


class Traced:
    """The graph of a harness.

    Args:
      harness: the harness.
      target: the target for which it is converted.
      is_open: whether the first dimension of the first array is open, and those of the same size.
    """

    def __init__(self, harness: Any, target: str, is_open: bool):
        arguments = harness.make_args()
        self.harness = harness
        leaves, tree = jax.tree.flatten(arguments)
        self.tree = tree
        self.arrays = [tf.convert_to_tensor(constant(x)) for x in leaves]
        sizes = [x.shape[0] for x in self.arrays if x.shape.rank]
        self.size = sizes[0] if is_open and sizes and sizes[0] else None
        poly = [f"{OPEN}, ..." if self._is_open(x) else None for x in self.arrays]
        self.polymorphic_shapes = list(jax.tree.unflatten(tree, poly)) if is_open else None
        converted = jax2tf.convert(
            harness.fun,
            target=target,
            with_gradient=False,
            polymorphic_shapes=self.polymorphic_shapes,
        )

        def function(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
            results = jax.tree.leaves(converted(*jax.tree.unflatten(tree, tensors)))
            return {f"y{i}": tf.identity(x) for i, x in enumerate(results)}

        specs = [
            tf.TensorSpec(self.shape(x, None), x.dtype, f"x{i}") for i, x in enumerate(self.arrays)
        ]
        traced = tf.function(function, autograph=False, input_signature=specs)
        self.concrete = traced.get_concrete_function()

    def _is_open(self, x: tf.Tensor) -> bool:
        return self.size is not None and bool(x.shape.rank) and x.shape[0] == self.size

    def shape(self, x: tf.Tensor, name: str | None) -> tuple[Any, ...]:
        """The sizes of an argument, with this name for the open one."""
        return (name, *x.shape[1:]) if self._is_open(x) else tuple(x.shape)

    def graph(self) -> Graph:
        """The inlined graph; its arguments have names for open sizes."""
        shapes = {f"x{i}": self.shape(x, OPEN) for i, x in enumerate(self.arrays)}
        return inlined(program_of(self.concrete, shapes))

    def differences(self) -> tuple[int, list[str]]:
        """How many tensors were compared, and those of which we know less than TensorFlow."""
        graph = self.graph()
        known = {x: (x.dtype, x.shape) for node in nodes_of(graph) for x in node.outputs}
        for x in known:
            x.dtype = x.shape = None
        inference.infer(graph)
        found = []
        for x, (dtype, shape) in known.items():
            if x.dtype != dtype or not knows(x.shape, shape):
                assert x.node is not None
                found.append(f"{x.node.op} {x.name}: {x.dtype}{x.shape}, not {dtype}{shape}")
        return len(known), found

    def wrong_sizes(self) -> tuple[int, list[str]]:
        """How many open shapes were compared with those of arrays, and those that are wrong.

        Only arrays outside of loops, branches and functions are compared.
        """
        graph = self.graph()
        inference.infer(graph)
        values = {OPEN: self.size}
        traced = self.concrete.graph
        stated, fetched = [], []
        operations = {op.name: op for op in traced.get_operations()}
        for node in graph.nodes:
            op = operations.get(node.name)
            if op is None or op.type != node.op or len(op.outputs) != len(node.outputs):
                continue
            for ours, theirs in zip(node.outputs, op.outputs, strict=True):
                sizes = ours.sizes
                names = [x for x in (ours.shape or ()) if isinstance(x, str)]
                if names:
                    stated.append((ours, ours.shape))
                    with traced.as_default():
                        fetched.append(tf.shape(theirs))
                if sizes is not None:
                    stated.append((ours, tuple(sizes.ravel())))
                    fetched.append(theirs)
        if not stated:
            return 0, []
        feed = zip(
            self.concrete.inputs, [*self.arrays, *self.concrete.captured_inputs], strict=True
        )
        with tf.compat.v1.Session(graph=traced) as session:
            arrays = session.run(fetched, {x.name: value.numpy() for x, value in feed})
        wrong = []
        for (x, sizes), array in zip(stated, arrays, strict=True):
            expected = [evaluate(size, values) for size in sizes]
            for size, number in zip(expected, np.ravel(array).tolist(), strict=True):
                if size is not None and size != number:
                    wrong.append(f"{x.node.op} {x.name}: {sizes}, but it is {np.ravel(array)}")
                    break
        return len(stated), wrong


def nodes_of(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of those within it."""
    for node in graph.nodes:
        yield node
        for inner in graphs_in(node):
            yield from nodes_of(inner)


def knows(ours: Any, theirs: Any) -> bool:
    """Whether a shape is the other one, or says more."""
    if theirs is None or ours is None:
        return theirs is None
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(b is None or a == b for a, b in pairs)
