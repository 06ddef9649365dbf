"""Ops that undo, or that hide, the op before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import known, made_by, sizes_of

# The bytes of integers that not even float64 can hold.
_LONG = 8


def remove(model: ir.Model) -> None:
    """Lets the readers of such ops read what is before them, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            rule = None if node.domain else _RULES.get(node.op_type)
            if rule is None:
                continue
            source = rule(node)
            if source is not None and not node.outputs[0].is_graph_output():
                ir.convenience.replace_all_uses_with(node.outputs[0], source)


def _reshape(node: ir.Node) -> ir.Value | None:
    """A Reshape reads what is before another one; one to the same sizes does nothing."""
    x, shape = node.inputs[0], known(node.inputs[1])
    if shape is None or x is None:
        return None
    if 0 not in shape:
        for op in ("Reshape", "Squeeze", "Unsqueeze"):
            before = made_by(x, op)
            if before is not None:
                x = before.inputs[0]
                node.replace_input_with(0, x)
    sizes = sizes_of(x)
    return x if sizes is not None and None not in sizes and sizes == shape.tolist() else None


def _undone(op: str) -> Callable[[ir.Node], ir.Value | None]:
    """A rule for an op that undoes another one of the same axes."""

    def rule(node: ir.Node) -> ir.Value | None:
        before = made_by(node.inputs[0], op)
        if before is None or len(before.inputs) < 2 or len(node.inputs) < 2:
            return None
        first, second = known(before.inputs[1]), known(node.inputs[1])
        if first is None or second is None or not np.array_equal(first, second):
            return None
        return before.inputs[0]

    return rule


def _cast(node: ir.Node) -> ir.Value | None:
    """A Cast reads what is before a Cast that keeps all numbers."""
    x, to = node.inputs[0], _to(node)
    before = made_by(x, "Cast")
    if before is not None and _keep(_dtype(before.inputs[0]), _to(before), to):
        x = before.inputs[0]
        node.replace_input_with(0, x)
    return x if _dtype(x) == to else None


def _to(node: ir.Node) -> ir.DataType:
    return ir.DataType(node.attributes["to"].as_int())


def _dtype(value: ir.Value | None) -> ir.DataType | None:
    return None if value is None else value.dtype


def _keep(source: ir.DataType | None, between: ir.DataType, to: ir.DataType) -> bool:
    """Whether two Casts give what one gives."""
    if source is None:
        return False
    first, second, last = (x.numpy() for x in (source, between, to))
    if any(dtype.kind not in "biuf" for dtype in (first, second, last)):
        return False
    # Numbers out of range, and NaN, become integers in ways that differ with the dtype.
    if first.kind == "f" and last.kind != "f":
        return False
    is_rounded = first.kind in "iu" and first.itemsize == _LONG and second.kind == "f"
    return np.can_cast(first, second) and not is_rounded


_RULES: Mapping[str, Callable[[ir.Node], ir.Value | None]] = {
    "Identity": lambda node: node.inputs[0],
    "Cast": _cast,
    "Reshape": _reshape,
    "Squeeze": _undone("Unsqueeze"),
    "Unsqueeze": _undone("Squeeze"),
}
