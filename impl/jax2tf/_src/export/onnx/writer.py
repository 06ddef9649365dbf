"""Writes a graph as a model of ONNX, with onnx-ir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from jax2tf._src.export.graph_writer import GraphWriter, key_of_constant
from jax2tf._src.export.onnx import opsets, passes, registry
from jax2tf._src.export.onnx.lstm import with_lstm
from jax2tf._src.export.onnx.rules import import_rules
from jax2tf._src.export.onnx.zeros import choices_that_keep_signs
from jax2tf._src.graph.graph import Node, Program, Tensor
from jax2tf._src.graph.inlining import inlined
from jax2tf._src.graph.simplifying import simplify
from jax2tf._src.util import registering
from jax2tf._src.util.typing import PyTree

# The version of ONNX's ops.
OPSET = opsets.DEFAULT


class Writer(GraphWriter):
    """Writes the nodes of one graph. The graphs of loops and branches have writers of their own.

    Rules make nodes with `op`, constants with `constant`, and ask the node of the graph (its
    `inputs`, `outputs` and `attributes`) for dtypes, sizes and known values.

    Attributes:
      opset: the version of ONNX's ops.
      nodes: the nodes so far.
      initializers: the constants of the whole model.
      signed_choices: the choices whose zeros keep their signs; see zeros.py.
    """

    def __init__(self, opset: int = OPSET, parent: Writer | None = None) -> None:
        super().__init__(None if parent is None else parent._node)
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = [] if parent is None else parent.initializers
        self.signed_choices: Mapping[Node, tuple[bool, bool]] = (
            {} if parent is None else parent.signed_choices
        )
        self._parent = parent
        self._names: dict[str, int] = {} if parent is None else parent._names
        self._constants: dict[PyTree, ir.Value] = {} if parent is None else parent._constants

    def op(
        self,
        op: str,
        *operands: ir.Value | None,
        domain: str = "",
        n: int = 1,
        **attributes: PyTree,
    ) -> PyTree:
        """Adds a node; returns its result, or a tuple of `n` results.

        Attributes are numbers, text, lists of these, and graphs of onnx-ir; None is left out.
        """
        name = self.unique(op if self._node is None else self._node.name)
        given = [
            ir.convenience.convert_attribute(key, value)
            for key, value in attributes.items()
            if value is not None
        ]
        outputs = [ir.Value(name=name if n == 1 else f"{name}:{i}") for i in range(n)]
        node = ir.Node(domain, op, operands, given, outputs=outputs, name=name)
        if self._node is not None and self._node.scope:
            node.metadata_props["jax_scope"] = self._node.scope
        self.nodes.append(node)
        return outputs[0] if n == 1 else tuple(outputs)

    def constant(self, value: PyTree, dtype: PyTree = None) -> ir.Value:
        """An initialiser of the model: equal small ones are one."""
        array = np.asarray(value, dtype)
        key = key_of_constant(array)
        known = self._constants.get(key)
        if known is None:
            name = self.unique("constant")
            known = ir.Value(
                name=name,
                const_value=ir.tensor(array, name=name),
                shape=ir.Shape(array.shape),
                type=ir.TensorType(onnx_dtype(array.dtype)),
            )
            self.initializers.append(known)
            self._constants[key] = known
        return known

    def value(self, tensor: Tensor) -> PyTree:
        """The value of ONNX that a tensor of the graph has become, or an object for a list."""
        writer: Writer | None = self
        while writer is not None:
            if tensor in writer._values:
                return writer._values[tensor]
            writer = writer._parent
        array = tensor.value
        if array is None:
            raise KeyError(f"the tensor {tensor.name} is not written yet")
        self._values[tensor] = self.constant(array)
        return self._values[tensor]

    def _write_node(self, node: Node) -> None:
        rule = registry.rule_of(node.op)
        if rule is None:
            raise NotImplementedError(f"no rule writes the op {node.op} as ONNX")
        operands = [self.value(tensor) for tensor in node.inputs]
        self._node = node
        results = registering.results_of(rule, self, node, *operands)
        for tensor, value in zip(node.outputs, results, strict=True):
            self._values[tensor] = value
            _describe(value, tensor)

    def unique(self, name: str) -> str:
        """A name that no other node or value of the model has."""
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}~{number}" if number else name

    def new(self, name: str, dtype: ir.DataType) -> ir.Value:
        """A new scalar argument of an inner graph."""
        return ir.Value(name=self.unique(name), shape=ir.Shape([]), type=ir.TensorType(dtype))

    def declared(self, tensor: Tensor) -> ir.Value:
        """A new argument of an inner graph."""
        return ir.Value(name=self.unique(tensor.name), shape=_shape(tensor), type=_type(tensor))

    def inner(self) -> Writer:
        """A writer of a graph within this one, which reads the values of this one."""
        return Writer(self.opset, self)

    def graph(self, name: str, inputs: Sequence[ir.Value], results: Sequence[ir.Value]) -> ir.Graph:
        """The graph of the nodes so far.

        Each result is made by a node of this graph, and stands once: others get an Identity.
        """
        outputs: list[ir.Value] = []
        made = {value for node in self.nodes for value in node.outputs}
        for result in results:
            is_own = result in made and result not in outputs
            outputs.append(result if is_own else self._same(result))
        return ir.Graph(inputs, outputs, nodes=self.nodes, name=name)

    def _same(self, x: ir.Value) -> ir.Value:
        result = self.op("Identity", x)
        result.shape, result.type = x.shape, x.type
        return result


def onnx_dtype(dtype: np.dtype) -> ir.DataType:
    """ONNX's name of a dtype of NumPy or ml_dtypes."""
    return ir.DataType.from_numpy(np.dtype(dtype))


