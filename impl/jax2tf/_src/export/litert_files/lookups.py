"""Lets LiteRT look up rows of a table of integers, each of which has a scale of its own.

GATHER gives the integers of a table and so needs one scale for all rows. EMBEDDING_LOOKUP gives
rows of float32, and a matrix product may share its table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File, sizes_of

_RESHAPES = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")


class Lookups:
    """Writes the lookups of one graph as EMBEDDING_LOOKUP, which takes a vector of indices."""

    def __init__(self, file: File, graph: Table) -> None:
        self._file = file
        self._graph = graph
        self._makers = {int(i): op for op in graph.operators for i in op.outputs}

    def takes_rows(self, op: Table) -> bool:
        """Whether an op takes rows of a matrix, its first input, and does nothing else."""
        if self._file.name_of(op) != "GATHER":
            return False
        table, ids = (self._graph.tensors[i] for i in op.inputs)
        is_of_rows = op.builtinOptions.axis == 0 and op.builtinOptions.batchDims == 0
        return is_of_rows and len(sizes_of(table)) == 2 and self._file.type_of(ids) == "INT32"

    def write(self, op: Table, version: int) -> None:
        """Replaces an op that takes rows of a matrix."""
        table, ids = map(int, op.inputs)
        (result,) = map(int, op.outputs)
        before, after = [], []
        rows = result
        if len(sizes_of(self._graph.tensors[ids])) != 1:
            flat = self._tensor(ids, "flat", (-1,))
            source = self._before_reshapes(ids)
            before = [self._reshape(source, self._constant([-1]), flat)]
            rows = self._tensor(result, "rows", (-1, sizes_of(self._graph.tensors[table])[1]))
            after = self._shaped(ids, rows, result)
            ids = flat
        op.opcodeIndex = self._file.code("EMBEDDING_LOOKUP", version)
        op.inputs, op.outputs = _indices(ids, table), _indices(rows)
        op.builtinOptions, op.builtinOptionsType = None, 0
        at = self._graph.operators.index(op)
        self._graph.operators[at : at + 1] = [*before, op, *after]
        self._file.remove_unread(self._graph, _RESHAPES)

    def _shaped(self, ids: int, rows: int, result: int) -> list[Table]:
        """The ops that give rows the shape of a result."""
        sizes = sizes_of(self._graph.tensors[result])
        # A size of -1 is the quotient of the number of elements and the other sizes.
        if sizes.count(-1) <= 1 and 0 not in sizes:
            return [self._reshape(rows, self._constant(sizes), result)]
        leading = self._tensor(ids, "sizes", (len(sizes) - 1,))
        every = self._tensor(ids, "all_sizes", (len(sizes),))
        schema = self._file.schema
        shape, joined = schema.ShapeOptionsT(), schema.ConcatenationOptionsT()
        shape.outType = schema.TensorType.INT32
        parts = [leading, self._constant(sizes[-1:])]
        return [
            self._file.new_op("SHAPE", 1, [ids], leading, shape),
            self._file.new_op("CONCATENATION", 1, parts, every, joined),
            self._reshape(rows, every, result),
        ]

    def _before_reshapes(self, index: int) -> int:
        maker = self._makers.get(index)
        while maker is not None and self._file.name_of(maker) in _RESHAPES:
            index = int(maker.inputs[0])
            maker = self._makers.get(index)
        return index

    def _reshape(self, source: int, shape: int, result: int) -> Table:
        options = self._file.schema.ReshapeOptionsT()
        return self._file.new_op("RESHAPE", 1, [source, shape], result, options)

    def _tensor(self, like: int, role: str, sizes: Sequence[int]) -> int:
        """A new tensor with the dtype of another, which is no constant."""
        tensor = self._file.schema.TensorT()
        of = self._graph.tensors[like]
        tensor.name, tensor.type = b"%s/%s_%d" % (of.name, role.encode(), like), of.type
        tensor.hasRank = True
        tensor.shape = _indices(*(1 if n < 0 else n for n in sizes))
        if -1 in sizes:
            tensor.shapeSignature = _indices(*sizes)
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def _constant(self, numbers: Sequence[int]) -> int:
        array = _indices(*numbers)
        tensor = self._file.schema.TensorT()
        tensor.name = b"sizes/%d" % len(self._graph.tensors)
        tensor.type, tensor.hasRank = self._file.schema.TensorType.INT32, True
        tensor.shape = _indices(array.size)
        tensor.buffer = self._file.new_buffer(array.view(np.uint8))
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1


def _indices(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)
