"""Infers the dtypes, shapes and known sizes of the tensors of an inlined graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in
from jax2tf._src.graph.shapes import known_ops, types_of
from jax2tf._src.graph.shapes.control_flow import joined, shapes_of_branches
from jax2tf._src.graph.shapes.known import sizes_of
from jax2tf._src.graph.shapes.registry import Shape


def infer(graph: Graph, *, keeps: bool = False) -> None:
    """Sets the types of all tensors from those of the arguments; in inner graphs too.

    Args:
      graph: an inlined graph.
      keeps: see `infer_node`.

    Raises:
      ValueError: an op does not take its operands.
      NotImplementedError: the shapes of an op are not known.
    """
    for node in graph.nodes:
        infer_node(node, keeps=keeps)


def infer_node(node: Node, *, keeps: bool = False) -> None:
    """Sets the types of the results of a node from those of its operands.

    Args:
      node: a node; its operands have types.
      keeps: whether sizes that are known already stay known, as those that TensorFlow's set_shape
        stated, and the types of the results of unknown ops.
    """
    if node.op == "While":
        _infer_loop(node, keeps)
        return
    if node.op == "If":
        branches = graphs_in(node)
        for branch in branches:
            infer(branch, keeps=keeps)
        _set_types(node.outputs, branches[0].outputs, shapes_of_branches(branches), keeps)
        return
    if node.op == "Const":
        (result,) = node.outputs
        result.dtype, result.shape = node.attributes["value"].dtype, node.attributes["value"].shape
        return
    if keeps and node.op not in known_ops():
        return
    types = types_of(node.op, node.inputs, node.attributes)
    for i, (tensor, (dtype, shape)) in enumerate(zip(node.outputs, types, strict=True)):
        tensor.dtype, tensor.shape = dtype, kept(shape, tensor.shape) if keeps else shape
        tensor.sizes = sizes_of(node, i)


def kept(shape: Shape, known: Shape) -> Shape:
    """The shape with the sizes that only the known one has."""
    if shape is None or known is None or len(shape) != len(known):
        return known if shape is None else shape
    return tuple(b if a is None else a for a, b in zip(shape, known, strict=True))


def _infer_loop(node: Node, keeps: bool) -> None:
    """A carried tensor has the shape that its first value and each step's result have in common."""
    cond, body = node.attributes["cond"], node.attributes["body"]
    shapes: list[Shape] = [x.shape for x in node.inputs]
    stated = [(x, x.shape) for x in tensors_in(body)]
    while True:
        # What was inferred of smaller shapes is no longer known.
        for x, shape in stated:
            x.shape = shape
        _set_types(body.inputs, node.inputs, shapes, keeps)
        infer(body, keeps=keeps)
        after = [joined(a, x.shape) for a, x in zip(shapes, body.outputs, strict=True)]
        if after == shapes:
            break
        shapes = after
    _set_types(cond.inputs, node.inputs, shapes, keeps)
    infer(cond, keeps=keeps)
    _set_types(node.outputs, node.inputs, shapes, keeps)


def tensors_in(graph: Graph) -> Iterator[Tensor]:
    """The arguments and the results of all nodes of a graph, and of those within it."""
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.outputs
        for inner in graphs_in(node):
            yield from tensors_in(inner)


def _set_types(
    tensors: Sequence[Tensor], like: Sequence[Tensor], shapes: Sequence[Shape], keeps: bool
) -> None:
    for tensor, other, shape in zip(tensors, like, shapes, strict=True):
        tensor.dtype = other.dtype
        tensor.shape = kept(shape, tensor.shape) if keeps else shape
