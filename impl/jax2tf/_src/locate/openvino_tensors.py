"""The tensors inside an OpenVINO model: a copy of it in memory returns them all."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from jax2tf._src.export import openvino
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.typing import PyTree

# OpenVINO's own names. Those of jax2tf have the name of a primitive in front.
_COUNTED = re.compile(r"[A-Z][A-Za-z0-9]*_\d+")
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
    known = Names(model)
    # The results of ops that have a Result already are returned.
    ports = [port for op in _ops(model) for port in op.outputs() if _is_read(port)]
    model.add_outputs(ports)
    names = [known.of_port(result.input_value(0)) for result in model.get_results()]
    compiled = openvino.compiled_of(model)
    given = {port.get_any_name() for port in compiled.inputs}
    results = compiled({name: array for name, array in feeds.items() if name in given})
    by_name = dict(zip(names, (results[i] for i in range(len(names))), strict=True))
    order = [known.of_port(port) for op in _ops(model) for port in op.outputs()]
    return {name: by_name[name] for name in order if name in by_name}


def _is_read(port: PyTree) -> bool:
    return all(i.get_node().get_type_name() != "Result" for i in port.get_target_inputs())


class Names:
    """Names of ops: their own, or their kind with a number.

    OpenVINO names an op without a name by its kind and a number that counts all ops of the process;
    an op that takes its place (an Add, that of a Subtract) has the name of the first.
    """

    def __init__(self, model: PyTree) -> None:
        counts: collections.Counter[str] = collections.Counter()
        self._names: dict[str, str] = {}
        for op in model.get_ordered_ops():
            name, kind = op.get_friendly_name(), op.get_type_name()
            if _COUNTED.fullmatch(name):
                counts[kind] += 1
                self._names[name] = f"{kind}#{counts[kind]}"

    def of(self, node: PyTree) -> str:
        """The name of an op."""
        name = node.get_friendly_name()
        return self._names.get(name, name)

    def of_port(self, port: PyTree) -> str:
        """The name of a result: that of its op, with a number if it has several."""
        name = self.of(port.get_node())
        return f"{name}:{port.get_index()}" if len(port.get_node().outputs()) > 1 else name


def _ops(model: PyTree) -> list[PyTree]:
    return [op for op in model.get_ordered_ops() if op.get_type_name() not in _OUTSIDE]


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """None: results of ops are floats in OpenVINO files of jax2tf, whatever their weights are."""
    return {}


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a model has otherwise than one that was written anew, in the order of its ops."""
    return list(_between(_model(path), _model(fresh)))


def _between(model: PyTree, fresh: PyTree) -> Iterator[Difference]:
    names, wanted_names = Names(model), Names(fresh)
    ops = {names.of(op): op for op in _ops(model)}
    for wanted in _ops(fresh):
        name = wanted_names.of(wanted)
        where = f"{wanted.get_type_name()} {name!r}"
        tensors = tuple(wanted_names.of_port(port) for port in wanted.outputs())
        op = ops.get(name)
        if op is None:
            yield Difference(f"the op {where} is missing", tensors)
        elif op.get_type_name() != wanted.get_type_name():
            yield Difference(f"the op {where} is {op.get_type_name()}", tensors)
        else:
            texts = [
                *_of_attributes(op, wanted),
                *_of_operands((op, names), (wanted, wanted_names)),
            ]
            if texts:
                yield Difference(f"the op {where}: {'; '.join(texts)}", tensors)


def _of_attributes(op: PyTree, wanted: PyTree) -> Iterator[str]:
    ours, theirs = op.get_attributes(), wanted.get_attributes()
    for name in sorted({*ours, *theirs}):
        if str(ours.get(name)) != str(theirs.get(name)):
            yield f"{name} is {ours.get(name)} for {theirs.get(name)}"


def _of_operands(ours: tuple[PyTree, Names], theirs: tuple[PyTree, Names]) -> Iterator[str]:
    (op, names), (wanted, wanted_names) = ours, theirs
    for mine, other in zip(op.input_values(), wanted.input_values(), strict=False):
        nodes = mine.get_node(), other.get_node()
        if all(node.get_type_name() == "Constant" for node in nodes):
            x, y = (node.get_data() for node in nodes)
            if x.shape != y.shape or x.tobytes() != y.tobytes():
                yield f"the constant {wanted_names.of(nodes[1])} differs"
        elif names.of_port(mine) != wanted_names.of_port(other):
            yield f"reads {names.of_port(mine)} in place of {wanted_names.of_port(other)}"


def _model(path: Path) -> PyTree:
    return openvino.read(path)
