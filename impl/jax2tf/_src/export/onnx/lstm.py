"""Turns the LSTM op of lowering/passes/idioms/recurrent.py into an op as ONNX has it.

The op is `LSTM`: its operands are x, the first c, the first h, the matrix and the bias; its results
are all steps' h, the last h and the last c. The attribute `reverse` says that it begins at the last
element of x.
"""

from __future__ import annotations

from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in
from jax2tf._src.graph.inlining import replace

_OP = "BlockLSTMV2"

# The positions of the op's results that are read: the cells and the states of all steps.
_CELLS, _STATES = 1, 6


def with_lstm(graph: Graph) -> None:
    """Replaces the LSTM ops of a graph and of its inner graphs."""
    for node in list(graph.nodes):
        if node.op == _OP:
            _replace(graph, node)
        for inner in graphs_in(node):
            with_lstm(inner)


def _replace(graph: Graph, node: Node) -> None:
    """Replaces the node, and the slices that take the last step of its results.

    If the sequence is reversed before and after the op, the LSTM reads it from its end.
    """
    _, x, cell, hidden, matrix, _, _, _, bias = node.inputs
    states, cells = (_readers(graph, node.outputs[i]) for i in (_STATES, _CELLS))
    last = [reader for reader in states if _is_last(reader)]
    others = [reader for reader in states if reader not in last]
    is_backward = _is_reversed(x.node) and all(map(_is_reversed, others))
    if is_backward:
        assert x.node is not None
        x = x.node.inputs[0]
    steps = node.outputs[_STATES]
    made = Node("LSTM", node.name, [x, cell, hidden, matrix, bias], {"reverse": is_backward})
    shapes = [steps.shape, cell.shape, cell.shape]
    made.outputs += [
        Tensor(f"{node.name}:{i}", steps.dtype, shape, made, i) for i, shape in enumerate(shapes)
    ]
    whole, last_state, last_cell = made.outputs
    others_by_name = {steps: whole}
    others_by_name |= {reader.outputs[0]: last_state for reader in last}
    others_by_name |= {reader.outputs[0]: last_cell for reader in cells}
    if is_backward:
        others_by_name |= {reader.outputs[0]: whole for reader in others}
    gone = {*last, *cells, *(others if is_backward else ())}
    graph.nodes = [made if n is node else n for n in graph.nodes if n not in gone]
    replace(graph, others_by_name)


def _readers(graph: Graph, tensor: Tensor) -> list[Node]:
    return [node for node in graph.nodes if tensor in node.inputs]


def _is_reversed(node: Node | None) -> bool:
    """Whether a node reverses the first dimension of its operand."""
    return node is not None and node.op == "ReverseV2" and _numbers(node.inputs[1]) == [0]


def _is_last(node: Node) -> bool:
    """Whether a node takes the last step of its operand."""
    return (
        node.op == "StridedSlice"
        and [_numbers(bound) for bound in node.inputs[1:]] == [[-1], [0], [1]]
        and node.attributes["shrink_axis_mask"] == 1
    )


def _numbers(x: Tensor) -> list[int] | None:
    return None if x.value is None else [int(n) for n in x.value.ravel()]
