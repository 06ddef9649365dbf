"""Sums and products with known numbers go into the op before them.

A convolution has a bias, and its kernel can hold the factors of its channels: ONNX Runtime does the
same when it loads a model. Products of matrices are fused with a sum that comes right behind them,
so a sum moves before a Reshape that divides the last dimension, as the heads of an attention do.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import (
    become,
    constant,
    is_float32,
    known,
    made_by,
    reader_of,
    sizes_of,
)

_CONVOLUTIONS = ("Conv", "ConvTranspose")


def merge(model: ir.Model) -> None:
    """Moves the numbers, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.domain == "" and node.op_type in _CONVOLUTIONS:
                while _takes_next(model, node):
                    pass
            elif node.op_type == "Add" and not _adds_zeros(node):
                _move_before_reshape(model, node)
                _merge_product(node)


def _takes_next(model: ir.Model, node: ir.Node) -> bool:
    """Lets a convolution compute the sum or product behind it; says whether it could."""
    (result,) = node.outputs
    reader = reader_of(result)
    if reader is None or reader.graph is not node.graph or not is_float32(reader.outputs[0]):
        return False
    if reader.domain or reader.op_type not in ("Add", "Mul"):
        return False
    if reader.outputs[0].is_graph_output():
        return False
    (given,) = (x for x in reader.inputs if x is not result)
    numbers = _of_channels(node, given)
    if numbers is None or not _put(model, node, reader.op_type, numbers, given):
        return False
    result.shape, result.type = reader.outputs[0].shape, reader.outputs[0].type
    ir.convenience.replace_all_uses_with(reader.outputs[0], result)
    assert node.graph is not None
    node.graph.remove(reader, safe=True)
    return True


def _of_channels(node: ir.Node, given: ir.Value | None) -> np.ndarray | None:
    """Known numbers, one for each channel of a convolution's result; None if they are not so."""
    array, sizes = known(given), sizes_of(node.inputs[1])
    if array is None or not sizes or sizes[0] is None or sizes[1] is None:
        return None
    group = node.attributes["group"].as_int() if "group" in node.attributes else 1
    channels = sizes[0] if node.op_type == "Conv" else sizes[1] * group
    rank = len(sizes)
    if array.ndim > rank:
        return None
    whole = array.reshape([1] * (rank - array.ndim) + list(array.shape))
    if whole.size not in (1, channels) or whole.shape[1] != whole.size:
        return None
    return np.ascontiguousarray(np.broadcast_to(whole.reshape(-1), [channels]))


def _put(
    model: ir.Model, node: ir.Node, op: str, numbers: np.ndarray, given: ir.Value | None
) -> bool:
    """Adds numbers to the bias of a convolution, or multiplies kernel and bias with them."""
    assert given is not None
    old = node.inputs[2] if len(node.inputs) > 2 else None
    bias = known(old)
    if old is not None and bias is None:
        return False
    if op == "Mul":
        kernel = node.inputs[1]
        weights = known(kernel)
        if node.op_type != "Conv" or kernel is None or weights is None or len(kernel.uses()) > 1:
            return False
        with np.errstate(all="ignore"):
            scaled = weights * numbers.reshape([-1] + [1] * (weights.ndim - 1))
        name = f"{kernel.name}*{given.name}"
        node.replace_input_with(1, constant(model, name, scaled))
        del model.graph.initializers[str(kernel.name)]
    if op == "Mul" and bias is None:
        return True
    with np.errstate(all="ignore"):
        new = numbers if bias is None else bias * numbers if op == "Mul" else bias + numbers
    sign = "*" if op == "Mul" else "+"
    before = "" if old is None else f"{old.name}{sign}"
    node.resize_inputs(3)
    node.replace_input_with(2, constant(model, f"{before}{given.name}[{len(numbers)}]", new))
    return True


def _adds_zeros(node: ir.Node) -> bool:
    """Takes a bias of zeros away from a product of matrices; says whether it was one.

    A new model has such biases. The sum of a product's terms begins with 0.0, and is never -0.0.
    """
    (result,) = node.outputs
    for x, given in (tuple(node.inputs), tuple(reversed(node.inputs))):
        row, sizes = known(given), sizes_of(x)
        if x is None or row is None or sizes is None or result.is_graph_output():
            continue
        is_zero = row.dtype.kind == "f" and not row.any() and not np.signbit(row).any()
        has_size = all(
            n in (1, size) for n, size in zip(row.shape[::-1], sizes[::-1], strict=False)
        )
        if is_zero and has_size and row.ndim <= len(sizes) and _is_product(x):
            ir.convenience.replace_all_uses_with(result, x)
            return True
    return False


def _is_product(value: ir.Value | None) -> bool:
    """Whether a value has the elements of a product of matrices, in whatever order."""
    for op in ("Reshape", "Transpose"):
        node = made_by(value, op)
        if node is not None:
            return _is_product(node.inputs[0])
    return made_by(value, "MatMul") is not None


def _move_before_reshape(model: ir.Model, node: ir.Node) -> None:
    """Adds a row before a Reshape that divides a last dimension of a product, not behind it."""
    for x, given in (tuple(node.inputs), tuple(reversed(node.inputs))):
        reshape = made_by(x, "Reshape")
        row = known(given)
        if reshape is None or row is None or reshape.graph is not node.graph:
            continue
        product, shape = reshape.inputs
        before, after = sizes_of(product), sizes_of(reshape.outputs[0])
        if reader_of(reshape.outputs[0]) is not node or made_by(product, "MatMul") is None:
            continue
        if not before or not after or len(after) < row.ndim or before[-1] != row.size:
            continue
        if row.ndim < 2 or after[len(after) - row.ndim :] != list(row.shape):
            continue
        assert product is not None
        assert given is not None
        assert node.graph is not None
        flat = constant(model, f"{given.name}[{row.size}]", row.reshape(-1))
        total = ir.node("Add", [product, flat])
        total.name = f"{node.name}~before"
        total.metadata_props.update(node.metadata_props)
        (sum_,) = total.outputs
        sum_.name, sum_.type, sum_.shape = total.name, product.type, product.shape
        node.graph.insert_before(reshape, total)
        node.op_type = "Reshape"
        node.attributes.update(reshape.attributes)
        node.replace_input_with(0, sum_)
        node.replace_input_with(1, shape)
        node.graph.remove(reshape, safe=True)
        return


def _merge_product(node: ir.Node) -> None:
    """Makes a sum of a product of matrices and a row one op, as ONNX Runtime does."""
    for total, row in (tuple(node.inputs), tuple(reversed(node.inputs))):
        product = made_by(total, "MatMul")
        if product is None or product.graph is not node.graph or not is_float32(total):
            continue
        x, y = product.inputs
        left, right = sizes_of(x), sizes_of(y)
        if not left or not right or len(left) != 2 or len(right) != 2 or not right[0]:
            continue
        if reader_of(product.outputs[0]) is node and right[1] and sizes_of(row) == right[1:]:
            become(node, "Gemm", x, y, row)
            return
