"""Stores the weights of an OpenVINO model in fewer bits, with ops that convert them to float32."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from jax2tf._src.export import packages
from jax2tf._src.export.weights import in_half_bytes, is_weight, quantized

if TYPE_CHECKING:
    import openvino


def store(model: openvino.Model, kind: str) -> None:
    """Stores the weights of a model, and of the bodies of its loops, in fewer bits.

    Args:
      model: a model with float32 weights, which is changed in place.
      kind: "int8_weights"; or "int4", with 4 bits for the weights of products and 8 for others.
    """
    openvino = packages.import_package("openvino", "the format 'openvino'")
    ops = importlib.import_module("openvino.opset13")
    for op in model.get_ops():
        body = getattr(op, "get_function", None)
        if body is not None:
            store(body(), kind)
        if op.get_type_name() != "Constant" or op.get_element_type() != openvino.Type.f32:
            continue
        weights = op.get_data()
        readers = list(op.output(0).get_target_inputs())
        if not is_weight(weights) or any(_is_result(r) for r in readers):
            continue
        is_product = weights.ndim == 2 and all(map(_is_product, readers))
        bits = 4 if kind == "int4" and is_product else 8
        scales, numbers = quantized(weights, bits, _axis(readers, weights.ndim))
        if bits == 4:
            # A Tensor that is made from an array does not keep the array's memory alive.
            tensor = openvino.Tensor(openvino.Type.i4, openvino.Shape(weights.shape))
            tensor.data[:] = (
                in_half_bytes(numbers).view(tensor.data.dtype).reshape(tensor.data.shape)
            )
            integers = openvino.op.Constant(tensor)
        else:
            integers = ops.constant(numbers)
        product = ops.multiply(ops.convert(integers, "f32"), ops.constant(scales))
        for reader in readers:
            reader.replace_source_output(product.output(0))


def _is_result(reader: openvino.Node) -> bool:
    return bool(reader.get_node().get_type_name() == "Result")


def _is_product(reader: openvino.Node) -> bool:
    return bool(reader.get_node().get_type_name() == "MatMul" and reader.get_index() == 1)


def _axis(readers: list[openvino.Node], rank: int) -> int:
    """The axis of a weight whose indices have different scales."""
    axes = {_axis_for(reader, rank) for reader in readers}
    return axes.pop() if len(axes) == 1 else rank - 1


def _axis_for(reader: openvino.Node, rank: int) -> int:
    node = reader.get_node()
    name = node.get_type_name()
    if name == "MatMul":
        return rank - 2 if node.get_attributes()["transpose_b"] else rank - 1
    # Kernels of GroupConvolution are (groups, outputs, inputs, ...), and those of
    # ConvolutionBackpropData are (inputs, outputs, ...).
    if name in ("Convolution", "Gather", "GroupConvolution"):
        return 0
    return 1 if name == "ConvolutionBackpropData" else rank - 1
