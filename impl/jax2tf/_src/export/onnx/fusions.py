"""ONNX's own op for what a graph computes in several: Gelu.

ONNX Runtime has this op, and makes it of the same pattern when it loads a model. Written as one op
it takes less of the file and of the time to load, and other engines have it too. norms.py does the
same for norms.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import become, inside, is_float32, made_by, reader_of, scalar

# The first opset that has Gelu.
_OPSET_OF_GELU = 20


def merge(model: ir.Model) -> None:
    """Merges the nodes of each pattern, in place."""
    if model.graph.opset_imports[""] < _OPSET_OF_GELU:
        return
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if (node.domain, node.op_type) == ("", "Mul"):
                _gelu(node)


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


def _of_erf(value: ir.Value, x: ir.Value) -> bool:
    return _with(inside(value, "Erf"), "Mul", math.sqrt(0.5)) is x


def _of_tanh(value: ir.Value, x: ir.Value) -> bool:
    total = made_by(_with(inside(value, "Tanh"), "Mul", math.sqrt(2 / math.pi)), "Add")
    if total is None or reader_of(total.outputs[0]) is None:
        return False
    for first, second in (total.inputs, reversed(total.inputs)):
        power = made_by(_with(second, "Mul", 0.044715), "Pow")
        if first is x and power is not None and reader_of(power.outputs[0]) is not None:
            return power.inputs[0] is x and scalar(power.inputs[1], x) == 3.0
    return False
