"""Passes over the written model."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from jax2tf._src.export.onnx import transposes

_PASSES = (
    common.CommonSubexpressionEliminationPass(),
    common.RemoveUnusedNodesPass(),
)


def improve(model: ir.Model) -> None:
    """Makes a model smaller, in place."""
    graphs = [model.graph, *model.graph.subgraphs()]
    described = [[(x.type, x.shape) for x in graph.outputs] for graph in graphs]
    transposes.merge(model)
    for each in _PASSES:
        each(model)
    # The first pass forgets the types of results that it replaces.
    for graph, descriptions in zip(graphs, described, strict=True):
        for value, (kind, shape) in zip(graph.outputs, descriptions, strict=True):
            value.type, value.shape = kind, shape
