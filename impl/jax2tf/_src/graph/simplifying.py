"""What is known of an inlined graph is computed, and what no result needs goes."""

from __future__ import annotations

from jax2tf._src.graph.folding import fold
from jax2tf._src.graph.graph import Graph, graphs_in
from jax2tf._src.graph.pruning import prune
from jax2tf._src.graph.shapes import infer, take


def simplify(graph: Graph) -> None:
    """Simplifies an inlined graph in place."""
    _compute(graph)
    prune(graph)


def _compute(graph: Graph) -> None:
    """Finds shapes and values, each of which may lead to others."""
    for node in graph.nodes:
        for inner in graphs_in(node):
            for argument, given in zip(inner.inputs, node.inputs, strict=False):
                take(argument, given.shape)
            _compute(inner)
        infer(node)
        fold(node)