def model_of(
    program: Program, opset: int = OPSET, metadata: Mapping[str, str] | None = None
) -> ir.Model:
    """The program as a model.

    Args:
      program: the graph with its functions.
      opset: the version of ONNX's ops.
      metadata: what the model says of itself.
    """
    import_rules()
    main = inlined(program)
    simplify(main)
    with_lstm(main)
    writer = Writer(opset)
    writer.signed_choices = choices_that_keep_signs(main)
    # The names of the user come first.
    for name in (*(tensor.name for tensor in main.inputs), *program.output_names):
        writer.unique(name)
    inputs = [_declared(tensor) for tensor in main.inputs]
    writer.take(dict(zip(main.inputs, inputs, strict=True)))
    results = writer.write_results(main, main.outputs)
    graph = writer.graph(main.name, inputs, results)
    for name, tensor, value in zip(
        program.output_names, program.main.outputs, graph.outputs, strict=True
    ):
        # A pass may have found the shape of the value; the program has the names of sizes.
        value.name, value.type = name, _type(tensor)
        value.shape = _named(_shape(tensor), value.shape)
    graph.opset_imports[""] = opset
    for initializer in writer.initializers:
        graph.register_initializer(initializer)
    model = ir.Model(
        graph,
        ir_version=_ir_version(opset),
        producer_name="jax2tf",
        metadata_props=dict(metadata or {}),
    )
    passes.improve(model)
    return model


def _ir_version(opset: int) -> int:
    """The oldest version of ONNX's format that has the opset."""
    return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]))


def _declared(tensor: Tensor) -> ir.Value:
    return ir.Value(name=tensor.name, shape=_shape(tensor), type=_type(tensor))


def _describe(value: PyTree, tensor: Tensor) -> None:
    """Says the dtype and the shape of a value, if they are not known."""
    if isinstance(value, ir.Value) and value.type is None and tensor.dtype is not None:
        value.shape, value.type = _shape(tensor), _type(tensor)


def _shape(tensor: Tensor) -> ir.Shape | None:
    return None if tensor.shape is None else ir.Shape(tensor.shape)


def _named(shape: ir.Shape | None, other: ir.Shape | None) -> ir.Shape | None:
    """A shape, with the sizes of another one where it has none."""
    if shape is None or other is None or len(shape) != len(other):
        return shape or other
    unknown = ir.SymbolicDim(None)
    return ir.Shape([y if x == unknown else x for x, y in zip(shape, other, strict=True)])


def _type(tensor: Tensor) -> ir.TensorType | None:
    return None if tensor.dtype is None else ir.TensorType(onnx_dtype(tensor.dtype))
