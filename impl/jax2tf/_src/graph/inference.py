"""Infers the dtypes, shapes and known sizes of the tensors of an inlined graph."""

from __future__ import annotations

from collections.abc import Sequence

from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in
from jax2tf._src.graph.shapes import types_of
from jax2tf._src.graph.shapes.control_flow import joined, shapes_of_branches
from jax2tf._src.graph.shapes.known import sizes_of
from jax2tf._src.graph.shapes.registry import Shape


def infer(graph: Graph) -> None:
    """Sets the types of all tensors from those of the arguments; in inner graphs too.

    Raises:
      ValueError: an op does not take its operands.
      NotImplementedError: the shapes of an op are not known.
    """
    for node in graph.nodes:
        infer_node(node)


def infer_node(node: Node) -> None:
    """Sets the types of the results of a node from those of its operands."""
    if node.op == "While":
        _infer_loop(node)
        return
    if node.op == "If":
        branches = graphs_in(node)
        for branch in branches:
            infer(branch)
        _set_types(node.outputs, branches[0].outputs, shapes_of_branches(branches))
        return
    if node.op == "Const":
        (result,) = node.outputs
        result.dtype, result.shape = node.attributes["value"].dtype, node.attributes["value"].shape
        return
    types = types_of(node.op, node.inputs, node.attributes)
    for i, (tensor, (dtype, shape)) in enumerate(zip(node.outputs, types, strict=True)):
        tensor.dtype, tensor.shape = dtype, shape
        tensor.sizes = sizes_of(node, i)


def _infer_loop(node: Node) -> None:
    """A carried tensor has the shape that its first value and each step's result have in common."""
    cond, body = node.attributes["cond"], node.attributes["body"]
    shapes: list[Shape] = [x.shape for x in node.inputs]
    while True:
        _set_types(body.inputs, node.inputs, shapes)
        infer(body)
        after = [joined(a, x.shape) for a, x in zip(shapes, body.outputs, strict=True)]
        if after == shapes:
            break
        shapes = after
    _set_types(cond.inputs, node.inputs, shapes)
    infer(cond)
    _set_types(node.outputs, node.inputs, shapes)


def _set_types(tensors: Sequence[Tensor], like: Sequence[Tensor], shapes: Sequence[Shape]) -> None:
    for tensor, other, shape in zip(tensors, like, shapes, strict=True):
        tensor.dtype, tensor.shape = other.dtype, shape
