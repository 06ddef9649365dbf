"""Writes a graph as a model of LiteRT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from jax2tf._src.export.graph_writer import GraphWriter, key_of_constant
from jax2tf._src.export.tflite import passes, registry
from jax2tf._src.export.tflite.idioms import with_idioms
from jax2tf._src.export.tflite.model import Op, Shape, Signature, Subgraph, Value
from jax2tf._src.export.tflite.rules import import_rules
from jax2tf._src.graph.graph import Node, Program, Tensor
from jax2tf._src.graph.inlining import inlined
from jax2tf._src.graph.simplifying import simplify
from jax2tf._src.util import registering
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.typing import PyTree


class Writer(GraphWriter):
    """Writes the nodes of one graph. The graphs of loops and branches have writers of their own.

    Rules make ops with `op`, constants with `constant`, and ask the node of the graph (its
    `inputs`, `outputs` and `attributes`) for dtypes, sizes and known values.

    Attributes:
      ops: the ops so far.
      captured: the arguments of this graph that stand for tensors of the graphs around it.
    """

    def __init__(self, parent: Writer | None = None) -> None:
        super().__init__(None if parent is None else parent._node)
        self.ops: list[Op] = []
        self.captured: dict[Tensor, Value] = {}
        self._parent = parent
        self._names: dict[str, int] = {} if parent is None else parent._names
        self._turned: dict[PyTree, np.ndarray] = {} if parent is None else parent._turned
        self._constants: dict[PyTree, Value] = {}

    def op(
        self,
        code: str,
        *operands: Value | None,
        like: Tensor | Value | None = None,
        dtype: PyTree = None,
        shape: Shape = None,
        **options: PyTree,
    ) -> Value:
        """Adds an op with one result; returns the result.

        Args:
          code: the name of the op in LiteRT's schema.
          operands: None stands for an operand that is left out.
          like: the result has this one's dtype and shape.
          dtype: the dtype of the result, if not that of `like`.
          shape: the shape of the result, if not that of `like`.
          options: the options of the op by their names in the schema; graphs stand for indices.
        """
        dtype = like.dtype if dtype is None and like is not None else dtype
        shape = like.shape if shape is None and like is not None else shape
        return self.ops_of(code, operands, [(dtype, shape)], **options)[0]

    def ops_of(
        self,
        code: str,
        operands: Iterable[Value | None],
        types: Iterable[tuple[PyTree, Shape]],
        **options: PyTree,
    ) -> list[Value]:
        """Adds an op with results of these dtypes and shapes; returns the results."""
        name = code if self._node is None else self._node.name
        op = Op(code, list(operands), [], options)
        op.results = [
            Value(self.unique(name), np.dtype(dtype), shape, None, op) for dtype, shape in types
        ]
        self.ops.append(op)
        return op.results

    def constant(self, value: PyTree, dtype: PyTree = None) -> Value:
        """A constant of this graph: equal small ones are one."""
        array = np.asarray(value, dtype)
        key = key_of_constant(array)
        known = self._constants.get(key)
        if known is None:
            known = Value(self.unique("constant"), array.dtype, array.shape, array)
            self._constants[key] = known
        return known

    def turned(self, array: np.ndarray, order: Sequence[int], shape: PyTree = None) -> Value:
        """A known array with its dimensions in another order, once for the whole file."""
        key = (Identity(array), tuple(order), shape)
        if key not in self._turned:
            turned = array.transpose(order)
            self._turned[key] = np.ascontiguousarray(turned.reshape(shape or turned.shape))
        return self.constant(self._turned[key])

    def value(self, tensor: Tensor) -> Value:
        """The value that a tensor of the graph has become, here or in a graph around this one."""
        if tensor in self._values:
            return self._values[tensor]
        self._values[tensor] = self._found(tensor)
        return self._values[tensor]

    def _found(self, tensor: Tensor) -> Value:
        array = tensor.value
        if array is not None:
            return self.constant(array)
        if self._parent is None:
            raise KeyError(f"the tensor {tensor.name} is not written yet")
        outer = self._parent.value(tensor)
        if outer.array is not None:
            return self.constant(outer.array)
        self.captured[tensor] = Value(self.unique(tensor.name), outer.dtype, outer.shape)
        return self.captured[tensor]

    def _write_node(self, node: Node) -> None:
        rule = registry.rule_of(node.op)
        if rule is None:
            raise NotImplementedError(f"no rule writes {node.op} for LiteRT: {node.name}")
        operands = [self.value(tensor) for tensor in node.inputs]
        self._node = node
        try:
            results = registering.results_of(rule, self, node, *operands)
        except NotImplementedError as error:
            raise NotImplementedError(f"{error}, in {node.op} {node.name}") from error
        self._values.update(zip(node.outputs, results, strict=True))

    def unique(self, name: str) -> str:
        """A name that no other value of the signature has."""
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}~{number}" if number else name

    def argument(self, tensor: Tensor, like: Value | None = None) -> Value:
        """A new argument for a tensor; a list has the dtype and the shape of `like`."""
        if tensor.dtype is None:
            assert like is not None, tensor.name
            return Value(self.unique(tensor.name), like.dtype, like.shape)
        return Value(self.unique(tensor.name), tensor.dtype, tensor.shape)

    def inner(self) -> Writer:
        """A writer of a graph within this one, which captures the values of this one."""
        return Writer(self)


def signature_of(program: Program, name: str) -> Signature:
    """The program as a signature of a file.

    Args:
      program: the graph with its functions.
      name: the name of the signature.

    Raises:
      NotImplementedError: an op has no rule, or LiteRT lacks a use of it.
    """
    import_rules()
    main = inlined(program)
    simplify(main)
    with_idioms(main)
    writer = Writer()
    for taken in (*(x.name for x in main.inputs), *program.output_names):
        writer.unique(taken)
    inputs = [Value(x.name, _dtype(x), x.shape) for x in main.inputs]
    writer.take(dict(zip(main.inputs, inputs, strict=True)))
    results = writer.write_results(main, main.outputs)
    graph = Subgraph(name, inputs, results, writer.ops)
    passes.improve(graph)
    return Signature(name, graph, [x.name for x in main.inputs], program.output_names)


def _dtype(tensor: Tensor) -> np.dtype:
    assert tensor.dtype is not None, tensor.name
    return tensor.dtype
