"""Stores the weights of a LiteRT file in fewer bits."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File, readers_of, sizes_of
from jax2tf._src.export.litert_files.lookups import Lookups
from jax2tf._src.export.weights import in_half_bytes, is_weight, quantized

# The version of Dequantize for each stored dtype; LiteRT chooses kernels by it.
_DEQUANTIZE_VERSIONS = {"FLOAT16": 3, "INT8": 5, "INT4": 6}


@dataclasses.dataclass(frozen=True)
class Stored:
    """An array as it is stored.

    Attributes:
      dtype: the name of the tensor's type.
      data: the bytes.
      scales: the factor of the integers at each index of `axis`, or one for all; None for floats.
      axis: the dimension whose indices have different scales.
    """

    dtype: str
    data: np.ndarray
    scales: np.ndarray | None = None
    axis: int = 0


def float16(weights: np.ndarray) -> Stored | None:
    """The nearest numbers of float16; None if one of them would be an infinity."""
    with np.errstate(over="ignore"):
        half = weights.astype(np.float16)
    if not np.isfinite(half).all():
        return None
    return Stored("FLOAT16", half.reshape(-1).view(np.uint8))


def integers(weights: np.ndarray, bits: int, axis: int | None) -> Stored:
    """Signed integers of 8 or 4 bits, with a scale for each index of an axis, or one for all."""
    scales, numbers = quantized(weights, bits, axis)
    data = in_half_bytes(numbers) if bits == 4 else numbers.reshape(-1).view(np.uint8)
    return Stored(f"INT{bits}", data, scales.reshape(-1), axis or 0)


@dataclasses.dataclass(frozen=True)
class _Reader:
    """An op that takes integers with scales in place of a weight, and computes with float32.

    Attributes:
      version: the version of the op that does so, as TensorFlow's converter writes it.
      axis: the dimension of the weight whose indices have different scales; None if there is one
        scale for all.
    """

    version: int
    axis: int | None = 0


# What reads a weight: the name of an op, and the place of the weight among its inputs.
_Use = tuple[str, int]
_LOOKUP: _Use = ("a lookup of rows", 0)
_MATRIX: _Use = ("FULLY_CONNECTED", 1)

# For products LiteRT rounds the other operand to integers of 8 bits, with a scale for each row.
_READERS: Mapping[_Use, _Reader] = {
    _LOOKUP: _Reader(4),
    _MATRIX: _Reader(12),
    ("CONV_2D", 1): _Reader(6),
    # Its kernels are (1, height, width, channels).
    ("DEPTHWISE_CONV_2D", 1): _Reader(6, axis=3),
    ("TRANSPOSE_CONV", 1): _Reader(2),
    ("BATCH_MATMUL", 1): _Reader(4, axis=None),
}
_OF_FOUR_BITS = {_MATRIX: _Reader(10)}

# By kind: the bits of a weight, and what reads it as integers. The first entry that has all readers
# of a weight is used. A weight that none has gets 8 bits and a Dequantize.
_CHOICES: Mapping[str, Sequence[tuple[int, Mapping[_Use, _Reader]]]] = {
    "float16": (),
    "dynamic": ((8, _READERS),),
    "int4": ((4, _OF_FOUR_BITS), (8, {use: _READERS[use] for use in (_LOOKUP, _MATRIX)})),
}


def stored(content: bytes, kind: str) -> tuple[bytes, int]:
    """The content of a file whose weights have fewer bits, and the number of its ops.

    Args:
      content: the content of a file with float32 weights.
      kind: "float16"; "dynamic", with 8 bits; or "int4", with 4 bits for matrices that are only
        multiplied with, and 8 for others.
    """
    file = File(content)
    _Weights(file, kind).store()
    return file.content(), file.count_ops()


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a weight is stored.

    Attributes:
      buffer: the index of its buffer.
      stored: how.
      readers: the ops that read it so; None if they read what Dequantize makes of it.
    """

    buffer: int
    stored: Stored
    readers: Mapping[_Use, _Reader] | None


# Tensors that share a buffer and a shape are one weight.
_Key = tuple[int, tuple[int, ...]]


