"""Packs a model as the content of a file, in LiteRT's schema."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeAlias

import flatbuffers
import numpy as np

from jax2tf._src import compat
from jax2tf._src.export.litert_files.buffers import pack_aligned
from jax2tf._src.export.tflite import versions
from jax2tf._src.export.tflite.model import Model, Op, Signature, Subgraph, Value, graphs_in
from jax2tf._src.util.typing import PyTree

# A table of the schema. FlatBuffers generates its class without types.
Table: TypeAlias = Any

_SCHEMA_VERSION = 3
# Codes from here on do not fit into the field of older files.
_PLACEHOLDER = 127


def content_of(model: Model) -> bytes:
    """The content of the file of a model."""
    return _Packer(compat.libraries.litert_schema()).content(model)


class _Packer:
    """Collects the tables of one file."""

    def __init__(self, schema: ModuleType) -> None:
        self._schema = schema
        self._codes: dict[tuple[str, int], int] = {}
        self._buffers: list[Table] = []
        self._shared: dict[bytes, int] = {}
        self._graphs: dict[Subgraph, int] = {}
        # Buffer 0 means that a tensor is not a constant.
        self._buffer(None)

    def content(self, model: Model) -> bytes:
        schema = self._schema
        # The graphs of signatures come first: the first one is what runs without a signature.
        own = [s.graph for s in model.signatures]
        every = [g for graph in own for g in graphs_in(graph)]
        self._graphs = {graph: i for i, graph in enumerate(dict.fromkeys([*own, *every]))}
        whole = schema.ModelT()
        whole.version, whole.description = _SCHEMA_VERSION, "jax2tf"
        tables = {graph: self._subgraph(graph) for graph in self._graphs}
        whole.subgraphs = [table for table, _ in tables.values()]
        whole.signatureDefs = [self._signature(s, tables[s.graph][1]) for s in model.signatures]
        metadata = {**versions.metadata_of(self._codes), **model.metadata}
        whole.metadata = [self._metadata(*entry) for entry in metadata.items()]
        whole.operatorCodes = [self._operator_code(*key) for key in self._codes]
        whole.buffers = self._buffers
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(whole.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _subgraph(self, graph: Subgraph) -> tuple[Table, Mapping[Value, int]]:
        table = self._schema.SubGraphT()
        operands = [x for op in graph.ops for x in (*op.operands, *op.results) if x is not None]
        values = dict.fromkeys([*graph.inputs, *operands, *graph.outputs])
        places = {value: i for i, value in enumerate(values)}
        table.name = graph.name
        table.tensors = [self._tensor(value) for value in places]
        table.inputs = _indices(places[x] for x in graph.inputs)
        table.outputs = _indices(places[x] for x in graph.outputs)
        table.operators = [self._operator(op, places) for op in graph.ops]
        return table, places

    def _tensor(self, value: Value) -> Table:
        tensor = self._schema.TensorT()
        tensor.name, tensor.type = value.name, self._type(value.dtype)
        tensor.buffer = 0 if value.array is None else self._shared_buffer(value.array)
        tensor.hasRank = value.shape is not None
        if value.shape is not None:
            sizes = [n if isinstance(n, int) else -1 for n in value.shape]
            tensor.shape = np.array([1 if n < 0 else n for n in sizes], np.int32)
            if -1 in sizes:
                tensor.shapeSignature = np.array(sizes, np.int32)
        return tensor

    def _type(self, dtype: np.dtype) -> int:
        number = getattr(self._schema.TensorType, dtype.name.upper(), None)
        if number is None:
            raise NotImplementedError(f"LiteRT has no tensors of {dtype.name}")
        return int(number)

    def _shared_buffer(self, array: np.ndarray) -> int:
        # Equal arrays are stored once, whatever made them.
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        key = hashlib.blake2b(content.data).digest()
        if key not in self._shared:
            self._shared[key] = self._buffer(content)
        return self._shared[key]

    def _buffer(self, array: np.ndarray | None) -> int:
        buffer = self._schema.BufferT()
        if array is not None and array.size:
            buffer.data = array
        pack_aligned(self._schema, buffer)
        self._buffers.append(buffer)
        return len(self._buffers) - 1

    def _operator(self, op: Op, places: Mapping[Value, int]) -> Table:
        table = self._schema.OperatorT()
        key = (op.code, versions.version_of(op))
        table.opcodeIndex = self._codes.setdefault(key, len(self._codes))
        table.inputs = _indices(-1 if x is None else places[x] for x in op.operands)
        table.outputs = _indices(places[x] for x in op.results)
        name = _options_of(op.code)
        if hasattr(self._schema, f"{name}T"):
            self._set_options(table, name, op)
        elif op.options:
            raise AttributeError(f"LiteRT's schema has no {name} for {op.code}")
        return table

    def _set_options(self, table: Table, name: str, op: Op) -> None:
        schema = self._schema
        options = getattr(schema, f"{name}T")()
        for key, value in op.options.items():
            if not hasattr(options, key):
                raise AttributeError(f"{name} of LiteRT's schema has no option {key}")
            setattr(options, key, self._option(value))
        if hasattr(schema.BuiltinOptions, name):
            table.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            table.builtinOptions = options
        else:
            table.builtinOptions2Type = getattr(schema.BuiltinOptions2, name)
            table.builtinOptions2 = options

    def _option(self, value: PyTree) -> PyTree:
        if isinstance(value, Subgraph):
            return self._graphs[value]
        if isinstance(value, np.dtype):
            return self._type(value)
        return np.array(value, np.int32) if isinstance(value, list) else value

    def _operator_code(self, name: str, version: int) -> Table:
        code = self._schema.OperatorCodeT()
        code.builtinCode = getattr(self._schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, _PLACEHOLDER)
        code.version = version
        return code

    def _signature(self, signature: Signature, places: Mapping[Value, int]) -> Table:
        table = self._schema.SignatureDefT()
        table.signatureKey = signature.name
        table.subgraphIndex = self._graphs[signature.graph]
        graph = signature.graph
        table.inputs = self._map(signature.inputs, graph.inputs, places)
        table.outputs = self._map(signature.outputs, graph.outputs, places)
        return table

    def _map(self, names: PyTree, values: PyTree, places: Mapping[Value, int]) -> list[Table]:
        entries = []
        for name, value in zip(names, values, strict=True):
            entry = self._schema.TensorMapT()
            entry.name, entry.tensorIndex = name, places[value]
            entries.append(entry)
        return entries

    def _metadata(self, name: str, content: bytes) -> Table:
        entry = self._schema.MetadataT()
        entry.name = name
        entry.buffer = self._buffer(np.frombuffer(content, np.uint8))
        return entry


def _indices(numbers: PyTree) -> np.ndarray:
    return np.array([*numbers], np.int32)


# The schema's names of options that are not those of the op.
_OPTIONS = {
    "ATAN2": "ATan2Options",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CONV_2D": "Conv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "PADV2": "PadV2Options",
    "RFFT2D": "Rfft2dOptions",
    "TOPK_V2": "TopKV2Options",
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"),
        "ReducerOptions",
    ),
    # Of these the schema has options of other ops, or none.
    **dict.fromkeys(("CEIL", "FLOOR", "RELU", "RELU6", "ROUND", "RSQRT", "SIN", "SQRT", "ELU"), ""),
}


def _options_of(code: str) -> str:
    """The name of the table of an op's options."""
    if code in _OPTIONS:
        return _OPTIONS[code]
    words = re.split("_", code)
    return "".join(word.capitalize() for word in words) + "Options"
