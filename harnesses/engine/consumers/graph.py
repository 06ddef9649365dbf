"""A harness as a graph on its own: what an engine is given."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Graph:
    """A TensorFlow function of named arrays that gives a dict of named arrays.

    Attributes:
      function: with an input signature; its one concrete function is traced.
      module: has the function as its attribute `function`, for who saves it.
      inputs: the names of its parameters, in order.
      outputs: the names of its results, in order.
      tree: the tree whose leaves the results are.
    """

    function: Any
    module: tf.Module
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tree: Any


def graph_of(converted: Callable[..., Any], specs: Sequence[Any]) -> Graph:
    """The graph of a function whose arguments are pytrees of what `specs`, tf.TensorSpecs, say."""
    leaves, in_tree = jax.tree.flatten(tuple(specs))
    inputs = tuple(f"x{i}" for i in range(len(leaves)))
    trees: list[Any] = []

    def function(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        results, tree = jax.tree.flatten(converted(*jax.tree.unflatten(in_tree, tensors)))
        trees.append(tree)
        # An Identity each: engines take a tensor that is input and output at once for one of them.
        return {f"y{i}": tf.identity(result) for i, result in enumerate(results)}

    signature = [
        tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in zip(inputs, leaves, strict=True)
    ]
    module = tf.Module()
    module.function = tf.function(function, autograph=False, input_signature=signature)
    module.function.get_concrete_function()
    outputs = tuple(f"y{i}" for i in range(trees[-1].num_leaves))
    return Graph(module.function, module, inputs, outputs, trees[-1])


@contextlib.contextmanager
def saved(graph: Graph) -> Iterator[Path]:
    """The graph as a SavedModel for inference, in a folder that goes when the context ends."""
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    with tempfile.TemporaryDirectory(prefix="graph-") as folder:
        tf.saved_model.save(graph.module, folder, signatures=graph.function, options=options)
        yield Path(folder)
