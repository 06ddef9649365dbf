"""ONNX's own ops for what a graph computes in several: LayerNormalization and Gelu.

ONNX Runtime has these ops, and makes them of the same patterns when it loads a model. Written as
one op they take less of the file and of the time to load, and other engines have them too.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import (
    axes_of,
    become,
    constant,
    is_float32,
    known,
    made_by,
    reader_of,
    scalar,
    sizes_of,
)

# The first opset that has Gelu.
_OPSET_OF_GELU = 20


def merge(model: ir.Model) -> None:
    """Merges the nodes of each pattern, in place."""
    has_gelu = model.graph.opset_imports[""] >= _OPSET_OF_GELU
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.op_type == "Div":
                _layer_norm(model, node)
            elif node.op_type == "Mul" and has_gelu:
                _gelu(node)


# --- norms ----------------------------------------------------------------------------------------


def _layer_norm(model: ir.Model, root: ir.Node) -> None:
    """(x - mean) / sqrt(variance + epsilon), times a scale, plus an offset."""
    centered, deviation = root.inputs
    x = _centered(centered)
    epsilon = _epsilon(centered, deviation)
    sizes = sizes_of(x)
    if epsilon is None or not is_float32(x) or not sizes or not sizes[-1]:
        return
    width = sizes[-1]
    last, scale = _next(model, root, "Mul", width)
    if scale is None:
        scale = constant(model, f"ones({width})", np.ones(width, np.float32))
        become(root, "LayerNormalization", x, scale, axis=-1, epsilon=epsilon)
        return
    last, offset = _next(model, last, "Add", width)
    operands = [scale] if offset is None else [scale, offset]
    become(last, "LayerNormalization", x, *operands, axis=-1, epsilon=epsilon)


def _centered(value: ir.Value | None) -> ir.Value | None:
    """The array less its mean over the last axis is a value: the array, or None."""
    node = made_by(value, "Sub")
    if node is None or len(node.outputs[0].uses()) != 2:
        return None
    x, mean = node.inputs
    return x if _mean_of(mean) is x else None


def _mean_of(value: ir.Value | None) -> ir.Value | None:
    """A value is the mean over the last axis of the result; None if it is none."""
    node = made_by(value, "ReduceMean")
    if node is None or reader_of(node.outputs[0]) is None:
        return None
    keeps = node.attributes.get("keepdims")
    sizes = sizes_of(node.inputs[0])
    is_last = sizes is not None and axes_of(node) == [len(sizes) - 1]
    return node.inputs[0] if is_last and (keeps is None or keeps.as_int() == 1) else None


def _epsilon(centered: ir.Value | None, deviation: ir.Value | None) -> float | None:
    """The number that is added to the mean of the squares of centered numbers, under a root."""
    root = made_by(deviation, "Sqrt")
    total = None if root is None or reader_of(root.outputs[0]) is None else root.inputs[0]
    sum_ = made_by(total, "Add")
    if sum_ is None or reader_of(sum_.outputs[0]) is None:
        return None
    power = made_by(_mean_of(sum_.inputs[0]), "Pow")
    if power is None or power.inputs[0] is not centered or scalar(power.inputs[1], centered) != 2.0:
        return None
    epsilon = scalar(sum_.inputs[1], sum_.inputs[0])
    return epsilon if reader_of(power.outputs[0]) is not None else None


def _next(model: ir.Model, node: ir.Node, op: str, width: int) -> tuple[ir.Node, ir.Value | None]:
    """The node that alone reads a result, if it is this op with a row of numbers, and the row."""
    reader = reader_of(node.outputs[0])
    if reader is None or (reader.domain, reader.op_type) != ("", op):
        return node, None
    if reader.graph is not node.graph:
        return node, None
    (row,) = (x for x in reader.inputs if x is not node.outputs[0])
    sizes, array = sizes_of(row), known(row)
    if not is_float32(row) or not sizes or sizes != [1] * (len(sizes) - 1) + [width]:
        return node, None
    if len(sizes) > 1:
        if array is None or len(sizes) > len(sizes_of(node.inputs[0]) or ()):
            return node, None
        assert row is not None
        row = constant(model, f"{row.name}[{width}]", array.reshape(-1))
    return reader, row


# --- gelu -----------------------------------------------------------------------------------------


def _gelu(root: ir.Node) -> None:
    """x / 2 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    for first, second in (root.inputs, reversed(root.inputs)):
        x, one_more = _with(first, "Mul", 0.5), _with(second, "Add", 1.0)
        if x is None or one_more is None or not is_float32(x):
            continue
        if _of_erf(one_more, x):
            become(root, "Gelu", x)
            return
        if _of_tanh(one_more, x):
            become(root, "Gelu", x, approximate="tanh")
            return


def _with(value: ir.Value | None, op: str, number: float) -> ir.Value | None:
    """The other operand of a sum or product with a number; None if there is no such node."""
    node = made_by(value, op)
    if node is None or reader_of(node.outputs[0]) is None:
        return None
    for x, y in (node.inputs, reversed(node.inputs)):
        given = scalar(y, x)
        if given is not None and np.float32(given) == np.float32(number):
            return x
    return None


def _inside(value: ir.Value | None, op: str) -> ir.Value | None:
    """The operand of a function that is read once."""
    node = made_by(value, op)
    return None if node is None or reader_of(node.outputs[0]) is None else node.inputs[0]


def _of_erf(value: ir.Value, x: ir.Value) -> bool:
    return _with(_inside(value, "Erf"), "Mul", math.sqrt(0.5)) is x


def _of_tanh(value: ir.Value, x: ir.Value) -> bool:
    total = made_by(_with(_inside(value, "Tanh"), "Mul", math.sqrt(2 / math.pi)), "Add")
    if total is None or reader_of(total.outputs[0]) is None:
        return False
    for first, second in (total.inputs, reversed(total.inputs)):
        power = made_by(_with(second, "Mul", 0.044715), "Pow")
        if first is x and power is not None and reader_of(power.outputs[0]) is not None:
            return power.inputs[0] is x and scalar(power.inputs[1], x) == 3.0
    return False
