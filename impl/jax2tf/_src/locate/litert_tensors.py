"""The tensors inside a LiteRT file: its interpreter keeps them all."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src import compat
from jax2tf._src.export import packages
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.typing import PyTree


def inputs(path: Path) -> dict[str, Taken]:
    """The inputs of the first signature by name."""
    interpreter = _interpreter(path)
    signature = next(iter(interpreter.get_signature_list()))
    details = interpreter.get_signature_runner(signature).get_input_details()
    return {name: _taken(detail) for name, detail in details.items()}


def _taken(detail: Mapping[str, PyTree]) -> Taken:
    sizes = tuple(None if size < 0 else int(size) for size in detail["shape_signature"])
    return Taken(np.dtype(detail["dtype"]), sizes)


def tensors(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All tensors of the first signature after a run, as numbers if they are quantised."""
    interpreter = _interpreter(path)
    signature = next(iter(interpreter.get_signature_list()))
    interpreter.get_signature_runner(signature)(**feeds)
    graph = _Graph(path)
    found = {}
    for index in graph.made():
        try:
            array = interpreter.get_tensor(index, graph.index)
        # The interpreter keeps no tensors that ops have between them only.
        except ValueError:
            continue
        found[graph.names[index]] = graph.numbers(index, array)
    return found


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """The least and the largest number of each tensor of integers with one scale."""
    graph = _Graph(path)
    types = compat.libraries.litert_schema().TensorType
    kinds = {types.INT8: "int8", types.INT16: "int16", types.UINT8: "uint8"}
    found = {}
    for index, name in graph.names.items():
        kind = kinds.get(graph.tensor(index).Type())
        if kind is not None and graph.scale(index) is not None:
            limits = np.array([np.iinfo(np.dtype(kind)).min, np.iinfo(np.dtype(kind)).max])
            low, high = graph.numbers(index, limits)
            found[name] = float(low), float(high)
    return found


class _Graph:
    """The graph of the first signature, read where it lies in the file: copies take longer.

    Attributes:
      index: its number.
      names: the name of each tensor; with a number if another one has it, too.
    """

    def __init__(self, path: Path) -> None:
        model = compat.libraries.litert_schema().Model.GetRootAs(path.read_bytes(), 0)
        self.index = model.SignatureDefs(0).SubgraphIndex()
        self._graph = model.Subgraphs(self.index)
        tensors = (self.tensor(i).Name() for i in range(self._graph.TensorsLength()))
        self.names = _numbered([name.decode() for name in tensors])

    def made(self) -> Iterator[int]:
        """The tensors that ops make, in their order."""
        for i in range(self._graph.OperatorsLength()):
            op = self._graph.Operators(i)
            yield from (op.Outputs(j) for j in range(op.OutputsLength()) if op.Outputs(j) >= 0)

    def tensor(self, index: int) -> PyTree:
        """A tensor."""
        return self._graph.Tensors(index)

    def scale(self, index: int) -> tuple[float, int] | None:
        """Scale and zero of a tensor; None if it is not quantised, or has several scales."""
        quantization = self.tensor(index).Quantization()
        if quantization is None or quantization.ScaleLength() != 1:
            return None
        zero = quantization.ZeroPoint(0) if quantization.ZeroPointLength() else 0
        return quantization.Scale(0), zero

    def numbers(self, index: int, array: np.ndarray) -> np.ndarray:
        """The numbers that the elements of a tensor stand for."""
        found = self.scale(index)
        if found is None:
            return np.array(array)
        scale, zero = found
        return (np.asarray(array).astype(np.float32) - zero) * np.float32(scale)


def names_of(graph: PyTree) -> dict[int, str]:
    """The names of the tensors of a graph that was unpacked."""
    return _numbered([tensor.name.decode() for tensor in graph.tensors])


def _numbered(given: Sequence[str]) -> dict[int, str]:
    """A name for each tensor: its own, with a number if another one has it, too."""
    counts: dict[str, int] = {}
    names = {}
    for index, name in enumerate(given):
        number = counts[name] = counts.get(name, -1) + 1
        names[index] = f"{name}#{number}" if number else name
    return names


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a file has otherwise than one that was written anew, in the order of its ops."""
    model, wanted = _model(path), _model(fresh)
    return list(_between(model, wanted, 0))


def _between(model: PyTree, fresh: PyTree, index: int) -> Iterator[Difference]:
    graph, wanted = model.subgraphs[index], fresh.subgraphs[index]
    names, wanted_names = names_of(graph), names_of(wanted)
    ops = {names[i]: op for op in graph.operators for i in op.outputs if i >= 0}
    for op in wanted.operators:
        outputs = tuple(wanted_names[i] for i in op.outputs if i >= 0)
        other = next((ops[name] for name in outputs if name in ops), None)
        kind = _kind(fresh, op)
        where = f"{kind} of {', '.join(outputs)}"
        if other is None:
            yield Difference(f"the op {where} is missing", outputs)
        elif _kind(model, other) != kind:
            yield Difference(f"the op {where} is {_kind(model, other)}", outputs)
        else:
            texts = [*_of_options(other, op)]
            texts += _of_operands((model, graph, names, other), (fresh, wanted, wanted_names, op))
            if texts:
                yield Difference(f"the op {where}: {'; '.join(texts)}", outputs)


def _kind(model: PyTree, op: PyTree) -> str:
    schema = compat.libraries.litert_schema()
    code = model.operatorCodes[op.opcodeIndex]
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    names = (n for n, v in vars(schema.BuiltinOperator).items() if v == number)
    return next(names, str(number))


def _of_options(op: PyTree, fresh: PyTree) -> Iterator[str]:
    ours, theirs = (vars(x.builtinOptions) if x.builtinOptions else {} for x in (op, fresh))
    for name in sorted({*ours, *theirs}):
        mine, other = ours.get(name), theirs.get(name)
        if not np.array_equal(np.asarray(mine), np.asarray(other)):
            yield f"{name} is {mine} for {other}"


def _of_operands(ours: tuple[PyTree, ...], theirs: tuple[PyTree, ...]) -> Iterator[str]:
    (model, graph, names, op), (fresh, wanted, wanted_names, other) = ours, theirs
    for i, j in zip(op.inputs, other.inputs, strict=False):
        if i < 0 or j < 0:
            continue
        mine, known = _bytes(model, graph.tensors[i]), _bytes(fresh, wanted.tensors[j])
        if mine is None and known is None:
            if names[i] != wanted_names[j]:
                yield f"reads {names[i]} in place of {wanted_names[j]}"
        elif mine is None or known is None or not np.array_equal(mine, known):
            yield f"the constant {names[i]} differs"


def _bytes(model: PyTree, tensor: PyTree) -> np.ndarray | None:
    data = model.buffers[tensor.buffer].data
    return None if data is None or len(data) == 0 else np.asarray(data, np.uint8)


def _model(path: Path) -> PyTree:
    schema = compat.libraries.litert_schema()
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))


def _interpreter(path: Path) -> PyTree:
    if packages.is_installed("ai_edge_litert"):
        module = importlib.import_module("ai_edge_litert.interpreter")
    else:
        module = importlib.import_module("tensorflow").lite
    with warnings.catch_warnings():
        # It warns that this is for debugging, which it is.
        warnings.simplefilter("ignore", UserWarning)
        return module.Interpreter(str(path), experimental_preserve_all_tensors=True)
