"""Stores the weights of a LiteRT file in fewer bits."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import flatbuffers
import numpy as np

from jax2tf._src import compat
from jax2tf._src.export.litert_buffers import pack_aligned
from jax2tf._src.export.weights import in_half_bytes, is_weight, quantized
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

# A table of the model. FlatBuffers generates its class without types.
Table: TypeAlias = Any

# The version of Dequantize for each stored dtype; LiteRT chooses kernels by it.
_DEQUANTIZE_VERSIONS = {"FLOAT16": 3, "INT8": 5, "INT4": 6}


@dataclasses.dataclass(frozen=True)
class Stored:
    """An array as it is stored.

    Attributes:
      dtype: the name of the tensor's type.
      data: the bytes.
      scales: the factor of the integers at each index of `axis`; None for floats.
      axis: the dimension whose indices have different scales.
    """

    dtype: str
    data: np.ndarray
    scales: np.ndarray | None = None
    axis: int = 0


def float16(weights: np.ndarray) -> Stored:
    """The nearest numbers of float16."""
    return Stored("FLOAT16", weights.astype(np.float16).reshape(-1).view(np.uint8))


def integers(weights: np.ndarray, bits: int, axis: int) -> Stored:
    """Signed integers of 8 or 4 bits, with a scale for each index of an axis."""
    scales, numbers = quantized(weights, bits, axis)
    data = in_half_bytes(numbers) if bits == 4 else numbers.reshape(-1).view(np.uint8)
    return Stored(f"INT{bits}", data, scales.reshape(-1), axis)


def stored(content: bytes, kind: str) -> bytes:
    """The content of a file whose weights have fewer bits.

    Args:
      content: the content of a file with float32 weights.
      kind: "float16"; or "int4", with 4 bits for the weights of products and 8 for others.
    """
    schema = compat.libraries.litert_schema()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    # Signatures share the buffers of their weights.
    buffers: dict[tuple[int, str, int], int] = {}
    for graph in model.subgraphs:
        _Graph(schema, model, graph, buffers).store(kind)
    _without_unread_buffers(model)
    for buffer in model.buffers:
        pack_aligned(schema, buffer)
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _without_unread_buffers(model: Table) -> None:
    """Empties the buffers that no tensor uses. The indices of buffers do not change."""
    read = {tensor.buffer for graph in model.subgraphs for tensor in graph.tensors}
    read |= {entry.buffer for entry in model.metadata or ()}
    for index, buffer in enumerate(model.buffers):
        if index not in read:
            buffer.data = None


class _Graph:
    """One graph of a model, whose weights are stored in fewer bits."""

    def __init__(
        self,
        schema: ModuleType,
        model: Table,
        graph: Table,
        buffers: dict[tuple[int, str, int], int],
    ) -> None:
        self._schema = schema
        self._model = model
        self._graph = graph
        self._buffers = buffers

    def store(self, kind: str) -> None:
        """Stores each weight once, as integers or with a Dequantize for its readers."""
        readers = self._readers()
        dequantizes = []
        for index, tensor in enumerate(list(self._graph.tensors)):
            weights = self._weights(index, tensor)
            if weights is None:
                continue
            if kind == "float16":
                half = float16(weights)
                if np.isfinite(half.data.view(np.float16)).all():
                    dequantizes.append(self._dequantized(index, half))
                continue
            products = [op for op, place in readers[index] if self._takes_integers(op, place)]
            if len(products) == len(readers[index]):
                # Each row of the matrix computes one result.
                self._put(tensor, integers(weights, 4, axis=0))
                for op in products:
                    op.opcodeIndex = self._code("FULLY_CONNECTED", 10)
                    op.builtinOptions.asymmetricQuantizeInputs = True
            else:
                axis = self._axis(readers[index], weights.ndim)
                dequantizes.append(self._dequantized(index, integers(weights, 8, axis)))
        self._graph.operators = [*dequantizes, *self._graph.operators]

    def _readers(self) -> Mapping[int, list[tuple[PyTree, int]]]:
        """The ops that read each tensor, with the position of the tensor in their inputs."""
        readers = collections.defaultdict(list)
        for op in self._graph.operators:
            for place, index in enumerate(op.inputs):
                readers[int(index)].append((op, place))
        return readers

    def _weights(self, index: int, tensor: Table) -> np.ndarray | None:
        """The array of a tensor, or None if it is not a weight."""
        data = self._model.buffers[tensor.buffer].data
        shape = () if tensor.shape is None else tuple(map(int, tensor.shape))
        if data is None or tensor.type != self._schema.TensorType.FLOAT32:
            return None
        if index in self._graph.outputs:
            return None
        array = np.frombuffer(data.tobytes(), np.float32).reshape(shape)
        return array if is_weight(array) else None

    def _takes_integers(self, op: Table, place: int) -> bool:
        """Whether an op reads a tensor as the matrix that float32 rows are multiplied with."""
        return place == 1 and self._name(op) == "FULLY_CONNECTED"

    def _axis(self, readers: Sequence[tuple[Table, int]], rank: int) -> int:
        """The axis of a weight whose indices have different scales."""
        names = {self._name(op) for op, _ in readers}
        # Depthwise kernels are (1, height, width, channels); BatchMatMul sums over rows.
        return rank - 1 if names & {"DEPTHWISE_CONV_2D", "BATCH_MATMUL"} else 0

    def _name(self, op: Table) -> str:
        code = self._model.operatorCodes[op.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        return _names(self._schema.BuiltinOperator)[number]

    def _dequantized(self, index: int, stored: Stored) -> PyTree:
        """Stores a tensor's array; returns the Dequantize op that computes the tensor from it."""
        schema, tensor = self._schema, self._graph.tensors[index]
        source = schema.TensorT()
        source.name, source.shape = tensor.name + b"/stored", tensor.shape
        source.buffer = tensor.buffer
        self._put(source, stored)
        self._graph.tensors.append(source)
        # Buffer 0 means that the tensor is not a constant.
        tensor.buffer = 0
        op = schema.OperatorT()
        op.opcodeIndex = self._code("DEQUANTIZE", _DEQUANTIZE_VERSIONS[stored.dtype])
        op.inputs = np.array([len(self._graph.tensors) - 1], np.int32)
        op.outputs = np.array([index], np.int32)
        op.builtinOptionsType = schema.BuiltinOptions.DequantizeOptions
        op.builtinOptions = schema.DequantizeOptionsT()
        return op

    def _put(self, tensor: Table, stored: Stored) -> None:
        schema = self._schema
        key = (tensor.buffer, stored.dtype, stored.axis)
        if key not in self._buffers:
            buffer = schema.BufferT()
            buffer.data = stored.data
            self._buffers[key] = len(self._model.buffers)
            self._model.buffers.append(buffer)
        tensor.buffer = self._buffers[key]
        tensor.type = getattr(schema.TensorType, stored.dtype)
        if stored.scales is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = stored.scales
            tensor.quantization.zeroPoint = np.zeros(stored.scales.size, np.int64)
            tensor.quantization.quantizedDimension = stored.axis

    def _code(self, name: str, version: int) -> int:
        """The index of this version of an op in the model's operator codes."""
        number = getattr(self._schema.BuiltinOperator, name)
        for index, code in enumerate(self._model.operatorCodes):
            if (code.builtinCode, code.version) == (number, version):
                return index
        code = self._schema.OperatorCodeT()
        code.builtinCode, code.version = number, version
        code.deprecatedBuiltinCode = min(number, 127)
        self._model.operatorCodes.append(code)
        return len(self._model.operatorCodes) - 1


@cached
def _names(enum: Table) -> Mapping[int, str]:
    return {value: name for name, value in vars(enum).items() if isinstance(value, int)}
