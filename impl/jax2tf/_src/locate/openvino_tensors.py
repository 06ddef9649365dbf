"""The tensors inside an OpenVINO model: a copy of it in memory returns them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from jax2tf._src.export import openvino
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.typing import PyTree

_OUTSIDE = ("Constant", "Parameter", "Result")


def inputs(path: Path) -> dict[str, Taken]:
    """The inputs of a model by name."""
    return {
        port.get_any_name(): Taken(
            np.dtype(port.get_element_type().to_dtype()), tuple(map(_size, port.partial_shape))
        )
        for port in _model(path).inputs
    }


def _size(dimension: PyTree) -> int | None:
    return int(dimension.get_length()) if dimension.is_static else None


def tensors(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of all ops of the main graph, in their order."""
    model = _model(path)
    # The results of ops that have a Result already are returned.
    ports = [port for op in _ops(model) for port in op.outputs() if _is_read(port)]
    model.add_outputs(ports)
    names = [_name(result.input_value(0)) for result in model.get_results()]
    compiled = openvino.compiled_of(model)
    given = {port.get_any_name() for port in compiled.inputs}
    results = compiled({name: array for name, array in feeds.items() if name in given})
    by_name = dict(zip(names, (results[i] for i in range(len(names))), strict=True))
    order = [_name(port) for op in _ops(model) for port in op.outputs()]
    return {name: by_name[name] for name in order if name in by_name}


def _is_read(port: PyTree) -> bool:
    return all(i.get_node().get_type_name() != "Result" for i in port.get_target_inputs())


def _name(port: PyTree) -> str:
    node = port.get_node()
    several = len(node.outputs()) > 1
    return f"{node.get_friendly_name()}:{port.get_index()}" if several else node.get_friendly_name()


def _ops(model: PyTree) -> list[PyTree]:
    return [op for op in model.get_ordered_ops() if op.get_type_name() not in _OUTSIDE]


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a model has otherwise than one that was written anew, in the order of its ops."""
    return list(_between(_model(path), _model(fresh)))


def _between(model: PyTree, fresh: PyTree) -> Iterator[Difference]:
    ops = {op.get_friendly_name(): op for op in _ops(model)}
    for wanted in _ops(fresh):
        name = wanted.get_friendly_name()
        where = f"{wanted.get_type_name()} {name!r}"
        names = tuple(_name(port) for port in wanted.outputs())
        op = ops.get(name)
        if op is None:
            yield Difference(f"the op {where} is missing", names)
        elif op.get_type_name() != wanted.get_type_name():
            yield Difference(f"the op {where} is {op.get_type_name()}", names)
        else:
            texts = [*_of_attributes(op, wanted), *_of_operands(op, wanted)]
            if texts:
                yield Difference(f"the op {where}: {'; '.join(texts)}", names)


def _of_attributes(op: PyTree, wanted: PyTree) -> Iterator[str]:
    ours, theirs = op.get_attributes(), wanted.get_attributes()
    for name in sorted({*ours, *theirs}):
        if str(ours.get(name)) != str(theirs.get(name)):
            yield f"{name} is {ours.get(name)} for {theirs.get(name)}"


def _of_operands(op: PyTree, wanted: PyTree) -> Iterator[str]:
    for mine, other in zip(op.input_values(), wanted.input_values(), strict=False):
        nodes = mine.get_node(), other.get_node()
        if all(node.get_type_name() == "Constant" for node in nodes):
            x, y = (node.get_data() for node in nodes)
            if x.shape != y.shape or x.tobytes() != y.tobytes():
                yield f"the constant {other.get_node().get_friendly_name()} differs"
        elif _name(mine) != _name(other):
            yield f"reads {_name(mine)} in place of {_name(other)}"


def _model(path: Path) -> PyTree:
    return openvino.read(path)
