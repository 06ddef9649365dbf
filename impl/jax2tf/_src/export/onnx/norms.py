"""LayerNormalization and RMSNormalization for what a graph computes in several ops.

JAX's libraries write these norms in different orders: a product with the inverse of a root, or a
quotient by the root; the scale beside the array or beside the inverse; a mean that keeps its
dimension, or gets it back later. All of them are x / sqrt(mean(x ** 2) + epsilon) * scale, and a
layer norm takes a mean away from x before.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import (
    axes_of,
    become,
    constant,
    inside,
    is_float32,
    known,
    made_by,
    reader_of,
    scalar,
    sizes_of,
)

# The first opset that has RMSNormalization.
_OPSET_OF_RMS = 23


def merge(model: ir.Model) -> None:
    """Merges the nodes of each norm, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.domain == "" and node.op_type in ("Div", "Mul"):
                _merge(model, node)


@dataclasses.dataclass(frozen=True)
class _Mean:
    """The mean of an array over its last axis.

    Attributes:
      array: the array.
      node: the node that computes the mean.
      keeps: whether its result has a dimension of size one in place of the axis.
    """

    array: ir.Value
    node: ir.Node
    keeps: bool


@dataclasses.dataclass(frozen=True)
class _Norm:
    """An array over the root of the mean of its squares along the last axis, and a scale.

    Attributes:
      array: the array, which a layer norm has made by taking a mean away.
      root: the value of the root.
      total: the node that adds epsilon under the root.
      epsilon: that number.
      mean: the mean of the squares.
      square: the node that makes the squares.
      scale: another factor of the product; None if there is none.
    """

    array: ir.Value
    root: ir.Value
    total: ir.Node
    epsilon: float
    mean: _Mean
    square: ir.Node
    scale: ir.Value | None = None


def _merge(model: ir.Model, node: ir.Node) -> None:
    """Merges the norm whose quotient or product a node makes, if it makes one."""
    norm = _norm_of(node)
    if norm is None:
        return
    source = _centered(norm)
    described = norm.array if source is None else source
    sizes, last = sizes_of(described), node
    if not is_float32(described) or not sizes or not sizes[-1]:
        return
    if norm.scale is None:
        last, scale = _next(model, node, "Mul", sizes)
    else:
        scale = _row(model, norm.scale, node.outputs[0], sizes)
        if scale is None:
            return
    if source is None:
        _write_rms(model, node, last, norm, scale)
        return
    last, offset = (last, None) if scale is None else _next(model, last, "Add", sizes)
    operands = [_or_ones(model, scale, sizes[-1]), *([] if offset is None else [offset])]
    become(last, "LayerNormalization", source, *operands, axis=-1, epsilon=norm.epsilon)


def _write_rms(
    model: ir.Model, node: ir.Node, last: ir.Node, norm: _Norm, scale: ir.Value | None
) -> None:
    """Writes ONNX's op, or before the opset that has it the nodes that ONNX Runtime makes one of.

    These are a power, its mean, and a quotient by a root, times a scale.
    """
    width = (sizes_of(norm.array) or [0])[-1] or 0
    if model.graph.opset_imports[""] >= _OPSET_OF_RMS:
        row = _or_ones(model, scale, width)
        become(last, "RMSNormalization", norm.array, row, axis=-1, epsilon=norm.epsilon)
        return
    become(norm.square, "Pow", norm.array, constant(model, "2.0", np.array(2, np.float32)))
    _keep_dimension(norm)
    quotient = node if last is not node else _before(node, "Div")
    become(quotient, "Div", norm.array, norm.root)
    if quotient is not node:
        become(node, "Mul", quotient.outputs[0], _or_ones(model, scale, width))


def _keep_dimension(norm: _Norm) -> None:
    """Lets the mean, and what is computed of it, keep the last dimension."""
    mean = norm.mean.node
    mean.attributes["keepdims"] = ir.AttrInt64("keepdims", 1)
    norm.total.replace_input_with(0, mean.outputs[0])
    assert norm.array.shape is not None
    for value in (mean.outputs[0], norm.total.outputs[0], norm.root):
        value.type = norm.array.type
        value.shape = ir.Shape([*list(norm.array.shape)[:-1], 1])


def _before(node: ir.Node, op: str) -> ir.Node:
    """A new node before another one, with a result like that of the other one."""
    made = ir.node(op, node.inputs, name=f"{node.name}~before")
    made.metadata_props.update(node.metadata_props)
    (result,), (other,) = made.outputs, node.outputs
    result.name, result.type, result.shape = made.name, other.type, other.shape
    assert node.graph is not None
    node.graph.insert_before(node, made)
    return made


def _or_ones(model: ir.Model, scale: ir.Value | None, width: int) -> ir.Value:
    if scale is not None:
        return scale
    return constant(model, f"ones({width})", np.ones(width, np.float32))


# --- what is found --------------------------------------------------------------------------------


