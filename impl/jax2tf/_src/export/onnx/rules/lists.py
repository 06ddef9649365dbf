"""Lists of tensors: arrays of one more dimension, or outputs of the steps of a loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.writer import Writer, onnx_dtype
from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in
from jax2tf._src.util.typing import PyTree

_FROM_LAST = {"starts": [-1], "ends": [np.iinfo(np.int64).min], "axes": [0], "steps": [-1]}


@dataclasses.dataclass
class Reserved:
    """A list to which nothing has been written, except for one element behind the last.

    Attributes:
      node: the op that made it.
      spare: the index and the value of that element.
    """

    node: Node
    spare: tuple[Tensor, ir.Value] | None = None

    @property
    def size(self) -> Tensor:
        return self.node.inputs[1]

    def ends_at(self, bound: Tensor) -> bool:
        """Whether the elements that are not written are those before this index."""
        if self.spare is None:
            return are_same(self.size, bound)
        return are_same(self.spare[0], bound) and is_one_less(bound, self.size)

    def filled(self, w: Writer, rows: ir.Value, element: Tensor, is_reversed: bool) -> Stacked:
        """The list with the elements that a loop has written, as an array of them."""
        if is_reversed:
            at = {name: w.constant(value, np.int64) for name, value in _FROM_LAST.items()}
            rows = w.op("Slice", rows, *at.values())
        if self.spare is not None:
            rows = w.op("Concat", rows, _row(w, self.spare[1]), axis=0)
        return Stacked(rows)

    def array(self, w: Writer) -> ir.Value:
        """An array of zeros, with the spare element."""
        shape = self.node.inputs[0].value
        dtype = self.node.attributes["element_dtype"]
        if shape is None or (np.ravel(shape) < 0).any():
            raise NotImplementedError("a list of tensors whose shape is not known")
        size = w.op("Reshape", w.value(self.size), w.constant([1], np.int64))
        size = w.op("Cast", size, to=ir.DataType.INT64)
        whole = w.op("Concat", size, w.constant(np.ravel(shape), np.int64), axis=0)
        zero = ir.tensor(np.zeros([1], dtype))
        array = w.op("ConstantOfShape", whole, value=zero)
        array.type = ir.TensorType(onnx_dtype(dtype))
        array.shape = ir.Shape([None, *map(int, np.ravel(shape))])
        if self.spare is None:
            return array
        return _written(w, array, w.value(self.spare[0]), self.spare[1])


@dataclasses.dataclass
class Stacked:
    """A list as one array, whose first dimension is the list's."""

    value: ir.Value


def as_array(w: Writer, value: PyTree) -> ir.Value:
    """A list as one array; an array stays as it is."""
    if isinstance(value, Reserved):
        return value.array(w)
    return value.value if isinstance(value, Stacked) else value


def for_tensors(values: PyTree, tensors: Sequence[Tensor]) -> list[PyTree]:
    """Values of arrays as those of tensors, some of which are lists."""
    values = values if isinstance(values, list | tuple) else [values]
    return [
        Stacked(value) if tensor.dtype is None and isinstance(value, ir.Value) else value
        for value, tensor in zip(values, tensors, strict=True)
    ]


def of_tensors(values: Mapping[Tensor, ir.Value]) -> dict[Tensor, PyTree]:
    """Values of arrays by tensor as those of the tensors, some of which are lists."""
    return dict(zip(values, for_tensors([*values.values()], [*values]), strict=True))


def n_readers(graph: Graph, tensor: Tensor) -> int:
    """How often the nodes and results of a graph read a tensor."""
    own = sum(node.inputs.count(tensor) for node in graph.nodes) + graph.outputs.count(tensor)
    return own + sum(n_readers(inner, tensor) for n in graph.nodes for inner in graphs_in(n))


def are_same(x: Tensor, y: Tensor) -> bool:
    """Whether two numbers are certainly the same."""
    if x.value is not None and y.value is not None:
        return int(x.value) == int(y.value)
    return x is y


def is_one_less(x: Tensor, y: Tensor) -> bool:
    """Whether the number `x` is certainly `y - 1`."""
    if x.value is not None and y.value is not None:
        return int(x.value) == int(y.value) - 1
    return _is_by_one(x, "Sub", y) or _is_by_one(y, "AddV2", x)


def _is_by_one(x: Tensor, op: str, y: Tensor) -> bool:
    """Whether `x` is the result of the op of `y` and one."""
    node = x.node
    if node is None or node.op != op or node.inputs[0] is not y:
        return False
    one = node.inputs[1].value
    return one is not None and int(one) == 1


@writes("TensorListReserve", "EmptyTensorList")
def _reserve(w: Writer, node: Node, *operands: ir.Value) -> Reserved:
    if node.op == "EmptyTensorList":
        raise NotImplementedError("a list of tensors that grows")
    return Reserved(node)


@writes("TensorListFromTensor")
def _from_tensor(w: Writer, node: Node, x: ir.Value, shape: ir.Value) -> Stacked:
    return Stacked(x)


@writes("TensorListStack")
def _stack(w: Writer, node: Node, x: PyTree, shape: ir.Value) -> ir.Value:
    return as_array(w, x)


@writes("TensorListLength")
def _length(w: Writer, node: Node, x: PyTree) -> ir.Value:
    if isinstance(x, Reserved):
        value: ir.Value = w.value(x.size)
        return value
    size = w.op("Shape", as_array(w, x), start=0, end=1)
    return w.op("Cast", w.op("Squeeze", size), to=ir.DataType.INT32)


@writes("TensorListGetItem")
def _get(w: Writer, node: Node, x: PyTree, at: ir.Value, shape: ir.Value) -> ir.Value:
    return w.op("Gather", as_array(w, x), at, axis=0)


@writes("TensorListSetItem")
def _set(w: Writer, node: Node, x: PyTree, at: ir.Value, value: ir.Value) -> PyTree:
    place = node.inputs[1]
    if isinstance(x, Reserved) and x.spare is None and is_one_less(place, x.size):
        return Reserved(x.node, (place, value))
    return Stacked(_written(w, as_array(w, x), at, value))


def _written(w: Writer, x: ir.Value, at: ir.Value, value: ir.Value) -> ir.Value:
    place = w.op("Reshape", at, w.constant([1, 1], np.int64))
    place = w.op("Cast", place, to=ir.DataType.INT64)
    result = w.op("ScatterND", x, place, _row(w, value))
    result.shape, result.type = x.shape, x.type
    return result


def _row(w: Writer, x: ir.Value) -> ir.Value:
    return w.op("Unsqueeze", x, w.constant([0], np.int64))
