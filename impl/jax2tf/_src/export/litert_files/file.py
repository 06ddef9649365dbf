"""The tables of a LiteRT file, read from its content, changed, and packed again."""

from __future__ import annotations

import collections
import copy
from collections.abc import Collection, Mapping, Sequence

import flatbuffers
import numpy as np

from jax2tf._src import compat
from jax2tf._src.export.litert_files.buffers import Table, pack_aligned
from jax2tf._src.export.tflite import versions
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

# Of the tables of graphs and of ops. An optional input that is left out is -1.
_LISTS_OF_TENSORS = ("inputs", "outputs", "intermediates")

# Codes from here on do not fit into the field of older files.
_PLACEHOLDER = 127


class File:
    """The tables of a file.

    Attributes:
      schema: the module of LiteRT's schema.
      model: the table of the whole model.
    """

    def __init__(self, content: bytes) -> None:
        self.schema = compat.libraries.litert_schema()
        self.model: Table = self.schema.ModelT.InitFromObj(self.schema.Model.GetRootAs(content, 0))
        self._size = len(content)
        for graph in self.model.subgraphs:
            self._merge_constants(graph)

    def _merge_constants(self, graph: Table) -> None:
        """Lets ops that read equal constants read one."""
        first: dict[PyTree, int] = {}
        of_others = {}
        for index, tensor in enumerate(graph.tensors):
            if self.bytes_of(tensor) is not None:
                scales = tensor.quantization and _scales_of(tensor.quantization)
                key = tensor.buffer, tensor.type, sizes_of(tensor), scales
                of_others[index] = first.setdefault(key, index)
        for op in graph.operators:
            op.inputs = np.array([of_others.get(int(i), int(i)) for i in op.inputs], np.int32)

    def content(self) -> bytes:
        """The content of the file, without tensors that nothing uses and their arrays."""
        for index, graph in enumerate(self.model.subgraphs):
            self._keep_used_tensors(index, graph)
        self._keep_used_codes()
        read = {tensor.buffer for graph in self.model.subgraphs for tensor in graph.tensors}
        read |= {entry.buffer for entry in self.model.metadata or ()}
        for index, buffer in enumerate(self.model.buffers):
            # The indices of buffers do not change.
            if index not in read:
                buffer.data = None
            pack_aligned(self.schema, buffer)
        builder = flatbuffers.Builder(self._size)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _keep_used_tensors(self, at: int, graph: Table) -> None:
        own = [s for s in self.model.signatureDefs or () if s.subgraphIndex == at]
        entries = [entry for s in own for entry in (*s.inputs, *s.outputs)]
        lists = [getattr(op, name) for op in graph.operators for name in _LISTS_OF_TENSORS]
        used = {int(i) for indices in lists if indices is not None for i in indices if i >= 0}
        used |= {int(i) for i in (*graph.inputs, *graph.outputs)}
        used |= {entry.tensorIndex for entry in entries}
        new = {old: i for i, old in enumerate(sorted(used))}
        graph.tensors = [graph.tensors[i] for i in new]
        for table in (graph, *graph.operators):
            for name in _LISTS_OF_TENSORS:
                indices = getattr(table, name, None)
                if indices is not None:
                    moved = [new.get(int(i), -1) for i in indices]
                    setattr(table, name, np.array(moved, np.int32))
        for entry in entries:
            entry.tensorIndex = new[entry.tensorIndex]

    def _keep_used_codes(self) -> None:
        """Leaves out codes of no op, and says which LiteRT the others ask for."""
        codes = self.model.operatorCodes
        ops = [op for graph in self.model.subgraphs for op in graph.operators]
        new = {old: i for i, old in enumerate(sorted({op.opcodeIndex for op in ops}))}
        used = {(self.name_of(op), codes[op.opcodeIndex].version) for op in ops}
        self.model.operatorCodes = [codes[i] for i in new]
        for op in ops:
            op.opcodeIndex = new[op.opcodeIndex]
        for entry in self.model.metadata or ():
            if entry.name.decode() == versions.RUNTIME:
                buffer = self.model.buffers[entry.buffer]
                known = versions.metadata_of(used)[versions.RUNTIME]
                newest = max(buffer.data.tobytes(), known, key=versions.numbers_of)
                buffer.data = np.frombuffer(newest, np.uint8)

    def count_ops(self) -> int:
        """The number of ops in all graphs."""
        return sum(len(graph.operators) for graph in self.model.subgraphs)

    def name_of(self, op: Table) -> str:
        """The name of an op in the schema."""
        code = self.model.operatorCodes[op.opcodeIndex]
        return _names(self.schema.BuiltinOperator)[
            max(code.builtinCode, code.deprecatedBuiltinCode)
        ]

    def code(self, name: str, version: int) -> int:
        """The index of this version of an op in the model's operator codes."""
        number = getattr(self.schema.BuiltinOperator, name)
        for index, code in enumerate(self.model.operatorCodes):
            if (code.builtinCode, code.version) == (number, version):
                return index
        code = self.schema.OperatorCodeT()
        code.builtinCode, code.version = number, version
        code.deprecatedBuiltinCode = min(number, _PLACEHOLDER)
        self.model.operatorCodes.append(code)
        return len(self.model.operatorCodes) - 1

    def type_of(self, tensor: Table) -> str:
        """The name of the dtype of a tensor in the schema."""
        return _names(self.schema.TensorType)[tensor.type]

    def bytes_of(self, tensor: Table) -> np.ndarray | None:
        """The bytes of a constant; None for another tensor."""
        data: np.ndarray | None = self.model.buffers[tensor.buffer].data
        return data

    def floats_of(self, tensor: Table) -> np.ndarray | None:
        """The numbers of a constant of float32; None for another tensor."""
        content = self.bytes_of(tensor)
        if content is None or self.type_of(tensor) != "FLOAT32":
            return None
        return np.frombuffer(content.tobytes(), np.float32).reshape(sizes_of(tensor))

    def new_buffer(self, data: np.ndarray) -> int:
        """The index of a new buffer with these bytes."""
        buffer = self.schema.BufferT()
        buffer.data = data
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def add_converted(self, graph: Table, like: int, dtype: str, scale: Table | None) -> int:
        """Adds a tensor like another, with another dtype and scale; returns its index."""
        tensor = copy.copy(graph.tensors[like])
        tensor.name += b"_quantized" if scale else b"_dequantized"
        tensor.type = getattr(self.schema.TensorType, dtype)
        tensor.quantization, tensor.buffer = scale, 0
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    def conversion(self, source: int, result: int, *, is_exact: bool) -> Table:
        """An op that computes integers from float32, or exact numbers from integers."""
        if is_exact:
            return self.new_op("DEQUANTIZE", 2, [source], result, self.schema.DequantizeOptionsT())
        return self.new_op("QUANTIZE", 1, [source], result, self.schema.QuantizeOptionsT())

    def new_op(
        self, name: str, version: int, inputs: Sequence[int], result: int, options: Table
    ) -> Table:
        """An op of one result, which is not yet among those of a graph."""
        op = self.schema.OperatorT()
        op.opcodeIndex = self.code(name, version)
        op.inputs, op.outputs = np.array(inputs, np.int32), np.array([result], np.int32)
        kind = type(options).__name__.removesuffix("T")
        op.builtinOptionsType = getattr(self.schema.BuiltinOptions, kind)
        op.builtinOptions = options
        return op

    def remove_unread(self, graph: Table, names: Collection[str]) -> None:
        """Removes the ops of these names whose result nothing reads."""
        read = {int(i) for op in graph.operators for i in op.inputs} | set(map(int, graph.outputs))
        graph.operators = [
            op
            for op in graph.operators
            if self.name_of(op) not in names or int(op.outputs[0]) in read
        ]


def readers_of(graph: Table) -> Mapping[int, list[tuple[PyTree, int]]]:
    """The ops that read each tensor of a graph, with the place of the tensor among their inputs."""
    readers = collections.defaultdict(list)
    for op in graph.operators:
        for place, index in enumerate(op.inputs):
            readers[int(index)].append((op, place))
    return readers


def sizes_of(tensor: Table) -> tuple[int, ...]:
    """The sizes of a tensor, of which open ones are -1."""
    sizes = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
    return () if sizes is None else tuple(map(int, sizes))


def _scales_of(quantization: Table) -> tuple[PyTree, ...]:
    arrays = (quantization.scale, quantization.zeroPoint)
    return quantization.quantizedDimension, *(None if a is None else a.tobytes() for a in arrays)


@cached
def _names(enum: Table) -> Mapping[int, str]:
    return {value: name for name, value in vars(enum).items() if isinstance(value, int)}
