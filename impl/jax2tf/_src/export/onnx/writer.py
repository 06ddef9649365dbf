"""Writes a graph as a model of ONNX, with onnx-ir."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from jax2tf._src.export.onnx import registry
from jax2tf._src.export.onnx.rules import import_rules
from jax2tf._src.graph.graph import Graph, Node, Program, Tensor
from jax2tf._src.util.typing import PyTree

# The version of ONNX's ops.
OPSET = 21


class Writer:
    """Writes the nodes of one graph. The graphs of loops and branches have writers of their own.

    Rules make nodes with `op`, constants with `constant`, and ask the node of the graph (its
    `inputs`, `outputs` and `attributes`) for dtypes, sizes and known values.
    """

    def __init__(self, program: Program, opset: int = OPSET, parent: Writer | None = None) -> None:
        self.program = program
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = [] if parent is None else parent.initializers
        self._numbers = itertools.count() if parent is None else parent._numbers
        self._constants: dict[PyTree, ir.Value] = {} if parent is None else parent._constants
        self._values: dict[Tensor, ir.Value] = {}
        self._node: Node | None = None

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
        name = f"{op}_{next(self._numbers)}"
        given = [
            ir.convenience.convert_attribute(key, value)
            for key, value in attributes.items()
            if value is not None
        ]
        outputs = [ir.Value(name=name if n == 1 else f"{name}:{i}") for i in range(n)]
        node = ir.Node(domain, op, operands, given, outputs=outputs, name=name)
        self.nodes.append(node)
        return outputs[0] if n == 1 else tuple(outputs)

    def constant(self, value: PyTree, dtype: PyTree = None) -> ir.Value:
        """An initialiser of the model: equal small ones are one."""
        array = np.asarray(value, dtype)
        key = (
            (str(array.dtype), array.shape, array.tobytes()) if array.nbytes <= 4096 else id(value)
        )
        known = self._constants.get(key)
        if known is None:
            name = f"const_{next(self._numbers)}"
            known = ir.Value(
                name=name,
                const_value=ir.tensor(array, name=name),
                shape=ir.Shape(array.shape),
                type=ir.TensorType(onnx_dtype(array.dtype)),
            )
            self.initializers.append(known)
            self._constants[key] = known
        return known

    def value(self, tensor: Tensor) -> ir.Value:
        """The value of ONNX that a tensor of the graph has become."""
        if tensor.value is not None and tensor not in self._values:
            self._values[tensor] = self.constant(tensor.value)
        return self._values[tensor]

    def write(self, graph: Graph, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """Writes the nodes of a graph whose arguments are these values; returns its results."""
        for tensor, value in zip(graph.inputs, arguments, strict=True):
            self._values[tensor] = value
        for node in graph.nodes:
            if node.op != "Const":
                self._write_node(node)
        return [self.value(tensor) for tensor in graph.outputs]

    def _write_node(self, node: Node) -> None:
        rule = registry.rule_of(node.op)
        if rule is None:
            raise NotImplementedError(f"no rule writes the op {node.op} as ONNX")
        operands = [self.value(tensor) for tensor in node.inputs]
        results = registry.results_of(rule, self, node, operands)
        for tensor, value in zip(node.outputs, results, strict=True):
            self._values[tensor] = value


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
    writer = Writer(program, opset)
    inputs = [_declared(tensor) for tensor in program.main.inputs]
    results = writer.write(program.main, inputs)
    outputs = []
    for name, tensor, result in zip(
        program.output_names, program.main.outputs, results, strict=True
    ):
        # An output has the user's name, and an input may be an output.
        value = writer.op("Identity", result)
        value.name, value.shape, value.type = name, _shape(tensor), _type(tensor)
        outputs.append(value)
    graph = ir.Graph(
        inputs,
        outputs,
        nodes=writer.nodes,
        initializers=writer.initializers,
        opset_imports={"": opset},
        name=program.main.name,
    )
    return ir.Model(
        graph,
        ir_version=_ir_version(opset),
        producer_name="jax2tf",
        metadata_props=dict(metadata or {}),
    )


def _ir_version(opset: int) -> int:
    """The oldest version of ONNX's format that has the opset."""
    return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]))


def _declared(tensor: Tensor) -> ir.Value:
    return ir.Value(name=tensor.name, shape=_shape(tensor), type=_type(tensor))


def _shape(tensor: Tensor) -> ir.Shape | None:
    return None if tensor.shape is None else ir.Shape(tensor.shape)


def _type(tensor: Tensor) -> ir.TensorType:
    return ir.TensorType(onnx_dtype(tensor.dtype))
