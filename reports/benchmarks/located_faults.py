"""The faults that `python -m reports located` plants into files."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
      kind: what is planted.
      where: the place, in words.
      tensors: the tensors that it makes others, the nearest first.
      plant: changes a model in place.
    """

    kind: str
    where: str
    tensors: tuple[str, ...]
    plant: Callable[[Any], None]


class Planter(Protocol):
    """What plants faults into files of one format."""

    suffix: str

    def faults(self, path: Path, most: int) -> list[Fault]:
        """Faults for a right file, at most so many of each kind."""

    def write(self, right: Path, fault: Fault, path: Path) -> None:
        """Writes a copy of a right file with a fault."""


class Onnx:
    """Plants faults into ONNX files."""

    suffix = ".onnx"

    def faults(self, path: Path, most: int) -> list[Fault]:
        import onnx

        model = onnx.load(path)
        found: dict[str, list[Fault]] = {}
        for i in range(len(model.graph.node)):
            for fault in _of_node(model, i):
                found.setdefault(fault.kind, []).append(fault)
        return [fault for faults in found.values() for fault in _spread(faults, most)]

    def write(self, right: Path, fault: Fault, path: Path) -> None:
        import onnx

        model = onnx.load(right)
        fault.plant(model)
        onnx.save(model, path)


_EXCHANGED = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Add",
    "Div": "Mul",
    "Tanh": "Sin",
    "Sin": "Cos",
    "Cos": "Sin",
    "Exp": "Sigmoid",
    "Sigmoid": "Tanh",
    "Relu": "Abs",
    "Max": "Min",
    "Min": "Max",
    "Sqrt": "Abs",
    "Gelu": "Relu",
    "ReduceSum": "ReduceMean",
    "ReduceMean": "ReduceSum",
    "MaxPool": "AveragePool",
    "Softmax": "LogSoftmax",
    "LogSoftmax": "Softmax",
}
_DROPPED = ("Tanh", "Sin", "Cos", "Exp", "Sigmoid", "Relu", "Abs", "Sqrt", "Gelu", "Softmax")
_ATTRIBUTES = {"axis": 0, "epsilon": 0.3, "transB": None, "alpha": 0.5}


def _of_node(model: Any, i: int) -> Iterator[Fault]:
    node = model.graph.node[i]
    name, after = node.output[0], tuple(_downstream(model, i))
    where = f"{node.op_type} {node.name}"
    if node.op_type in _EXCHANGED:
        yield Fault("exchanged op", where, after, lambda m: _exchange(m.graph.node[i]))
    if node.op_type in _DROPPED:
        yield Fault("dropped op", where, after, lambda m: _drop(m, i))
    for attribute in node.attribute:
        if _ATTRIBUTES.get(attribute.name) is not None:
            yield Fault("attribute", where, after, lambda m: _change(m.graph.node[i]))
            break
    kinds = {t.name: t for t in model.graph.initializer}
    weights = [x for x in node.input if x in kinds and kinds[x].data_type == 1]
    if weights and not any(x in o.input for x in weights[:1] for o in model.graph.node[:i]):
        yield Fault("constant", where, after, lambda m: _scale(m, weights[0]))
        yield Fault("NaN", where, after, lambda m: _with_nan(m, weights[0]))
    if name not in {o.name for o in model.graph.output} and node.op_type in {
        *_EXCHANGED,
        "MatMul",
        "LayerNormalization",
        "Conv",
        "Gemm",
    }:
        yield Fault("rounding", where, after, lambda m: _round(m, i))


def _downstream(model: Any, i: int) -> Iterator[str]:
    """The result of a node, and those of the nodes that read it, in order."""
    reached = set(model.graph.node[i].output)
    yield from model.graph.node[i].output
    for node in model.graph.node[i + 1 :]:
        if not reached.isdisjoint(node.input):
            reached.update(node.output)
            yield from node.output


