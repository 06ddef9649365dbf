"""What is known of an inlined graph is computed, and what no result needs goes."""

from __future__ import annotations

from jax2tf._src.graph.folding import fold
from jax2tf._src.graph.graph import Graph, graphs_in
from jax2tf._src.graph.inference import infer_node
from jax2tf._src.graph.pruning import prune


def simplify(graph: Graph) -> None:
    """Simplifies an inlined graph in place."""
    _compute(graph)
    prune(graph)


def _compute(graph: Graph) -> None:
    """Finds shapes and values, each of which may lead to others."""
    for node in graph.nodes:
        infer_node(node, keeps=True)
        for inner in graphs_in(node):
            _compute(inner)
        fold(node)
