"""Lets LiteRT compute with integers what litert-quantizer leaves to float32.

litert-quantizer writes DEQUANTIZE before an op that it does not know, and QUANTIZE behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jax2tf._src.export.litert_files.buffers import Table
from jax2tf._src.export.litert_files.file import File, readers_of
from jax2tf._src.export.litert_files.tensor_names import source_of

# These give numbers of their first operand, so the integers have the scale that they had.
_MOVES = frozenset({"EXPAND_DIMS", "REDUCE_MAX", "REVERSE_V2", "SQUEEZE", "TILE"})
# These give places of their first operand.
_PLACES = frozenset({"ARG_MAX", "ARG_MIN"})
# These compute each number from one, and give integers with a scale of their own: the scale and the
# zero of LOG_SOFTMAX are fixed.
_FUNCTIONS: Mapping[str, tuple[float, int] | None] = {
    **dict.fromkeys(("ABS", "ELU", "EXP", "LEAKY_RELU", "LOG", "NEG", "RELU6")),
    "LOG_SOFTMAX": (16 / 256, 127),
}

# Ops that litert-quantizer does not know, each with one that it knows and treats in the same way.
_ALIKE: Mapping[str, str] = {
    "MINIMUM": "MAXIMUM",
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), "EQUAL"),
}
COMPARISONS = frozenset({"NOT_EQUAL", "EQUAL", *(n for n in _ALIKE if _ALIKE[n] == "EQUAL")})


def disguise(file: File, floats: Collection[str]) -> dict[str, str]:
    """Writes ops as others that litert-quantizer knows.

    Args:
      file: a file of float32, which is changed.
      floats: the names of the results of ops that stay as they are.

    Returns:
      The names of the ops as they were, by the names of their results.
    """
    names = {}
    for graph in file.model.subgraphs:
        for op in graph.operators:
            name = file.name_of(op)
            result = source_of(graph.tensors[op.outputs[0]])
            if name not in _ALIKE or result in floats:
                continue
            if file.type_of(graph.tensors[op.inputs[0]]) == "FLOAT32":
                op.opcodeIndex = file.code(_ALIKE[name], 1)
                names[result] = name
    return names


def undisguise(file: File, names: Mapping[str, str]) -> None:
    """Writes the ops as they were."""
    for graph in file.model.subgraphs:
        for op in graph.operators:
            name = names.get(source_of(graph.tensors[op.outputs[0]]))
            if name is not None and _ALIKE[name] == file.name_of(op):
                op.opcodeIndex = file.code(name, 1)


def remove(file: File, ranges: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Lets ops compute with integers.

    Args:
      file: the file, which is changed.
      ranges: the ranges of the tensors that were float32, by name.
    """
    for graph in file.model.subgraphs:
        _Islands(file, graph, ranges).remove()


