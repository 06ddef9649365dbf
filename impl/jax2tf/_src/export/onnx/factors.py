"""Keeps ONNX Runtime from rounding the factors of float64 products of matrices to float32.

ONNX Runtime (1.31) merges a MatMul with a Mul by one number, before or behind it, into its op
FusedMatMul, whose attribute `alpha` is a float32. A Neg between the two keeps them apart. The
number changes its sign with each Neg, so the result has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import constant, known, made_by

# A graph's insert_before or insert_after.
Insert: TypeAlias = Callable[[ir.Node, ir.Node], None]


def keep_apart(model: ir.Model) -> None:
    """Puts a Neg between a MatMul and a Mul by a float64 that is no float32, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.domain == "" and node.op_type == "Mul":
                _keep_apart(model, node)


def _keep_apart(model: ir.Model, node: ir.Node) -> None:
    place = next((i for i, operand in enumerate(node.inputs) if _is_rounded(known(operand))), None)
    graph = node.graph
    if place is None:
        return
    assert graph is not None
    operand = node.inputs[1 - place]
    if operand is not None and _is_product(operand):
        node.replace_input_with(1 - place, _negation(operand, graph.insert_before, node))
        _negate(model, node, place)
    if _meets_product(node.outputs[0]):
        readers = list(node.outputs[0].uses())
        if node.outputs[0].is_graph_output():
            # The graph's result stays as it is; the nodes that read it get a Mul of their own.
            node = _copy(node)
        negated = _negation(node.outputs[0], graph.insert_after, node)
        for reader, index in readers:
            reader.replace_input_with(index, negated)
        _negate(model, node, place)


def _negate(model: ir.Model, node: ir.Node, place: int) -> None:
    factor = node.inputs[place]
    number = known(factor)
    assert factor is not None
    assert number is not None
    node.replace_input_with(place, constant(model, f"{factor.name}/negated", -number))


def _is_rounded(factor: np.ndarray | None) -> bool:
    """Whether float32 does not hold a float64 number."""
    if factor is None or factor.dtype != np.float64 or factor.size != 1:
        return False
    with np.errstate(over="ignore"):
        return bool(factor.reshape(()) != factor.reshape(()).astype(np.float32))


def _is_product(value: ir.Value | None) -> bool:
    """Whether a MatMul makes a value; ONNX Runtime moves a Transpose behind the Mul."""
    while (transpose := made_by(value, "Transpose")) is not None:
        value = transpose.inputs[0]
    return made_by(value, "MatMul") is not None


def _meets_product(value: ir.Value) -> bool:
    """Whether a MatMul reads a value, as it is or transposed."""
    return any(
        node.op_type == "MatMul"
        or (node.op_type == "Transpose" and _meets_product(node.outputs[0]))
        for node in value.consumers()
        if node.domain == ""
    )


def _negation(value: ir.Value, insert: Insert, beside: ir.Node) -> ir.Value:
    name = f"{value.name}/negated/{beside.name}"
    result = ir.Value(name=name, type=value.type, shape=value.shape)
    insert(beside, ir.node("Neg", [value], outputs=[result], name=name))
    return result


def _copy(node: ir.Node) -> ir.Node:
    (result,) = node.outputs
    name = f"{result.name}/copy"
    output = ir.Value(name=name, type=result.type, shape=result.shape)
    copied = ir.node(node.op_type, node.inputs, outputs=[output], name=name)
    assert node.graph is not None
    node.graph.insert_after(node, copied)
    return copied
