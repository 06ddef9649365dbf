"""Passes over the written model, in their order."""

from __future__ import annotations

from jax2tf._src.export.tflite import fusions, moves, redundant
from jax2tf._src.export.tflite.model import Subgraph, graphs_in


def improve(graph: Subgraph) -> None:
    """Makes a graph and those within it leaner."""
    # Graphs that are within others come first, so that a loop sees its body as it will be.
    for each in reversed([*graphs_in(graph)]):
        # Without the ops between them, an activation stands beside what it is fused into.
        redundant.remove(each)
        fusions.fuse(each)
        moves.copy_moved(each)