class _Islands:
    """The ops of one graph that compute with float32 between integers."""

    def __init__(
        self, file: File, graph: Table, ranges: Mapping[str, Mapping[str, np.ndarray]]
    ) -> None:
        self._file = file
        self._graph = graph
        self._ranges = ranges
        self._readers = readers_of(graph)
        # By tensor of float32: that of the integers from which DEQUANTIZE computes it.
        self._integers: dict[int, int] = {}

    def remove(self) -> None:
        operators = self._of_inputs()
        for op in self._graph.operators:
            operators += [op, *self._with_integers(op)]
        self._graph.operators = operators
        self._without_unread()

    def _of_inputs(self) -> list[Table]:
        """Finds the integers of inputs that an op reads; returns the new ops that compute them."""
        inputs = {*map(int, self._graph.inputs)}
        new = []
        for op in self._graph.operators:
            name, first = self._file.name_of(op), int(op.inputs[0]) if len(op.inputs) else -1
            is_known = name in _MOVES or name in _FUNCTIONS
            if first not in inputs - self._integers.keys() or not is_known:
                continue
            # What goes from an input to an output stays as exact as it is.
            if (
                self._file.type_of(self._tensor(first)) == "FLOAT32"
                and self._readers[op.outputs[0]]
            ):
                scale = scaled(self._file, self._ranges[source_of(self._tensor(first))])
                integers = self._file.add_converted(self._graph, first, "INT8", scale)
                new.append(self._file.conversion(first, integers, is_exact=False))
                self._integers[first] = integers
        return new

    def _with_integers(self, op: Table) -> list[Table]:
        """Lets an op read integers, if it can; returns the ops that then follow it."""
        name = self._file.name_of(op)
        if name == "DEQUANTIZE" and self._file.type_of(self._tensor(op.inputs[0])) == "INT8":
            self._integers[int(op.outputs[0])] = int(op.inputs[0])
            return []
        source = self._integers.get(int(op.inputs[0])) if len(op.inputs) else None
        if source is None:
            return []
        if name == "QUANTIZE" or name in _PLACES:
            op.inputs = _with_first(op.inputs, source)
            return []
        scale = self._scale(name, source, int(op.outputs[0]))
        return [] if scale is None else [self._computed(op, source, scale)]

    def _scale(self, name: str, source: int, result: int) -> Table | None:
        """How the integers of a result are scaled; None if the op has no kernel for integers."""
        if name in _MOVES:
            return self._tensor(source).quantization
        if name not in _FUNCTIONS:
            return None
        readers = [op for op, _ in self._readers[result]]
        quantizes = [op for op in readers if self._file.name_of(op) == "QUANTIZE"]
        fixed = _FUNCTIONS[name]
        if fixed is None and quantizes:
            return self._tensor(quantizes[0].outputs[0]).quantization
        if fixed is None:
            return scaled(self._file, self._ranges[source_of(self._tensor(result))])
        return _quantization(self._file, *fixed)

    def _computed(self, op: Table, source: int, quantization: Table) -> Table:
        """Lets an op compute integers; returns the DEQUANTIZE that follows it."""
        (result,) = map(int, op.outputs)
        integers = self._file.add_converted(self._graph, result, "INT8", quantization)
        op.inputs, op.outputs = _with_first(op.inputs, source), np.array([integers], np.int32)
        self._integers[result] = integers
        return self._file.conversion(integers, result, is_exact=True)

    def _without_unread(self) -> None:
        """Removes QUANTIZEs that change nothing, and DEQUANTIZEs that nothing reads."""
        graph = self._graph
        same: dict[int, int] = {}
        kept = []
        for op in graph.operators:
            gone, stays = self._same(op) if self._changes_nothing(op) else (-1, -1)
            # One tensor may be two outputs: the second is still computed from the first.
            if gone < 0 or gone in same:
                kept.append(op)
            else:
                same[gone] = stays
        for op in kept:
            op.inputs, op.outputs = (
                np.array([_last(same, int(i)) for i in indices], np.int32)
                for indices in (op.inputs, op.outputs)
            )
        graph.operators = kept
        self._file.remove_unread(graph, {"DEQUANTIZE"})

    def _changes_nothing(self, op: Table) -> bool:
        if self._file.name_of(op) != "QUANTIZE":
            return False
        before, after = (self._tensor(i) for i in (op.inputs[0], op.outputs[0]))
        if self._file.type_of(before) != "INT8" or _scales(before) != _scales(after):
            return False
        ends = {*map(int, self._graph.inputs), *map(int, self._graph.outputs)}
        return int(op.inputs[0]) not in ends or int(op.outputs[0]) not in ends

    def _same(self, op: Table) -> tuple[int, int]:
        """The tensor that goes with an op that changes nothing, and the one that stays."""
        before, after = int(op.inputs[0]), int(op.outputs[0])
        return (before, after) if after in self._graph.outputs else (after, before)

    def _tensor(self, index: int) -> Table:
        return self._graph.tensors[int(index)]


def _last(same: Mapping[int, int], index: int) -> int:
    while index in same:
        index = same[index]
    return index


def _with_first(inputs: Sequence[int], first: int) -> np.ndarray:
    return np.array([first, *inputs[1:]], np.int32)


def scaled(file: File, known: Mapping[str, np.ndarray]) -> Table:
    """The scale and the zero of integers of a range, as a table of the schema."""
    return _quantization(file, *scale_of(known))


def _quantization(file: File, scale: float, zero: int) -> Table:
    quantization = file.schema.QuantizationParametersT()
    quantization.scale = np.array([scale], np.float32)
    quantization.zeroPoint = np.array([zero], np.int64)
    return quantization


def scale_of(known: Mapping[str, np.ndarray]) -> tuple[float, int]:
    """The scale of integers of 8 bits for a range, which is made to hold 0, and their zero."""
    least, most = min(0.0, float(known["min"].min())), max(0.0, float(known["max"].max()))
    scale = (most - least) / 255 or 1.0
    return scale, int(np.clip(round(-128 - least / scale), -128, 127))


def _scales(tensor: Table) -> tuple[list[float], list[int]]:
    quantization = tensor.quantization
    return [*map(float, quantization.scale)], [*map(int, quantization.zeroPoint)]
