"""The graph: nodes, the tensors between them, and functions of them.

The ops have TensorFlow's names, operands and attributes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jax2tf._src.util.typing import PyTree

# The size of a dimension: a number, the name of an open size, or None for one without a name.
Size = int | str | None


@dataclasses.dataclass(eq=False)
class Tensor:
    """The result of a node, or an argument of a graph.

    Attributes:
      name: unique in its graph.
      dtype: NumPy's, or that of ml_dtypes; None for what is no array (a TensorList).
      shape: the sizes of the dimensions; None if even their number is unknown.
      node: the node whose result it is; None for an argument.
      index: the position among the node's results, or among the arguments.
      sizes: the elements of a few integers as sizes, as an array of objects; None if they are not
        known. See `known.sizes_of`.
    """

    name: str
    dtype: np.dtype | None
    shape: tuple[Size, ...] | None
    node: Node | None = None
    index: int = 0
    sizes: np.ndarray | None = None

    @property
    def value(self) -> np.ndarray | None:
        """The array of a constant; None for a tensor that is computed or given."""
        if self.node is None or self.node.op != "Const":
            return None
        return self.node.attributes["value"]


@dataclasses.dataclass(eq=False)
class Node:
    """One use of an op.

    Attributes:
      op: TensorFlow's name of the op, such as "AddV2".
      name: unique in its graph.
      inputs: the operands.
      attributes: numbers, bools, text, dtypes of NumPy, shapes, lists of them; arrays for a Const;
        the name of a function of the program for `f`, `body`, `cond`, `then_branch`, ...
      outputs: the results.
      scope: the name stack of JAX, such as "Block/Dense_0".
      captured: the tensors that graphs within the node read of those around them, when it was made.
    """

    op: str
    name: str
    inputs: list[Tensor]
    attributes: Mapping[str, PyTree]
    outputs: list[Tensor] = dataclasses.field(default_factory=list)
    scope: str = ""
    captured: Sequence[Tensor] = ()


@dataclasses.dataclass(eq=False)
class Graph:
    """Nodes in an order in which operands stand before their readers.

    Attributes:
      name: the name of the function.
      inputs: the arguments.
      outputs: the results, by position.
      nodes: all nodes.
    """

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    nodes: list[Node]


@dataclasses.dataclass(eq=False)
class Program:
    """A graph with the functions that its nodes name.

    Attributes:
      main: its inputs have the names of the user's.
      output_names: the user's names of its outputs.
      functions: graphs by name.
    """

    main: Graph
    output_names: list[str]
    functions: Mapping[str, Graph]


def graphs_in(node: Node) -> list[Graph]:
    """The graphs that a node holds: those of a loop or of branches that are inlined."""
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def captured_by(graphs: Sequence[Graph]) -> list[Tensor]:
    """The tensors around graphs that their nodes read, or that are their results."""
    own: set[Tensor] = set()
    read: dict[Tensor, None] = {}
    for graph in graphs:
        own.update(graph.inputs)
        for node in graph.nodes:
            own.update(node.outputs)
            read.update(dict.fromkeys((*node.inputs, *node.captured)))
        read.update(dict.fromkeys(graph.outputs))
    return [x for x in read if x not in own]
