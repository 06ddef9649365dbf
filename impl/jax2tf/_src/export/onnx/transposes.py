"""Transposes around convolutions and pools, which ONNX has for channels behind the batch only.

JAX's programs have the channels last: each convolution stands between two Transposes. Those behind
it move down through ops on each element, to the Transpose of the next convolution, where both go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

# Ops on each element that are seen between convolutions.
_ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu"),
        *("Selu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"),
    }
)


def merge(model: ir.Model) -> None:
    """Moves Transposes down and merges those that meet, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.op_type == "Transpose":
                _compose(node)
            elif node.op_type in _ELEMENTWISE:
                _sink(model, node)


def _permutation(value: ir.Value | None) -> list[int] | None:
    """The permutation of the Transpose that makes a value; None if another node makes it."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Transpose":
        return None
    order = node.attributes.get("perm")
    return None if order is None else list(order.as_ints())


def _compose(node: ir.Node) -> None:
    """Lets a Transpose read the operand of the Transpose before it."""
    operand = node.inputs[0]
    inner, outer = _permutation(operand), _permutation(node.outputs[0])
    if operand is None or inner is None or outer is None:
        return
    before = operand.producer()
    assert before is not None
    order = [inner[i] for i in outer]
    source = before.inputs[0]
    if order == sorted(order) and not node.outputs[0].is_graph_output():
        assert source is not None
        ir.convenience.replace_all_uses_with(node.outputs[0], source)
        return
    node.replace_input_with(0, source)
    node.attributes["perm"] = ir.AttrInt64s("perm", order)


def _sink(model: ir.Model, node: ir.Node) -> None:
    """Moves the Transposes before a node behind it."""
    (result,) = node.outputs
    orders = [order for order in map(_permutation, node.inputs) if order is not None]
    if not orders or not _is_of_channels(orders[0]) or any(o != orders[0] for o in orders):
        return
    order = orders[0]
    operands = [_turned(model, x, order) for x in node.inputs]
    if result.is_graph_output() or any(x is None for x in operands):
        return
    for i, operand in enumerate(operands):
        node.replace_input_with(i, operand)
    turned = ir.Value(name=f"{result.name}^T", type=result.type, shape=result.shape)
    after = ir.node("Transpose", [result], {"perm": order}, outputs=[turned])
    after.name = turned.name
    after.metadata_props.update(node.metadata_props)
    ir.convenience.replace_all_uses_with(result, turned)
    after.replace_input_with(0, result)
    result.shape = _moved(result.shape, order)
    assert node.graph is not None
    node.graph.insert_after(node, after)


def _is_of_channels(order: Sequence[int]) -> bool:
    """Whether a permutation moves the channels from behind the batch to the end."""
    return len(order) > 2 and list(order) == [0, *range(2, len(order)), 1]


def _turned(model: ir.Model, x: ir.Value | None, order: Sequence[int]) -> ir.Value | None:
    """The operand before its Transpose, or a constant as it stands before one; None if neither."""
    if x is None:
        return None
    if _permutation(x) is not None:
        node = x.producer()
        assert node is not None
        return node.inputs[0] if len(x.uses()) == 1 and not x.is_graph_output() else None
    if x.const_value is None or x.producer() is not None:
        return None
    array = x.const_value.numpy()
    if array.ndim > len(order):  # the result has more dimensions than the Transpose
        return None
    if array.size == 1:
        return x
    whole = array.reshape([1] * (len(order) - array.ndim) + list(array.shape))
    moved = np.ascontiguousarray(whole.transpose(np.argsort(order)))
    name = f"{x.name}^T{len(order)}"
    known = model.graph.initializers.get(name)
    if known is None:
        known = ir.Value(
            name=name,
            const_value=ir.tensor(moved, name=name),
            shape=ir.Shape(moved.shape),
            type=x.type,
        )
        model.graph.register_initializer(known)
    return known


def _moved(shape: ir.Shape | None, order: Sequence[int]) -> ir.Shape | None:
    """The shape before a Transpose whose result has this shape."""
    return None if shape is None else ir.Shape([shape[i] for i in np.argsort(order)])
