"""What a graph is made of: the ops that a function was lowered to."""

import collections
from typing import Any

import tensorflow as tf

from harnesses.cell.cells import Cell

# What tf.function puts around any function, and what names a value without computing it.
_AROUND = ("Placeholder", "Identity", "IdentityN", "NoOp")


class XlaOpError(AssertionError):
    """A lowering that was to do without XLA's ops used one; the message names them."""


def op_types(graph: tf.Graph) -> collections.Counter[str]:
    """How many nodes there are of each op, in a graph and its library, each function once."""
    return collections.Counter(node.op for node in nodes(graph))


def nodes(graph: tf.Graph) -> list[Any]:
    """The NodeDefs of a graph and of its library, each function once."""
    definition = graph.as_graph_def()
    return [*definition.node, *(n for f in definition.library.function for n in f.node_def)]


def budget(cell: Cell, graph: tf.Graph) -> int:
    """The number of nodes that the cell's function was lowered to, those aside that do nothing.

    Raises:
      XlaOpError: if the cell's lowering is "no_xla" and an op's name begins with "Xla".
    """
    ops = op_types(graph)
    forbidden = sorted(op for op in ops if op.startswith("Xla"))
    if cell.lowering == "no_xla" and forbidden:
        raise XlaOpError(f"a graph without XLA's ops holds {', '.join(forbidden)}")
    return sum(count for op, count in ops.items() if op not in _AROUND)
