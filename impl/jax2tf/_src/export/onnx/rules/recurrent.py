"""The LSTM as ONNX's op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node

# The order of ONNX's gates, as indices of our op's: input, output, forget, cell.
_ORDER = [0, 3, 1, 2]


@writes("LSTM")
def _lstm(
    w: Writer,
    node: Node,
    x: ir.Value,
    cell: ir.Value,
    hidden: ir.Value,
    matrix: ir.Value,
    bias: ir.Value,
) -> list[ir.Value]:
    shape = node.inputs[-1].shape
    assert shape is not None
    assert isinstance(shape[0], int)
    n_units = shape[0] // len(_ORDER)
    # Each operand and result has a dimension for the direction.
    starts = (_shaped(w, start, [1, -1, n_units]) for start in (hidden, cell))
    results = w.op(
        "LSTM",
        x,
        *_weights(w, node, matrix, bias, n_units),
        None,
        *starts,
        n=3,
        hidden_size=n_units,
        direction="reverse" if node.attributes["reverse"] else "forward",
    )
    ends = [_shaped(w, end, [-1, n_units]) for end in results[1:]]
    return [_shaped(w, results[0], [0, -1, n_units]), *ends]


def _weights(
    w: Writer, node: Node, matrix: ir.Value, bias: ir.Value, n_units: int
) -> list[ir.Value]:
    """The op's matrix and bias in ONNX's form: the matrices of x and of h, and the bias.

    Each has the direction as its first dimension: `[1, 4 * units, features]`,
    `[1, 4 * units, units]` and `[1, 8 * units]`. The bias of h follows that of x.
    """
    *_, of_matrix, of_bias = node.inputs
    assert of_matrix.shape is not None
    n_rows = of_matrix.shape[0]
    assert isinstance(n_rows, int)
    by_gate = [len(_ORDER), n_units]
    whole = [1, len(_ORDER) * n_units]
    places = np.split(np.arange(n_rows), [n_rows - n_units])
    none = np.zeros(whole, np.float32)
    if of_matrix.value is not None and of_bias.value is not None:
        columns = of_matrix.value.T.reshape([*by_gate, n_rows])[_ORDER].reshape([*whole, n_rows])
        of_x = of_bias.value.reshape(by_gate)[_ORDER].reshape(whole)
        arrays = [*(columns[..., at] for at in places), np.concatenate([of_x, none], 1)]
        return [w.constant(array) for array in arrays]
    transposed = _shaped(w, w.op("Transpose", matrix, perm=[1, 0]), [*by_gate, n_rows])
    rows = _shaped(w, _gather(w, transposed, _ORDER, 0), [*whole, n_rows])
    row = _shaped(w, _gather(w, _shaped(w, bias, by_gate), _ORDER, 0), whole)
    biases = w.op("Concat", row, w.constant(none), axis=1)
    return [*(_gather(w, rows, at, 2) for at in places), biases]


def _gather(w: Writer, x: ir.Value, places: Sequence[int] | np.ndarray, axis: int) -> ir.Value:
    result: ir.Value = w.op("Gather", x, w.constant(places, np.int64), axis=axis)
    return result


def _shaped(w: Writer, x: ir.Value, shape: Sequence[int]) -> ir.Value:
    result: ir.Value = w.op("Reshape", x, w.constant(shape, np.int64))
    return result
