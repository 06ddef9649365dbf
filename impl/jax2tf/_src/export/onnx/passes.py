"""Passes over the written model."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common


def improve(model: ir.Model) -> None:
    """Makes a model smaller, in place."""
    for each in (
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
    ):
        each(model)
