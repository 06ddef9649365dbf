"""What the writers of ONNX and of LiteRT share: a way through a graph, and its values so far."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from jax2tf._src.graph.graph import Graph, Node, Tensor
from jax2tf._src.graph.pruning import live_in
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import PyTree

# Equal constants of at most so many bytes are one at once; passes compare larger ones.
_SMALL = 4096


class GraphWriter(abc.ABC):
    """Writes the nodes of one graph as values of an engine's file."""

    def __init__(self, node: Node | None) -> None:
        self._values: dict[Tensor, PyTree] = {}
        self._node = node

    @abc.abstractmethod
    def value(self, tensor: Tensor) -> PyTree:
        """The value of the file that a tensor of the graph has become."""

    @abc.abstractmethod
    def _write_node(self, node: Node) -> None: ...

    def take(self, values: Mapping[Tensor, PyTree]) -> None:
        """Takes these values for tensors of the graph, such as its arguments."""
        self._values.update(values)

    def write_results(self, graph: Graph, results: Sequence[Tensor]) -> list[PyTree]:
        """Writes the nodes of a graph that these tensors need; returns the tensors' values."""
        live = live_in(graph, results)
        outer = self._node
        for node in graph.nodes:
            if node.op != "Const" and not live.isdisjoint(node.outputs):
                self._write_node(node)
        self._node = outer
        return [self.value(tensor) for tensor in results]


def key_of_constant(array: np.ndarray) -> Hashable:
    """Equal for arrays that are one constant: the same one, or small ones with equal elements."""
    if array.nbytes > _SMALL:
        return Identity(array)
    return str(array.dtype), array.shape, array.tobytes()
