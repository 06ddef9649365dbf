"""Passes over the written model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from onnx_ir.passes import common

from jax2tf._src.export.onnx import biases, factors, fusions, norms, redundant, sharing, transposes

_remove_unused = common.RemoveUnusedNodesPass()

# Passes change a model in place. Those of our own look for values with one reader, so that nodes
# that nobody reads go before.
_PASSES: Sequence[Callable[[ir.Model], object]] = (
    # A mean that a norm takes twice is one.
    common.CommonSubexpressionEliminationPass(),
    _remove_unused,
    norms.merge,
    fusions.merge,
    _remove_unused,
    transposes.merge,
    _remove_unused,
    biases.merge,
    redundant.remove,
    common.CommonSubexpressionEliminationPass(),
    _remove_unused,
    factors.keep_apart,
    sharing.share,
)


def improve(model: ir.Model) -> None:
    """Makes a model smaller, in place."""
    graphs = [model.graph, *model.graph.subgraphs()]
    described = [[(x.type, x.shape) for x in graph.outputs] for graph in graphs]
    for each in _PASSES:
        each(model)
    # The elimination of common subexpressions forgets the types of results that it replaces.
    for graph, descriptions in zip(graphs, described, strict=True):
        for value, (kind, shape) in zip(graph.outputs, descriptions, strict=True):
            value.type, value.shape = kind, shape