def _norm_of(node: ir.Node) -> _Norm | None:
    """The quotient by a root, or the product with the inverse of one; None if it is neither."""
    if node.op_type == "Div":
        factors, roots = _factors(node.inputs[0]), [_expanded(node.inputs[1])]
    else:
        factors = [x for operand in node.inputs for x in _factors(operand)]
        inverses = [x for x in factors if _inverted(x) is not None]
        factors = [x for x in factors if x not in inverses]
        roots = [(_inverted(x), _expanded(x)[1]) for x in inverses]
    if len(roots) != 1 or len(factors) not in (1, 2):
        return None
    ((root, is_expanded),) = roots
    for i, array in enumerate(factors):
        norm = _norm_by(array, root, node, is_expanded)
        if norm is not None:
            scales = factors[:i] + factors[i + 1 :]
            return dataclasses.replace(norm, scale=scales[0] if scales else None)
    return None


def _factors(value: ir.Value | None) -> list[ir.Value | None]:
    """The factors of a product that is read once, or the value."""
    node = made_by(value, "Mul")
    if node is None or reader_of(node.outputs[0]) is None:
        return [value]
    return [x for operand in node.inputs for x in _factors(operand)]


def _inverted(value: ir.Value | None) -> ir.Value | None:
    """The value whose inverse this is."""
    return inside(_expanded(value)[0], "Reciprocal")


def _expanded(value: ir.Value | None) -> tuple[ir.Value | None, bool]:
    """The value without a dimension of size one at its end that a node has added, if one has."""
    for op in ("Unsqueeze", "Reshape"):
        source = inside(value, op)
        if source is None or source.shape is None or value is None or value.shape is None:
            continue
        if list(value.shape) == [*source.shape, 1]:
            return source, True
    return value, False


def _norm_by(
    array: ir.Value | None, root: ir.Value | None, node: ir.Node, is_expanded: bool
) -> _Norm | None:
    """An array over a root, if that is the root of the mean of its squares."""
    total = made_by(inside(root, "Sqrt"), "Add")
    if array is None or total is None or reader_of(total.outputs[0]) is None:
        return None
    means, epsilon = total.inputs[0], scalar(total.inputs[1], total.inputs[0])
    broadcast = inside(means, "Expand")
    if broadcast is not None and means is not None and _same_shape(means, array):
        means = broadcast
    mean = _mean_of(means)
    if total.graph is not node.graph or mean is None or epsilon is None or epsilon < 0:
        return None
    adds_back = _expanded(means)[1]
    square = None if reader_of(mean.array) is None else mean.array.producer()
    if square is None or square.domain or mean.keeps is (is_expanded or adds_back):
        return None
    is_power = square.op_type == "Pow" and scalar(square.inputs[1], mean.array) == 2.0
    is_product = square.op_type == "Mul" and square.inputs[1] is array
    if square.inputs[0] is not array or not (is_power or is_product):
        return None
    assert root is not None
    return _Norm(array, root, total, epsilon, mean, square)


def _mean_of(value: ir.Value | None) -> _Mean | None:
    """The mean over the last axis that a value is, with or without a dimension for it."""
    node = made_by(_expanded(value)[0], "ReduceMean")
    if node is None or reader_of(node.outputs[0]) is None:
        return None
    keeps, sizes = node.attributes.get("keepdims"), sizes_of(node.inputs[0])
    if sizes is None or axes_of(node) != [len(sizes) - 1]:
        return None
    (array, *_) = node.inputs
    assert array is not None
    return _Mean(array, node, keeps is None or keeps.as_int() == 1)


def _centered(norm: _Norm) -> ir.Value | None:
    """The array whose mean over the last axis was taken away; None if none was."""
    node = made_by(norm.array, "Sub")
    readers = {use.node for use in norm.array.uses()}
    if node is None or len(readers) != 2 or norm.array.is_graph_output():
        return None
    x, subtracted = node.inputs
    mean = _mean_of(subtracted)
    if x is None or mean is None or mean.array is not x:
        return None
    return x if mean.keeps is not _expanded(subtracted)[1] else None


def _next(
    model: ir.Model, node: ir.Node, op: str, sizes: list[int | None]
) -> tuple[ir.Node, ir.Value | None]:
    """The node that alone reads a result, if it is this op with a row of numbers, and the row."""
    reader = reader_of(node.outputs[0])
    if reader is None or (reader.domain, reader.op_type) != ("", op):
        return node, None
    if reader.graph is not node.graph:
        return node, None
    (other,) = (x for x in reader.inputs if x is not node.outputs[0])
    row = _row(model, other, node.outputs[0], sizes)
    return (node, None) if row is None else (reader, row)


def _row(
    model: ir.Model, row: ir.Value | None, beside: ir.Value, sizes: list[int | None]
) -> ir.Value | None:
    """A number for each element of the last dimension, as a vector; None if it is something else.

    The row may be broadcast to the shape of the value beside it.
    """
    broadcast = inside(row, "Expand")
    if broadcast is not None and row is not None and _same_shape(row, beside):
        row = broadcast
    found, array = sizes_of(row), known(row)
    if row is None or not is_float32(row) or not found:
        return None
    if found != [1] * (len(found) - 1) + sizes[-1:]:
        return None
    if len(found) == 1:
        return row
    if array is None or len(found) > len(sizes):
        return None
    return constant(model, f"{row.name}[{sizes[-1]}]", array.reshape(-1))


def _same_shape(x: ir.Value, y: ir.Value) -> bool:
    """Whether two values have one shape, in which each open size has a name."""
    if x.shape is None or y.shape is None or ir.SymbolicDim(None) in list(x.shape):
        return False
    return list(x.shape) == list(y.shape)
