"""The tensors inside a LiteRT file: its interpreter keeps them all."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
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
    model = _model(path)
    (graph,) = [model.signatureDefs[0].subgraphIndex]
    found = {}
    made = [i for op in model.subgraphs[graph].operators for i in op.outputs if i >= 0]
    names = _names(model.subgraphs[graph])
    for index in made:
        try:
            array = interpreter.get_tensor(int(index), graph)
        # The interpreter keeps no tensors that ops have between them only.
        except ValueError:
            continue
        found[names[index]] = _numbers(array, model.subgraphs[graph].tensors[index])
    return found


def _numbers(array: np.ndarray, tensor: PyTree) -> np.ndarray:
    scale = _scale(tensor)
    if scale is None:
        return np.array(array)
    zeros = tensor.quantization.zeroPoint
    zero = 0 if zeros is None else int(zeros[0])
    return (np.asarray(array).astype(np.float32) - zero) * np.float32(scale)


def _scale(tensor: PyTree) -> float | None:
    """The scale of a tensor that has one; None if it is not quantised, or has several."""
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None or len(quantization.scale) != 1:
        return None
    return float(quantization.scale[0])


def _main(model: PyTree) -> PyTree:
    """The graph of the first signature."""
    return model.subgraphs[model.signatureDefs[0].subgraphIndex]


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """The least and the largest number of each tensor of integers with one scale."""
    graph = _main(_model(path))
    names = _names(graph)
    types = compat.libraries.litert_schema().TensorType
    kinds = {types.INT8: "int8", types.INT16: "int16", types.UINT8: "uint8"}
    found = {}
    for index, tensor in enumerate(graph.tensors):
        kind = kinds.get(tensor.type)
        if kind is not None and _scale(tensor) is not None:
            limits = np.array([np.iinfo(np.dtype(kind)).min, np.iinfo(np.dtype(kind)).max])
            low, high = _numbers(limits, tensor)
            found[names[index]] = float(low), float(high)
    return found


def _names(graph: PyTree) -> dict[int, str]:
    """A name for each tensor: its own, with a number if another one has it, too."""
    counts: dict[str, int] = {}
    names = {}
    for index, tensor in enumerate(graph.tensors):
        name = tensor.name.decode()
        number = counts[name] = counts.get(name, -1) + 1
        names[index] = f"{name}#{number}" if number else name
    return names


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a file has otherwise than one that was written anew, in the order of its ops."""
    model, wanted = _model(path), _model(fresh)
    return list(_between(model, wanted, 0))


def _between(model: PyTree, fresh: PyTree, index: int) -> Iterator[Difference]:
    graph, wanted = model.subgraphs[index], fresh.subgraphs[index]
    names, wanted_names = _names(graph), _names(wanted)
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
