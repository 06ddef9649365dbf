"""Gives full-integer LiteRT files the outputs that were asked for.

litert-quantizer mixes up outputs that an op reads too, where the two need different integers. So it
does not see that they are outputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File
from jax2tf._src.export.litert_files.islands import scaled
from jax2tf._src.export.litert_files.tensor_names import source_of


@dataclasses.dataclass(frozen=True)
class Ends:
    """The outputs of a file by the names of their tensors.

    Attributes:
      of_graphs: those of each graph.
      of_signatures: those of each signature, with the names that the signature gives them.
    """

    of_graphs: Sequence[Sequence[str]]
    of_signatures: Sequence[Sequence[tuple[bytes, str]]]

    @staticmethod
    def taken_from(file: File) -> Ends:
        """Takes the outputs that an op reads too from a file before it is quantised."""
        of_graphs = [
            [source_of(graph.tensors[i]) for i in graph.outputs] for graph in file.model.subgraphs
        ]
        of_signatures = []
        for signature in file.model.signatureDefs:
            graph = file.model.subgraphs[signature.subgraphIndex]
            of_signatures.append(
                [(o.name, source_of(graph.tensors[o.tensorIndex])) for o in signature.outputs]
            )
            read = {int(i) for op in graph.operators for i in op.inputs}
            signature.outputs = [o for o in signature.outputs if o.tensorIndex not in read]
            graph.outputs = np.array([i for i in graph.outputs if int(i) not in read], np.int32)
        return Ends(of_graphs, of_signatures)

    def put(self, file: File, ranges: Mapping[str, Mapping[str, np.ndarray]], dtype: str) -> None:
        """Makes them the outputs of a file.

        Args:
          file: the file after it was quantised, which is changed.
          ranges: the ranges of the tensors that were float32, by name.
          dtype: "FLOAT32" or "INT8", for outputs that were float32.
        """
        for signature, entries in zip(file.model.signatureDefs, self.of_signatures, strict=True):
            graph = file.model.subgraphs[signature.subgraphIndex]
            names = self.of_graphs[signature.subgraphIndex]
            places = _Places(file, graph, ranges, dtype).of({*names, *(n for _, n in entries)})
            graph.outputs = np.array([places[name] for name in names], np.int32)
            signature.outputs = [_entry(file, known, places[name]) for known, name in entries]


def _entry(file: File, name: bytes, tensor: int) -> Table:
    entry = file.schema.TensorMapT()
    entry.name, entry.tensorIndex = name, tensor
    return entry


class _Places:
    """Finds the outputs of a graph among its tensors, or adds them."""

    def __init__(
        self,
        file: File,
        graph: Table,
        ranges: Mapping[str, Mapping[str, np.ndarray]],
        dtype: str,
    ) -> None:
        self._file = file
        self._graph = graph
        self._ranges = ranges
        self._dtype = dtype

    def of(self, names: set[str]) -> Mapping[str, int]:
        """The tensors of these outputs by name."""
        return {
            tensor.name.decode(): self._place(index)
            for index, tensor in enumerate([*self._graph.tensors])
            if tensor.name.decode() in names
        }

    def _place(self, index: int) -> int:
        tensor = self._graph.tensors[index]
        if self._file.type_of(tensor) not in {"FLOAT32", "INT8"} - {self._dtype}:
            return index
        is_exact = self._dtype == "FLOAT32"
        code = "DEQUANTIZE" if is_exact else "QUANTIZE"
        for op in self._graph.operators:
            if self._file.name_of(op) == code and op.inputs[0] == index:
                return int(op.outputs[0])
        scale = None if is_exact else scaled(self._file, self._ranges[source_of(tensor)])
        result = self._file.add_converted(self._graph, index, self._dtype, scale)
        self._graph.operators.append(self._file.conversion(index, result, is_exact=is_exact))
        return result
