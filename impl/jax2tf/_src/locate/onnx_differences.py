"""What one ONNX model has otherwise than another one of the same program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import onnx

from jax2tf._src.locate.differences import OPEN, Difference


def between(model: onnx.ModelProto, fresh: onnx.ModelProto) -> list[Difference]:
    """The differences of a model to one that was written anew, in the order of its nodes."""
    rename(model.graph, names_in(model, fresh))
    return list(_of_graphs(model.graph, fresh.graph))


def names_in(model: onnx.ModelProto, fresh: onnx.ModelProto) -> dict[str, str]:
    """The names in the fresh model of tensors that have other ones; empty if ops differ, too.

    A program with another number of equal parts has the same ops under other numbers.
    """
    ours, theirs = list(model.graph.node), list(fresh.graph.node)
    if [n.op_type for n in ours] != [n.op_type for n in theirs] or _made(ours) == _made(theirs):
        return {}
    names: dict[str, str] = {}
    for mine, other in zip(ours, theirs, strict=True):
        for given, wanted in ((mine.output, other.output), (mine.input, other.input)):
            if len(given) == len(wanted):
                for name, as_wanted in zip(given, wanted, strict=True):
                    names.setdefault(name, as_wanted)
    # Two tensors of the model are not one.
    return names if len(set(names.values())) == len(names) else {}


def _made(nodes: list[onnx.NodeProto]) -> set[str]:
    return set(chain.from_iterable(node.output for node in nodes))


def rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Gives the tensors of a graph other names, in place."""
    if not names:
        return
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)


def _of_graphs(graph: onnx.GraphProto, fresh: onnx.GraphProto) -> Iterator[Difference]:
    changed = _changed(graph, fresh)
    nodes = {name: node for node in graph.node for name in node.output if name}
    for wanted in fresh.node:
        names = tuple(name for name in wanted.output if name)
        node = next((nodes[name] for name in names if name in nodes), None)
        text = _of_nodes(node, wanted, changed)
        if text:
            yield Difference(text, names)


def _changed(graph: onnx.GraphProto, fresh: onnx.GraphProto) -> dict[str, str]:
    """The initialisers that differ, with a text of how."""
    before = {tensor.name: tensor for tensor in fresh.initializer}
    return {
        tensor.name: _of_tensors(tensor, before[tensor.name])
        for tensor in graph.initializer
        if tensor.name in before
        and tensor.SerializeToString() != before[tensor.name].SerializeToString()
    }


def _of_tensors(tensor: onnx.TensorProto, fresh: onnx.TensorProto) -> str:
    if (tensor.data_type, list(tensor.dims)) != (fresh.data_type, list(fresh.dims)):
        return "has another shape or dtype"
    if onnx.TensorProto.EXTERNAL in (tensor.data_location, fresh.data_location):
        return ""
    x, y = map(onnx.numpy_helper.to_array, (tensor, fresh))
    off = np.argwhere(np.asarray((x != y) & ~((x != x) & (y != y))))
    if not len(off):
        return ""
    at = tuple(int(i) for i in off[0])
    text = f"differs in {len(off)} of {x.size} elements{_line(off, x.shape)}, "
    text += f"{list(at)} is {x[at]} for {y[at]}"
    return f"{text} {OPEN}" if _are_open(x[x != y], y[x != y]) else text


def _are_open(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether sizes differ only where one side leaves them open."""
    return x.dtype == np.int64 and bool(np.all((x == -1) | (y == -1)))


def _line(off: np.ndarray, shape: tuple[int, ...]) -> str:
    """Where the elements are, if all differ that have one index; empty otherwise."""
    for axis, size in enumerate(shape):
        indices = np.unique(off[:, axis])
        if len(indices) == 1 < size and len(off) == np.prod(shape) // size > 1:
            kind = ("row", "column")[axis] if len(shape) == 2 else f"index of axis {axis}"
            return f" (all of {kind} {indices[0]})"
    return ""


def _of_nodes(
    node: onnx.NodeProto | None, fresh: onnx.NodeProto, changed: Mapping[str, str]
) -> str:
    where = f"{fresh.op_type} {fresh.name!r}"
    if node is None:
        return f"the node {where} is missing"
    if node.op_type != fresh.op_type:
        return f"the node {where} is {node.op_type}"
    if list(node.input) != list(fresh.input):
        return (
            f"the node {where} reads {', '.join(node.input)} in place of {', '.join(fresh.input)}"
        )
    texts = [f"{name} {changed[name]}" for name in node.input if changed.get(name)]
    texts += _of_attributes(node, fresh)
    return f"the node {where}: {'; '.join(texts)}" if texts else ""


def _of_attributes(node: onnx.NodeProto, fresh: onnx.NodeProto) -> list[str]:
    ours, theirs = ({a.name: a for a in n.attribute} for n in (node, fresh))
    found = []
    for name in sorted({*ours, *theirs}):
        mine, other = ours.get(name), theirs.get(name)
        if mine is not None and other is not None and mine.type == onnx.AttributeProto.GRAPH:
            inner = [d.text for d in _of_graphs(mine.g, other.g)]
            found += [f"within {name}, {text}" for text in inner[:1]]
        elif _value(mine) != _value(other):
            found.append(f"{name} is {_value(mine)} for {_value(other)}")
    return found


def _value(attribute: onnx.AttributeProto | None) -> str:
    if attribute is None:
        return "not given"
    value = onnx.helper.get_attribute_value(attribute)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text[:80]