class _Weights:
    """The weights of a file. Graphs share them, and each is stored once."""

    def __init__(self, file: File, kind: str) -> None:
        self._file = file
        self._kind = kind
        self._uses: dict[_Key, set[_Use]] = collections.defaultdict(set)
        self._places: dict[_Key, _Place | None] = {}

    def store(self) -> None:
        """Stores each weight as integers, or with a Dequantize for its readers."""
        graphs = [_Graph(self._file, graph) for graph in self._file.model.subgraphs]
        for graph in graphs:
            for index in graph.weights:
                self._uses[graph.key(index)] |= graph.uses(index)
        for graph in graphs:
            for index, weights in graph.weights.items():
                place = self._place(graph.key(index), weights)
                if place is not None:
                    graph.put(index, place)
            graph.finish()

    def _place(self, key: _Key, weights: np.ndarray) -> _Place | None:
        if key not in self._places:
            stored, readers = self._choice(self._uses[key], weights)
            self._places[key] = (
                None
                if stored is None
                else _Place(self._file.new_buffer(stored.data), stored, readers)
            )
        return self._places[key]

    def _choice(
        self, uses: set[_Use], weights: np.ndarray
    ) -> tuple[Stored | None, Mapping[_Use, _Reader] | None]:
        for bits, readers in _CHOICES[self._kind]:
            axes = {readers[use].axis for use in uses if use in readers}
            if uses <= readers.keys() and len(axes) == 1:
                return integers(weights, bits, axes.pop()), readers
        if self._kind == "float16":
            return float16(weights), None
        # Depthwise kernels are (1, height, width, channels); BatchMatMul sums over rows.
        is_last = {name for name, _ in uses} & {"DEPTHWISE_CONV_2D", "BATCH_MATMUL"}
        return integers(weights, 8, weights.ndim - 1 if is_last else 0), None


class _Graph:
    """One graph of a file, whose weights are stored in fewer bits.

    Attributes:
      tensors: its tensors.
      weights: the arrays of those that are weights, by index.
    """

    def __init__(self, file: File, graph: Table) -> None:
        self._file = file
        self._graph = graph
        self._readers = readers_of(graph)
        self._lookups = Lookups(file, graph)
        self._dequantizes: list[Table] = []
        self.tensors: list[Table] = graph.tensors
        arrays = {index: self._weight(index) for index in range(len(self.tensors))}
        self.weights = {index: array for index, array in arrays.items() if array is not None}

    def key(self, index: int) -> _Key:
        """Equal for tensors that are one weight."""
        tensor = self.tensors[index]
        return tensor.buffer, sizes_of(tensor)

    def uses(self, index: int) -> set[_Use]:
        """What reads a tensor."""
        return {self._use(op, place) for op, place in self._readers[index]}

    def put(self, index: int, place: _Place) -> None:
        """Stores a weight at its place, and lets its readers read it there."""
        if place.readers is None:
            self._dequantizes.append(self._dequantized(index, place))
            return
        self._store(self.tensors[index], place)
        for op, at in self._readers[index]:
            use = self._use(op, at)
            if use == _LOOKUP:
                self._lookups.write(op, place.readers[use].version)
                continue
            op.opcodeIndex = self._file.code(use[0], place.readers[use].version)
            if hasattr(op.builtinOptions, "asymmetricQuantizeInputs"):
                op.builtinOptions.asymmetricQuantizeInputs = True

    def finish(self) -> None:
        """Puts the new ops where those that read their results find them."""
        self._graph.operators = [*self._dequantizes, *self._graph.operators]

    def _use(self, op: Table, place: int) -> _Use:
        is_lookup = place == 0 and self._lookups.takes_rows(op)
        return _LOOKUP if is_lookup else (self._file.name_of(op), place)

    def _weight(self, index: int) -> np.ndarray | None:
        """The array of a tensor, or None if it is not a weight."""
        if index in self._graph.outputs or not self._readers[index]:
            return None
        array = self._file.floats_of(self.tensors[index])
        return array if array is not None and is_weight(array) else None

    def _dequantized(self, index: int, place: _Place) -> Table:
        """The Dequantize op that computes a tensor from the stored array."""
        schema, tensor = self._file.schema, self.tensors[index]
        source = schema.TensorT()
        source.name, source.shape, source.hasRank = tensor.name + b"/stored", tensor.shape, True
        self._store(source, place)
        self.tensors.append(source)
        # Buffer 0 means that the tensor is not a constant.
        tensor.buffer = 0
        version, options = _DEQUANTIZE_VERSIONS[place.stored.dtype], schema.DequantizeOptionsT()
        return self._file.new_op("DEQUANTIZE", version, [len(self.tensors) - 1], index, options)

    def _store(self, tensor: Table, place: _Place) -> None:
        schema, stored = self._file.schema, place.stored
        tensor.buffer = place.buffer
        tensor.type = getattr(schema.TensorType, stored.dtype)
        if stored.scales is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = stored.scales
            tensor.quantization.zeroPoint = np.zeros(stored.scales.size, np.int64)
            tensor.quantization.quantizedDimension = stored.axis
