"""Products of matrices, and Fourier transforms."""

from __future__ import annotations

import numpy as np

from jax2tf._src.export.tflite.model import Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.rules.elementwise import rank_of
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor

# What a file says of an activation that is fused into an op.
NO_ACTIVATION = 0


@writes("MatMul")
def _matmul(w: Writer, node: Node, x: Value, y: Value) -> Value:
    adjoint = [bool(node.attributes[f"transpose_{side}"]) for side in "ab"]
    return _product(w, node.outputs[0], x, y, *adjoint)


@writes("BatchMatMulV2", "BatchMatMul", "BatchMatMulV3")
def _batch_matmul(w: Writer, node: Node, x: Value, y: Value) -> Value:
    adjoint = [bool(node.attributes[f"adj_{side}"]) for side in "xy"]
    return _product(w, node.outputs[0], x, y, *adjoint)


def _product(w: Writer, result: Tensor, x: Value, y: Value, adj_x: bool, adj_y: bool) -> Value:
    is_matrix = y.array is not None and y.array.ndim == 2 and y.array.size
    if is_matrix and not adj_x and x.dtype == np.float32 and rank_of(x):
        return by_matrix(w, result, x, y, is_turned=adj_y)
    return w.op("BATCH_MATMUL", x, y, like=result, adjX=adj_x, adjY=adj_y)


def by_matrix(w: Writer, result: Tensor | Value, x: Value, y: Value, *, is_turned: bool) -> Value:
    """The product of rows and a known matrix, whose rows LiteRT wants for each result."""
    assert y.array is not None
    weights = y if is_turned else w.turned(y.array, (1, 0))
    return w.op("FULLY_CONNECTED", x, weights, None, like=result, keepNumDims=rank_of(x) != 2)


@writes("RFFT")
def _rfft(w: Writer, node: Node, x: Value, length: Value) -> Value:

    result = node.outputs[0]
    if length.array is None or x.shape is None or result.shape is None:
        raise NotImplementedError("a Fourier transform of a length that is computed")
    *batch, n = x.shape
    rows = w.op("EXPAND_DIMS", x, w.constant(-2, np.int32), dtype=x.dtype, shape=(*batch, 1, n))
    lengths = w.constant([1, int(length.array.reshape(()))], np.int32)
    shape = (*result.shape[:-1], 1, result.shape[-1])
    spectrum = w.op("RFFT2D", rows, lengths, dtype=np.complex64, shape=shape)
    return w.op("SQUEEZE", spectrum, like=result, squeezeDims=[len(shape) - 2])


@writes("RFFT2D")
def _rfft2d(w: Writer, node: Node, x: Value, lengths: Value) -> Value:
    return w.op("RFFT2D", x, lengths, like=node.outputs[0])
