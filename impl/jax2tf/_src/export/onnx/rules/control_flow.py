"""Loops and branches of inlined graphs."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules import lists
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Graph, Node, Tensor
from jax2tf._src.util.typing import PyTree

_INT64, _BOOL = ir.DataType.INT64, ir.DataType.BOOL


@writes("If")
def _if(w: Writer, node: Node, condition: ir.Value) -> PyTree:
    branches = []
    for part in ("then", "otherwise"):
        graph = node.attributes[part]
        inner = w.inner()
        results = [lists.as_array(inner, x) for x in inner.write_results(graph, graph.outputs)]
        branches.append(inner.graph(w.unique(graph.name), [], results))
    results = w.op(
        "If",
        condition,
        n=len(node.outputs),
        then_branch=branches[0],
        else_branch=branches[1],
    )
    return lists.for_tensors(results, node.outputs)


@dataclasses.dataclass
class _Count:
    """A carried number that a loop counts up by one, while it is less than a bound.

    Attributes:
      index: its position.
      start: the number before the first step.
      bound: a tensor around the loop.
    """

    index: int
    start: int
    bound: Tensor


def _count_of(loop: Node) -> _Count | None:
    """The number that decides how many steps there are; None if something else does."""
    cond, body = loop.attributes["cond"], loop.attributes["body"]
    test = cond.outputs[0].node
    if test is None or test.op != "Less" or any(n.op not in ("Const", "Less") for n in cond.nodes):
        return None
    number, bound = test.inputs
    if number not in cond.inputs or bound in cond.inputs or number.dtype != np.int32:
        return None
    index = cond.inputs.index(number)
    start = loop.inputs[index].value
    is_counted = start is not None and _is_next(body.outputs[index], body.inputs[index])
    return _Count(index, int(start), bound) if is_counted else None


def _is_next(result: Tensor, number: Tensor) -> bool:
    node = result.node
    return (
        node is not None
        and node.op == "AddV2"
        and node.inputs[0] is number
        and _is_one(node.inputs[1])
    )


def _is_one(x: Tensor) -> bool:
    return x.value is not None and int(x.value) == 1


@dataclasses.dataclass
class _Rows:
    """A list of which each step writes the element of its number, from the first or from the last.

    Attributes:
      value: the element that a step writes.
      is_reversed: whether the first step writes the last element.
    """

    value: Tensor
    is_reversed: bool


def _rows_of(loop: Node, index: int, given: PyTree, count: _Count | None) -> _Rows | None:
    """How steps write the list at a position, if that can be an output of ONNX's scan."""
    body: Graph = loop.attributes["body"]
    carried = body.inputs[index]
    write = body.outputs[index].node
    if count is None or count.start or write is None or write.op != "TensorListSetItem":
        return None
    target, place, value = write.inputs
    if target is not carried or lists.n_readers(body, carried) > 1:
        return None
    if not isinstance(given, lists.Reserved) or not given.ends_at(count.bound):
        return None
    number = body.inputs[count.index]
    if place is number:
        return _Rows(value, is_reversed=False)
    is_from_last = (
        place.node is not None
        and place.node.op == "Sub"
        and place.node.inputs[1] is number
        and lists.is_one_less(place.node.inputs[0], count.bound)
    )
    return _Rows(value, is_reversed=True) if is_from_last else None


_Values: TypeAlias = list[PyTree]


@writes("While")
def _while(w: Writer, node: Node, *operands: PyTree) -> _Values:
    return _Loop(w, node, operands).results()


class _Loop:
    """Writes one loop."""

    def __init__(self, w: Writer, node: Node, operands: tuple[PyTree, ...]) -> None:
        self._w, self._node = w, node
        self._cond: Graph = node.attributes["cond"]
        self._body: Graph = node.attributes["body"]
        self._count = _count_of(node)
        rows = {i: _rows_of(node, i, x, self._count) for i, x in enumerate(operands)}
        self._rows = {i: each for i, each in rows.items() if each is not None}
        counted = set() if self._count is None else {self._count.index}
        self._carried = [i for i in range(len(operands)) if i not in {*self._rows, *counted}]
        self._operands: _Values = [
            x if i in self._rows else lists.as_array(w, x) for i, x in enumerate(operands)
        ]

    def results(self) -> _Values:
        w = self._w
        if self._count is None:
            steps = None
            w.take(dict(zip(self._cond.inputs, self._operands, strict=True)))
            (going,) = w.write_results(self._cond, self._cond.outputs)
        else:
            # ONNX wants two operands or more.
            steps = self._n_steps(self._count)
            going = None if self._carried else w.constant(True)
        found = w.op(
            "Loop",
            steps,
            going,
            *(self._operands[i] for i in self._carried),
            n=len(self._carried) + len(self._rows),
            body=self._body_graph(),
        )
        found = found if isinstance(found, tuple) else (found,)
        results: dict[int, PyTree] = dict(zip([*self._carried, *self._rows], found, strict=True))
        for i, rows in self._rows.items():
            results[i] = self._operands[i].filled(w, results[i], rows.value, rows.is_reversed)
        if self._count is not None:
            results[self._count.index] = self._last_number(self._count)
        return lists.for_tensors(
            [results[i] for i in range(len(self._operands))], self._node.outputs
        )

    def _n_steps(self, count: _Count) -> ir.Value:
        bound = count.bound.value
        if bound is not None:
            return self._w.constant(int(bound) - count.start, np.int64)
        steps = self._w.op("Cast", self._w.value(count.bound), to=_INT64)
        return (
            steps
            if not count.start
            else self._w.op("Sub", steps, self._w.constant(count.start, np.int64))
        )

    def _last_number(self, count: _Count) -> PyTree:
        if count.index not in self._node.attributes["used"]:
            return None
        start = self._w.constant(count.start, np.int32)
        return self._w.op("Max", self._w.value(count.bound), start)

    def _body_graph(self) -> ir.Graph:
        inner, body = self._w.inner(), self._body
        step, goes = inner.new("step", _INT64), inner.new("goes", _BOOL)
        arguments = {i: self._argument(inner, i) for i in self._carried}
        given = {body.inputs[i]: value for i, value in arguments.items()}
        if self._count is not None:
            given[body.inputs[self._count.index]] = self._number(inner, step, self._count)
        inner.take(lists.of_tensors(given))
        rows = [each.value for each in self._rows.values()]
        carried = [body.outputs[i] for i in self._carried]
        results = inner.write_results(body, [*carried, *rows])
        still = goes
        if self._count is None:
            inner.take(dict(zip(self._cond.inputs, results, strict=True)))
            (still,) = inner.write_results(self._cond, self._cond.outputs)
        arrays = [lists.as_array(inner, result) for result in results]
        name = self._w.unique(body.name)
        return inner.graph(name, [step, goes, *arguments.values()], [still, *arrays])

    def _argument(self, inner: Writer, i: int) -> ir.Value:
        tensor = self._body.inputs[i]
        if tensor.dtype is not None:
            return inner.declared(tensor)
        given = self._operands[i]
        return ir.Value(name=inner.unique(tensor.name), shape=given.shape, type=given.type)

    @staticmethod
    def _number(inner: Writer, step: ir.Value, count: _Count) -> ir.Value:
        number = inner.op("Cast", step, to=ir.DataType.INT32)
        if count.start:
            number = inner.op("Add", number, inner.constant(count.start, np.int32))
        number.shape, number.type = ir.Shape([]), ir.TensorType(ir.DataType.INT32)
        return number
