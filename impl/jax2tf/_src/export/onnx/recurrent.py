"""Replaces the LSTM op of lowering/passes/idioms/recurrent.py with that of ONNX."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jax2tf._src.lowering.passes.idioms import recurrent

if TYPE_CHECKING:
    from tf2onnx.graph import Graph, Node

# The order of ONNX's gates, as indices of our op's: input, output, forget, cell.
_ORDER = [0, 3, 1, 2]

# The positions of the op's results that are read: the cells and the states of all steps.
_CELLS, _STATES = 1, 6


def with_lstm(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """Replaces the LSTM ops in a graph of tf2onnx; returns all its nodes."""
    for node in nodes:
        if node.type == recurrent.OP:
            _Writer(graph, node.name).replace(node)
    return graph.get_nodes()


class _Writer:
    """Writes the nodes that replace one LSTM op."""

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self._names = (f"{name}/{i}" for i in itertools.count())

    def replace(self, node: Node) -> None:
        """Replaces the node, and the slices that take the last step of its results.

        If the sequence is reversed before and after the op, the LSTM reads it from its end.
        """
        graph = self._graph
        _, x, cell, hidden, matrix, _, _, _, bias = node.input
        states, cells = (graph.find_output_consumers(node.output[i]) for i in (_STATES, _CELLS))
        last = [reader for reader in states if _is_last(reader)]
        is_backward = _is_reversed(node.inputs[1]) and all(
            _is_reversed(reader) or reader in last for reader in states
        )
        n_units = graph.get_shape(bias)[0] // len(_ORDER)
        steps, batch, _ = graph.get_shape(node.output[_STATES])
        lstm = graph.make_node(
            "LSTM",
            [
                node.inputs[1].input[0] if is_backward else x,
                *self._weights(matrix, bias, n_units),
                "",
                *(self._shaped(start, [1, -1, n_units]) for start in (hidden, cell)),
            ],
            attr={"hidden_size": n_units, "direction": "reverse" if is_backward else "forward"},
            output_count=3,
            shapes=[[steps, 1, batch, n_units], *[[1, batch, n_units]] * 2],
            dtypes=[graph.get_dtype(x)] * 3,
        )
        # Each result has a dimension for the direction. tf2onnx drops nodes that are not read.
        whole = self._shaped(lstm.output[0], [0, -1, n_units])
        ends = [self._shaped(end, [-1, n_units]) for end in lstm.output[1:]]
        for readers, end in zip((last, cells), ends, strict=True):
            for reader in readers:
                graph.replace_all_inputs(reader.output[0], end)
        for reader in states:
            if is_backward and reader not in last:
                graph.replace_all_inputs(reader.output[0], whole)
        graph.replace_all_inputs(node.output[_STATES], whole)

    def _weights(self, matrix: str, bias: str, n_units: int) -> list[str]:
        """The op's matrix and bias in ONNX's form: the matrices of x and of h, and the bias.

        Each has the direction as its first dimension: `[1, 4 * units, features]`,
        `[1, 4 * units, units]` and `[1, 8 * units]`. The bias of h follows that of x.
        """
        n_rows = self._graph.get_shape(matrix)[0]
        by_gate = [len(_ORDER), n_units]
        whole = [1, len(_ORDER) * n_units]
        places = np.split(np.arange(n_rows), [n_rows - n_units])
        none = np.zeros(whole, np.float32)
        sources = [self._graph.get_node_by_output(name) for name in (matrix, bias)]
        if all(node.is_const() for node in sources):
            columns, row = (node.get_tensor_value(as_list=False) for node in sources)
            columns = columns.T.reshape([*by_gate, n_rows])[_ORDER].reshape([*whole, n_rows])
            row = row.reshape(by_gate)[_ORDER].reshape(whole)
            arrays = [*(columns[..., at] for at in places), np.concatenate([row, none], 1)]
            return [self._number(array) for array in arrays]
        transposed = self._node("Transpose", matrix, perm=[1, 0])
        columns = self._gather(self._shaped(transposed, [*by_gate, n_rows]), _ORDER, 0)
        row = self._gather(self._shaped(bias, by_gate), _ORDER, 0)
        columns = self._shaped(columns, [*whole, n_rows])
        biases = self._node("Concat", self._shaped(row, whole), self._number(none), axis=1)
        return [*(self._gather(columns, at, 2) for at in places), biases]

    def _gather(self, x: str, places: Sequence[int] | np.ndarray, axis: int) -> str:
        return self._node("Gather", x, self._number(np.asarray(places, np.int64)), axis=axis)

    def _shaped(self, x: str, shape: Sequence[int]) -> str:
        return self._node("Reshape", x, self._number(np.array(shape, np.int64)))

    def _number(self, value: np.ndarray) -> str:
        return self._graph.make_const(next(self._names), np.ascontiguousarray(value)).output[0]

    def _node(self, op: str, *inputs: str, **attributes: Sequence[int] | int) -> str:
        return self._graph.make_node(op, list(inputs), attr=attributes).output[0]


def _is_reversed(node: Node) -> bool:
    """Whether a node reverses the first dimension of its operand."""
    return node.type == "ReverseV2" and _constant(node.inputs[1]) == [0]


def _is_last(node: Node) -> bool:
    """Whether a node takes the last step of its operand."""
    return (
        node.type == "StridedSlice"
        and [_constant(bound) for bound in node.inputs[1:]] == [[-1], [0], [1]]
        and node.get_attr_int("shrink_axis_mask") == 1
    )


def _constant(node: Node) -> list[int] | None:
    """The numbers of a constant, or None if the node is not a constant."""
    return node.get_tensor_value(as_list=False).ravel().tolist() if node.is_const() else None