def _exchange(node: Any) -> None:
    if node.op_type == "MaxPool":
        del node.output[1:]
    node.op_type = _EXCHANGED[node.op_type]
    if node.op_type == "Relu":
        del node.attribute[:]


def _drop(model: Any, i: int) -> None:
    node = model.graph.node[i]
    before, name = node.input[0], node.output[0]
    outputs = {o.name for o in model.graph.output}
    if name in outputs:
        node.op_type = "Identity"
        del node.attribute[:]
        return
    for other in model.graph.node:
        other.input[:] = [before if x == name else x for x in other.input]
    model.graph.node.remove(node)


def _change(node: Any) -> None:
    for attribute in node.attribute:
        value = _ATTRIBUTES.get(attribute.name)
        if value is not None:
            if attribute.type == 1:
                attribute.f = value
            else:
                attribute.i = int(value)


def _scale(model: Any, name: str) -> None:
    _map(model, name, lambda array: array * np.float32(1.05))


def _with_nan(model: Any, name: str) -> None:
    def plant(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[array.size // 2] = np.nan
        return array

    _map(model, name, plant)


def _map(model: Any, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    import onnx

    tensor = next(t for t in model.graph.initializer if t.name == name)
    array = change(onnx.numpy_helper.to_array(tensor).copy())
    tensor.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float32), name))


def _round(model: Any, i: int) -> None:
    """The result goes through bfloat16's 8 bits: a Cast to it and back."""
    import onnx

    node = model.graph.node[i]
    name, own = node.output[0], f"{node.output[0]}/exact"
    node.output[0] = own
    kinds = onnx.TensorProto
    half = onnx.helper.make_node("Cast", [own], [f"{own}/half"], to=kinds.BFLOAT16)
    back = onnx.helper.make_node("Cast", [f"{own}/half"], [name], to=kinds.FLOAT)
    model.graph.node.insert(i + 1, half)
    model.graph.node.insert(i + 2, back)


class LiteRT:
    """Plants faults into LiteRT files."""

    suffix = ".tflite"

    def faults(self, path: Path, most: int) -> list[Fault]:
        model = _flat(path)
        found: dict[str, list[Fault]] = {}
        for i in range(len(model.subgraphs[0].operators)):
            for fault in _of_operator(model, i):
                found.setdefault(fault.kind, []).append(fault)
        return [fault for faults in found.values() for fault in _spread(faults, most)]

    def write(self, right: Path, fault: Fault, path: Path) -> None:
        import flatbuffers

        model = _flat(right)
        fault.plant(model)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        path.write_bytes(bytes(builder.Output()))


def _flat(path: Path) -> Any:
    from jax2tf._src import compat

    schema = compat.libraries.litert_schema()
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))


# Codes of LiteRT's ops: sums, differences, products, and functions of one operand.
_OPS = {
    "ADD": "MUL",
    "MUL": "ADD",
    "SUB": "ADD",
    "TANH": "RSQRT",
    "SIN": "COS",
    "COS": "SIN",
    "EXP": "SIN",
    "LOGISTIC": "TANH",
    "MAXIMUM": "MINIMUM",
    "MINIMUM": "MAXIMUM",
}


def _of_operator(model: Any, i: int) -> Iterator[Fault]:
    from jax2tf._src.locate import litert_tensors

    graph = model.subgraphs[0]
    op = graph.operators[i]
    kind = litert_tensors._kind(model, op)
    names = litert_tensors.names_of(graph)
    reached: set[int] = set()
    after: list[str] = []
    for other in graph.operators[i:]:
        if other is op or not reached.isdisjoint(int(x) for x in other.inputs):
            reached.update(int(x) for x in other.outputs)
            after += [names[int(x)] for x in other.outputs]
    where = f"{kind} {after[0]}"
    if kind in _OPS:
        yield Fault("exchanged op", where, tuple(after), lambda m: _exchange_operator(m, i))
    read = {int(x) for other in graph.operators[:i] for x in other.inputs}
    for x in op.inputs:
        data = None if x < 0 else model.buffers[graph.tensors[x].buffer].data
        if data is not None and len(data) and graph.tensors[x].type == 0 and int(x) not in read:
            yield Fault(
                "constant", where, tuple(after), functools.partial(_of_data, index=x, factor=1.05)
            )
            yield Fault(
                "NaN", where, tuple(after), functools.partial(_of_data, index=x, factor=np.nan)
            )
            break


