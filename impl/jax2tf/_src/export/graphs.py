"""Counts the ops of a TensorFlow graph."""

from __future__ import annotations

from jax2tf._src.util.lazy_imports import tf

# These ops compute nothing.
_NOT_COUNTED = frozenset({"Const", "Placeholder", "NoOp", "Identity", "IdentityN"})


def count_ops(graph_def: tf.compat.v1.GraphDef) -> int:
    """The ops of a graph and of the functions in its library, without constants and inputs."""
    functions = [node for f in graph_def.library.function for node in f.node_def]
    return sum(node.op not in _NOT_COUNTED for node in [*graph_def.node, *functions])
