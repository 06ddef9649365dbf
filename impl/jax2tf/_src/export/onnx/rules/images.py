"""Ops that change the size of images."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import sizes
from jax2tf._src.export.onnx.rules.arrays import transposed
from jax2tf._src.export.onnx.rules.convolution import CHANNELS_FIRST, CHANNELS_LAST
from jax2tf._src.export.onnx.rules.dtypes import narrowed, widened
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node
from jax2tf._src.util.typing import PyTree


def _coordinates(node: Node) -> str:
    if node.attributes.get("align_corners"):
        return "align_corners"
    return "half_pixel" if node.attributes.get("half_pixel_centers") else "asymmetric"


@writes("ResizeBilinear")
def _resize_bilinear(w: Writer, node: Node, x: ir.Value, size: ir.Value) -> ir.Value:
    if node.inputs[0].dtype != np.float32:
        x = w.op("Cast", x, to=ir.DataType.FLOAT)
    return _resized(w, node, x, mode="linear")


def _resized(w: Writer, node: Node, x: ir.Value, **attributes: PyTree) -> ir.Value:
    x = transposed(w, x, CHANNELS_FIRST[2])
    batch, *_, channels = sizes.sizes_of(node.inputs[0]) or []
    scales = _scales(node)
    if scales is None:
        target = sizes.joined(w, [batch, channels, *(sizes.entries(node.inputs[1]) or [])])
    else:
        target = w.constant([1, 1, *scales], np.float32)
    dtype = np.dtype(np.float32) if node.op == "ResizeBilinear" else sizes.dtype_of(node.inputs[0])
    result = w.op(
        "Resize",
        widened(w, "Resize", dtype, x),
        None,
        *((None, target) if scales is None else (target,)),
        coordinate_transformation_mode=_coordinates(node),
        **attributes,
    )
    return transposed(w, narrowed(w, "Resize", dtype, result), CHANNELS_LAST[2])


def _scales(node: Node) -> list[np.float32] | None:
    """The factors of height and width, with which a size of an open batch is not computed.

    None if they are not known, or if a product with one of them is rounded to another size.
    """
    scales = []
    for axis in (1, 2):
        old, new = (shape[axis] if shape else None for shape in _shapes(node))
        if not isinstance(old, int) or not isinstance(new, int) or not old:
            return None
        scales.append(np.float32(new) / np.float32(old))
        if np.floor(old * np.float64(scales[-1])) != new:
            return None
    return scales


def _shapes(node: Node) -> tuple[PyTree, PyTree]:
    return node.inputs[0].shape, node.outputs[0].shape


@writes("ResizeNearestNeighbor")
def _resize_nearest(w: Writer, node: Node, x: ir.Value, size: ir.Value) -> ir.Value:
    shape, result = node.inputs[0].shape or (), node.outputs[0].shape or ()
    for axis in (1, 2):
        old, new = shape[axis], result[axis]
        if not isinstance(old, int) or not isinstance(new, int):
            nearest = "floor" if _coordinates(node) == "asymmetric" else "round_prefer_ceil"
            return _resized(w, node, x, mode="nearest", nearest_mode=nearest)
    for axis in (1, 2):
        places = _nearest(int(shape[axis] or 0), int(result[axis] or 0), _coordinates(node))
        if not np.array_equal(places, np.arange(int(shape[axis] or 0))):
            x = w.op("Gather", x, w.constant(places), axis=axis)
    return x


def _nearest(old: int, new: int, coordinates: str) -> np.ndarray:
    """The pixel that each new one copies, computed in float32 as TensorFlow's kernel does."""
    places = np.arange(new, dtype=np.float32)
    if coordinates == "align_corners" and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
        found = np.floor(places * scale + np.float32(0.5))
    else:
        scale = np.float32(old) / np.float32(new)
        half = np.float32(0.5 if coordinates == "half_pixel" else 0)
        found = np.floor((places + half) * scale)
    return np.clip(found.astype(np.int64), 0, old - 1)
