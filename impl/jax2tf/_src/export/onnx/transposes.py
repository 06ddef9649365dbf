"""Transposes around convolutions and pools, which ONNX has for channels behind the batch only.

JAX's programs have the channels last: each convolution stands between two Transposes. Ops on each
element that are connected form a group, which computes with the channels first if that takes no
more Transposes at its borders than it saves.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.editing import axes_of, constant, known, made_by, rank_of
from jax2tf._src.util.typing import PyTree

# Ops on each element.
_ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp"),
        *("Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf"),
        *("IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul"),
        *("Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign"),
        *("Sin", "Softplus", "Sqrt", "Sub", "Tanh", "Where", "Xor"),
    }
)
_REDUCTIONS = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"})
# An array of the batch and of channels has no others.
_LEAST_RANK = 3


def merge(model: ir.Model) -> None:
    """Moves Transposes out of groups and merges those that meet, in place."""
    for graph in (model.graph, *model.graph.subgraphs()):
        _compose_all(graph)
        for group in _groups(graph):
            if group.saves():
                group.turn(model)
        _compose_all(graph)


def _compose_all(graph: ir.Graph | ir.Function) -> None:
    for node in list(graph):
        if node.op_type == "Transpose":
            _compose(node)


def _permutation(value: ir.Value | None) -> list[int] | None:
    """The permutation of the Transpose that makes a value; None if another node makes it."""
    node = made_by(value, "Transpose")
    order = None if node is None else node.attributes.get("perm")
    return None if order is None else list(order.as_ints())


def _compose(node: ir.Node) -> None:
    """Lets a Transpose read the operand of the Transpose before it."""
    operand = node.inputs[0]
    inner, outer = _permutation(operand), _permutation(node.outputs[0])
    if operand is None or inner is None or outer is None:
        return
    before = operand.producer()
    assert before is not None
    order = [inner[i] for i in outer]
    source = before.inputs[0]
    if order == sorted(order) and not node.outputs[0].is_graph_output():
        assert source is not None
        ir.convenience.replace_all_uses_with(node.outputs[0], source)
        return
    node.replace_input_with(0, source)
    node.attributes["perm"] = ir.AttrInt64s("perm", order)


def _to_last(rank: int) -> list[int]:
    """The permutation that moves the channels from behind the batch to the end."""
    return [0, *range(2, rank), 1]


def _to_first(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


def _groups(graph: ir.Graph | ir.Function) -> list[_Group]:
    """The groups of ops on each element, of which each is connected and of one rank."""
    ranks: dict[ir.Node, int] = {}
    of_values: dict[ir.Value, int] = {}
    touching: dict[ir.Value, list[ir.Node]] = collections.defaultdict(list)
    for node in graph:
        rank = _rank(node, of_values)
        if rank is not None:
            ranks[node] = rank
            for value in _ends(node, rank, of_values):
                touching[value].append(node)
    groups, seen = [], set[ir.Node]()
    for node, rank in ranks.items():
        if node in seen or rank < _LEAST_RANK:
            continue
        seen.add(node)
        members = [node]
        for member in members:
            for value in _ends(member, rank, of_values):
                new = [n for n in touching[value] if n not in seen and ranks[n] == rank]
                seen.update(new)
                members += new
        chosen = set(members)
        groups.append(_Group(rank, dict.fromkeys(n for n in ranks if n in chosen), of_values))
    return groups


def _rank(node: ir.Node, of_values: dict[ir.Value, int]) -> int | None:
    """The rank of the operands of a node that may be in a group; None if it may not."""
    if node.domain or len(node.outputs) != 1:
        return None
    operands = [x for x in node.inputs if x is not None]
    if node.op_type in (*_ELEMENTWISE, "Concat"):
        found = [_rank_of(x, of_values) for x in operands]
    elif node.op_type in _REDUCTIONS:
        found = [_rank_of(operands[0], of_values)] if _is_turned(node) else [None]
    else:
        return None
    ranks = [r for r in found if r is not None]
    if len(ranks) < len(found) or not ranks:
        return None
    rank = max(ranks)
    if any(x.is_graph_output() for x in _results(node)):
        return None
    if node.op_type not in _REDUCTIONS:
        of_values[node.outputs[0]] = rank
        # A computed array of fewer dimensions would have to be reshaped.
        if any(0 < r < rank and known(x) is None for x, r in zip(operands, ranks, strict=True)):
            return None
        if node.op_type == "Concat" and len(set(ranks)) > 1:
            return None
    return rank


def _rank_of(x: ir.Value, of_values: Mapping[ir.Value, int]) -> int | None:
    rank = rank_of(x)
    return of_values.get(x) if rank is None else rank


def _is_turned(node: ir.Node) -> bool:
    """Whether a reduction of turned operands has the same result, turned or as it is."""
    axes, rank = axes_of(node), rank_of(node.inputs[0])
    if axes is None or rank is None:
        return False
    others = [a for a in _to_first(rank) if a not in axes]
    return _keeps(node) or others == sorted(others)


def _keeps(node: ir.Node) -> bool:
    keeps = node.attributes.get("keepdims")
    return keeps is None or keeps.as_int() == 1


def _results(node: ir.Node) -> list[ir.Value]:
    """The results that are turned."""
    is_smaller = node.op_type in _REDUCTIONS and not _keeps(node)
    return [] if is_smaller else list(node.outputs)


def _ends(node: ir.Node, rank: int, of_values: Mapping[ir.Value, int]) -> list[ir.Value]:
    """The computed arrays before and behind a node."""
    operands = [x for x in node.inputs if x is not None and known(x) is None]
    return [*(x for x in operands if _rank_of(x, of_values) == rank), *_results(node)]


@dataclasses.dataclass
class _Group:
    """Ops on each element that are connected.

    Attributes:
      rank: the rank of their operands.
      nodes: the nodes in their order.
      of_values: the ranks of values for which the model has no shape.
    """

    rank: int
    nodes: dict[ir.Node, None]
    of_values: Mapping[ir.Value, int]

    def saves(self) -> bool:
        """Whether there are no more Transposes if the group has its channels first."""
        given = dict.fromkeys(x for node in self.nodes for x in self._operands(node))
        ready = [x for x in given if self._is_turned(x)]
        saved = sum(not x.is_graph_output() and not self._outside(x) for x in ready)
        if not saved:
            return False
        results = [x for node in self.nodes for x in _results(node)]
        readers = [self._readers(x) for x in results]
        saved += sum(len(turning) for turning, _ in readers)
        return saved >= len(given) - len(ready) + sum(bool(others) for _, others in readers)

    def turn(self, model: ir.Model) -> None:
        """Lets the group compute with its channels first."""
        made: dict[ir.Value, ir.Value] = {}
        for node in self.nodes:
            operands = set(self._operands(node))
            order = _to_first(self.rank)
            axes = axes_of(node) if node.op_type in _REDUCTIONS else None
            for i, x in enumerate(node.inputs):
                if x in operands:
                    assert x is not None
                    node.replace_input_with(i, self._first(node, x, made))
                elif x is not None and known(x) is not None and not _is_of_axes(node, i):
                    node.replace_input_with(i, _turned(model, node, x, self.rank))
            if node.op_type == "Concat":
                axis = order.index(node.attributes["axis"].as_int() % self.rank)
                node.attributes["axis"] = ir.AttrInt64("axis", axis)
            if axes is not None:
                array = np.array(sorted(order.index(a) for a in axes), np.int64)
                node.replace_input_with(1, constant(model, f"axes{array.tolist()}", array))
        for node in self.nodes:
            for result in _results(node):
                self._turn_back(node, result)

    def _operands(self, node: ir.Node) -> Iterator[ir.Value]:
        """The computed operands that come from outside of the group."""
        for x in node.inputs:
            if x is None or known(x) is not None or _rank_of(x, self.of_values) == 0:
                continue
            maker = x.producer()
            if maker not in self.nodes or x not in _results(maker):
                yield x

    def _is_turned(self, x: ir.Value) -> bool:
        return _permutation(x) == _to_last(self.rank)

    def _outside(self, x: ir.Value) -> list[PyTree]:
        return [use for use in x.uses() if use.node not in self.nodes]

    def _readers(self, x: ir.Value) -> tuple[list[ir.Node], list[PyTree]]:
        """The readers outside of the group: Transposes to channels first, and others."""
        turning, others = [], []
        for use in self._outside(x):
            result = use.node.outputs[0]
            is_turning = _permutation(result) == _to_first(self.rank)
            if is_turning and not result.is_graph_output():
                turning.append(use.node)
            else:
                others.append(use)
        return turning, others

    def _first(self, node: ir.Node, x: ir.Value, made: dict[ir.Value, ir.Value]) -> ir.Value | None:
        """An operand with the channels first."""
        if self._is_turned(x):
            maker = x.producer()
            assert maker is not None
            return maker.inputs[0]
        if x not in made:
            # Graphs inside of this one, and beside it, may read the same array.
            after = _transpose(x, _to_first(self.rank), f"F:{node.outputs[0].name}")
            assert node.graph is not None
            node.graph.insert_before(node, after)
            made[x] = after.outputs[0]
        return made[x]

    def _turn_back(self, node: ir.Node, result: ir.Value) -> None:
        """Gives the readers outside of the group what they read before."""
        turning, others = self._readers(result)
        result.shape = _moved(result.shape, _to_first(self.rank))
        for reader in turning:
            ir.convenience.replace_all_uses_with(reader.outputs[0], result)
        if others:
            back = _transpose(result, _to_last(self.rank), "T")
            back.metadata_props.update(node.metadata_props)
            assert node.graph is not None
            node.graph.insert_after(node, back)
            for use in others:
                use.node.replace_input_with(use.idx, back.outputs[0])


def _is_of_axes(node: ir.Node, i: int) -> bool:
    return node.op_type in _REDUCTIONS and i == 1


def _transpose(x: ir.Value, order: Sequence[int], suffix: str) -> ir.Node:
    """A Transpose of a value whose result has its type."""
    result = ir.Value(name=f"{x.name}^{suffix}", type=x.type, shape=_moved(x.shape, order))
    return ir.node("Transpose", [x], {"perm": order}, outputs=[result], name=result.name)


def _turned(model: ir.Model, node: ir.Node, x: ir.Value, rank: int) -> ir.Value:
    """A constant with the channels first."""
    array = known(x)
    assert array is not None
    if array.size == 1 and node.op_type != "Concat":
        return x
    whole = array.reshape([1] * (rank - array.ndim) + list(array.shape))
    turned = np.ascontiguousarray(whole.transpose(_to_first(rank)))
    return constant(model, f"{x.name}^T{rank}", turned)


def _moved(shape: ir.Shape | None, order: Sequence[int]) -> ir.Shape | None:
    """The shape of a result of a Transpose."""
    return None if shape is None else ir.Shape([shape[i] for i in order])
