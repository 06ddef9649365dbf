"""Reads a graph of TensorFlow as a graph of our own.

A captured variable becomes a constant that shares its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jax2tf._src import compat
from jax2tf._src.graph.graph import Graph, Node, Program, Size, Tensor
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree

Shape = tuple[Size, ...]


def program_of(concrete: PyTree, shapes: Mapping[str, Shape] | None = None) -> Program:
    """The program of a concrete function from named tensors to a dict of named tensors.

    Args:
      concrete: a tf.types.experimental.ConcreteFunction with an input signature.
      shapes: the shapes of arguments by name, for open sizes with names; where there is none,
        TensorFlow's.
    """
    graph = concrete.graph
    variables = {Identity(v.handle): v for v in concrete.variables}
    captured = {
        Identity(inner): _array_of(outer, variables)
        for outer, inner in zip(concrete.captured_inputs, graph.internal_captures, strict=True)
    }
    outputs: Mapping[str, tf.Tensor] = concrete.structured_outputs
    given = [x for x in graph.inputs if Identity(x) not in captured]
    main = _Reader(graph.name, captured).read(graph, given, _results(graph, list(outputs)))
    for tensor in main.inputs:
        tensor.name = tensor.name.removesuffix(":0")
        tensor.shape = (shapes or {}).get(tensor.name, tensor.shape)
    functions = {
        name: _Reader(name, {}).read(inner, inner.inputs, inner.outputs)
        for name, inner in compat.graphs.graphs_of_functions(graph).items()
    }
    return Program(main, list(outputs), functions)


def _results(graph: tf.Graph, names: Sequence[str]) -> Sequence[tf.Tensor]:
    """The results of a graph in the order of the names.

    TensorFlow orders a dict by its keys.
    """
    by_name = dict(zip(sorted(names), graph.outputs, strict=True))
    return [by_name[name] for name in names]


def _array_of(captured: tf.Tensor, variables: Mapping[Identity, tf.Variable]) -> np.ndarray:
    """The array of a captured tensor or variable, in the same memory if possible."""
    tensor = captured
    if captured.dtype == tf.resource:
        tensor = variables[Identity(captured)].read_value()
    try:
        array = np.asarray(memoryview(tensor))
    except (BufferError, TypeError, ValueError):
        return tensor.numpy()
    # NumPy's buffers have no dtypes of ml_dtypes.
    is_same = array.dtype == tensor.dtype.as_numpy_dtype
    return array if is_same else tensor.numpy()


class _Reader:
    """Reads one graph."""

    def __init__(self, name: str, captured: Mapping[Identity, np.ndarray]) -> None:
        self._name = name
        self._captured = captured
        self._tensors: dict[Identity, Tensor] = {}
        self._nodes: list[Node] = []

    def read(
        self, graph: tf.Graph, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> Graph:
        """The graph from these inputs to these outputs."""
        arguments = [self._argument(x, i) for i, x in enumerate(inputs)]
        for op in graph.get_operations():
            self._read_op(op)
        results = [self._tensors[Identity(x)] for x in outputs]
        return Graph(self._name, arguments, results, self._nodes)

    def _argument(self, x: tf.Tensor, index: int) -> Tensor:
        tensor = self._tensors[Identity(x)] = Tensor(x.name, *_type_of(x), None, index)
        return tensor

    def _read_op(self, op: tf.Operation) -> None:
        if op.type == "Placeholder":
            (result,) = op.outputs
            if Identity(result) in self._captured:
                array = self._captured[Identity(result)]
                self._add(op, "Const", [], {"value": array})
                # TensorFlow's tensor is a variable's handle.
                constant = self._tensors[Identity(result)]
                constant.dtype, constant.shape = array.dtype, array.shape
            return
        if op.type == "NoOp":
            return
        # A variable is its array.
        kind = "Identity" if op.type == "ReadVariableOp" else op.type
        operands = [self._tensors[Identity(x)] for x in op.inputs]
        self._add(op, kind, operands, _attributes(op))

    def _add(
        self, op: tf.Operation, kind: str, operands: list[Tensor], attributes: Mapping[str, PyTree]
    ) -> None:
        node = Node(kind, op.name, operands, attributes)
        for i, result in enumerate(op.outputs):
            tensor = Tensor(result.name, *_type_of(result), node, i)
            node.outputs.append(tensor)
            self._tensors[Identity(result)] = tensor
        self._nodes.append(node)


def _type_of(x: tf.Tensor) -> tuple[np.dtype | None, Shape | None]:
    if x.dtype in (tf.resource, tf.variant):
        return None, None
    shape = None if x.shape.rank is None else tuple(x.shape.as_list())
    return np.dtype(x.dtype.as_numpy_dtype), shape


def _attributes(op: tf.Operation) -> dict[str, PyTree]:
    return {
        name: _attribute(value)
        for name, value in op.node_def.attr.items()
        if not name.startswith("_") and name not in _MESSAGES and value.WhichOneof("value")
    }


# Attributes that are serialised messages of TensorFlow.
_MESSAGES = frozenset({"config", "config_proto", "executor_type"})


def _attribute(value: tf.compat.v1.AttrValue) -> PyTree:
    """The value of an attribute in Python and NumPy."""
    kind = value.WhichOneof("value")
    if kind == "tensor":
        return tf.make_ndarray(value.tensor)
    if kind == "func":
        return value.func.name
    if kind == "type":
        return _dtype(value.type)
    if kind == "shape":
        return _sizes(value.shape)
    if kind == "s":
        return value.s.decode()
    if kind == "list":
        return _list(value.list)
    return getattr(value, kind)


def _list(values: PyTree) -> list[PyTree]:
    return [
        *map(_dtype, values.type),
        *map(_sizes, values.shape),
        *(text.decode() for text in values.s),
        *(function.name for function in values.func),
        *values.i,
        *values.f,
        *values.b,
    ]


def _dtype(number: int) -> np.dtype | None:
    dtype = tf.as_dtype(number)
    return None if dtype in (tf.resource, tf.variant) else np.dtype(dtype.as_numpy_dtype)


def _sizes(shape: tf.compat.v1.TensorShapeProto) -> Shape | None:
    if shape.unknown_rank:
        return None
    return tuple(None if size.size < 0 else size.size for size in shape.dim)
