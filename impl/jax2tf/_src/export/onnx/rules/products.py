"""Products of matrices."""

from __future__ import annotations

import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import compute
from jax2tf._src.export.onnx.rules.elementwise import dtype_of
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node, Tensor

# The attributes that transpose the operands.
_TRANSPOSES = {
    "MatMul": ("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("adj_x", "adj_y")),
}


@writes(*_TRANSPOSES)
def _matmul(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    operands = [
        _transposed(w, tensor, value) if node.attributes.get(name, False) else value
        for name, tensor, value in zip(_TRANSPOSES[node.op], node.inputs, (x, y), strict=True)
    ]
    return compute(w, "MatMul", dtype_of(node), *operands)


def _transposed(w: Writer, tensor: Tensor, x: ir.Value) -> ir.Value:
    """`x` with its last two axes exchanged.

    ONNX Runtime transposes a constant once, and fuses other transposes with products of floats.
    """
    assert tensor.shape is not None
    *others, rows, columns = range(len(tensor.shape))
    return w.op("Transpose", x, perm=[*others, columns, rows])


@writes("Einsum")
def _einsum(w: Writer, node: Node, *operands: ir.Value) -> ir.Value:
    equation = node.attributes["equation"]
    return compute(w, "Einsum", dtype_of(node), *operands, equation=equation)