def _exchange_operator(model: Any, i: int) -> None:
    from jax2tf._src import compat
    from jax2tf._src.locate import litert_tensors

    schema = compat.libraries.litert_schema()
    op = model.subgraphs[0].operators[i]
    name = _OPS[litert_tensors._kind(model, op)]
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, name)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = 1
    model.operatorCodes.append(code)
    op.opcodeIndex = len(model.operatorCodes) - 1
    op.builtinOptionsType, op.builtinOptions = 0, None


def _of_data(model: Any, index: int, factor: float) -> None:
    buffer = model.buffers[model.subgraphs[0].tensors[index].buffer]
    array = np.frombuffer(np.asarray(buffer.data, np.uint8).tobytes(), np.float32).copy()
    if np.isnan(factor):
        array[array.size // 2] = np.nan
    else:
        array *= np.float32(factor)
    buffer.data = array.view(np.uint8)


class OpenVino:
    """Plants faults into the constants and attributes of OpenVINO models."""

    suffix = ".xml"

    def faults(self, path: Path, most: int) -> list[Fault]:
        import openvino

        from jax2tf._src.locate import openvino_tensors

        model = openvino.Core().read_model(str(path))
        faults = []
        ops, names = openvino_tensors._ops(model), openvino_tensors.Names(model)
        seen = set()
        for i, op in enumerate(ops):
            for value in op.input_values():
                node = value.get_node()
                name = node.get_friendly_name()
                is_weight = node.get_type_name() == "Constant" and node.data.dtype == np.float32
                if is_weight and name not in seen and node.data.size > 1:
                    seen.add(name)
                    after = tuple(_after(ops, i, names.of_port))
                    kind = f"{op.get_type_name()} {op.get_friendly_name()}"
                    place = _place(path, name)
                    plant = functools.partial(_bytes, place=place)
                    faults.append(Fault("constant", kind, after, plant))
        return _spread(faults, most)

    def write(self, right: Path, fault: Fault, path: Path) -> None:
        shutil.copy(right, path)
        data = bytearray(right.with_suffix(".bin").read_bytes())
        fault.plant(data)
        path.with_suffix(".bin").write_bytes(bytes(data))


def _after(ops: list[Any], i: int, name: Callable[[Any], str]) -> Iterator[str]:
    reached: set[str] = set()
    for op in ops[i:]:
        names = [name(port) for port in op.outputs()]
        if op is ops[i] or not reached.isdisjoint(name(v) for v in op.input_values()):
            reached.update(names)
            yield from names


def _place(path: Path, name: str) -> tuple[int, int]:
    """Where the bytes of a constant are in the file beside the model."""
    from xml.etree import ElementTree

    for layer in ElementTree.parse(path).getroot().iter("layer"):
        if layer.get("name") == name:
            data = layer.find("data")
            assert data is not None
            return int(data.get("offset", 0)), int(data.get("size", 0))
    raise KeyError(name)


def _bytes(data: bytearray, place: tuple[int, int]) -> None:
    start, size = place
    array = np.frombuffer(bytes(data[start : start + size]), np.float32) * np.float32(1.05)
    data[start : start + size] = array.astype(np.float32).tobytes()


class TensorFlowJs:
    """Plants faults into models of TensorFlow.js."""

    suffix = ".tfjs"

    def faults(self, path: Path, most: int) -> list[Fault]:
        nodes = _described(path)["modelTopology"]["node"]
        places = dict(_places(path))
        found: dict[str, list[Fault]] = {}
        seen: set[str] = set()
        for i in range(len(nodes)):
            for fault in _of_tfjs_node(nodes, i, places, seen):
                found.setdefault(fault.kind, []).append(fault)
        return [fault for faults in found.values() for fault in _spread(faults, most)]

    def write(self, right: Path, fault: Fault, path: Path) -> None:
        shutil.copytree(right, path)
        described = _described(path)
        ((data,),) = (group["paths"] for group in described["weightsManifest"])
        content = bytearray((path / data).read_bytes())
        fault.plant((described["modelTopology"]["node"], content))
        (path / data).write_bytes(bytes(content))
        (path / "model.json").write_text(json.dumps(described))


def _described(path: Path) -> Any:
    return json.loads((path / "model.json").read_text())


def _places(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Where the bytes of each constant of float32 are among the weights."""
    start = 0
    for weight in _described(path)["weightsManifest"][0]["weights"]:
        size = np.dtype(weight["dtype"]).itemsize * int(np.prod(weight["shape"]))
        if weight["dtype"] == "float32":
            yield weight["name"], (start, size)
        start += size


# The ops of TensorFlow with another one of as many operands.
_TFJS_OPS = {
    **{"AddV2": "Sub", "Sub": "AddV2", "Mul": "AddV2", "RealDiv": "Mul", "BiasAdd": "Mul"},
    **{"Tanh": "Sin", "Sin": "Cos", "Cos": "Sin", "Exp": "Sigmoid", "Sigmoid": "Tanh"},
    **{"Relu": "Abs", "Maximum": "Minimum", "Minimum": "Maximum", "Sqrt": "Abs", "Rsqrt": "Sqrt"},
    **{"Sum": "Mean", "Mean": "Sum", "Square": "Abs", "Abs": "Neg"},
}


def _of_tfjs_node(
    nodes: list[Any], i: int, places: dict[str, tuple[int, int]], seen: set[str]
) -> Iterator[Fault]:
    node = nodes[i]
    after = tuple(_behind(nodes, i))
    where = f"{node['op']} {node['name']}"
    if node["op"] in _TFJS_OPS:
        other = _TFJS_OPS[node["op"]]
        yield Fault("exchanged op", where, after, lambda m: m[0][i].update(op=other))
    if node["op"] in _DROPPED:
        yield Fault("dropped op", where, after, lambda m: m[0][i].update(op="Identity"))
    for name in node.get("input", []):
        if name in places and name not in seen and places[name][1] > 4:
            seen.add(name)
            place = places[name]
            yield Fault("constant", where, after, functools.partial(_changed, _bytes, place))
            yield Fault("NaN", where, after, functools.partial(_changed, _nan, place))
            break


def _changed(
    change: Callable[[bytearray, tuple[int, int]], None], place: tuple[int, int], model: Any
) -> None:
    change(model[1], place)


def _behind(nodes: list[Any], i: int) -> Iterator[str]:
    reached = {nodes[i]["name"]}
    yield nodes[i]["name"]
    for node in nodes[i + 1 :]:
        if not reached.isdisjoint(node.get("input", [])):
            reached.add(node["name"])
            yield node["name"]


def _nan(data: bytearray, place: tuple[int, int]) -> None:
    start, size = place
    middle = start + size // 8 * 4
    data[middle : middle + 4] = np.float32(np.nan).tobytes()


def _spread(faults: list[Fault], most: int) -> list[Fault]:
    """At most so many faults, from all parts of the program."""
    if len(faults) <= most:
        return faults
    return [faults[i * len(faults) // most] for i in range(most)]


PLANTERS: dict[str, Planter] = {
    "onnx": Onnx(),
    "litert": LiteRT(),
    "openvino": OpenVino(),
    "tfjs": TensorFlowJs(),
}
