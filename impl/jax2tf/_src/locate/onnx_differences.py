"""What one ONNX model has otherwise than another one of the same program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx

from jax2tf._src.locate.differences import Difference


def between(model: onnx.ModelProto, fresh: onnx.ModelProto) -> list[Difference]:
    """The differences of a model to one that was written anew, in the order of its nodes."""
    return list(_of_graphs(model.graph, fresh.graph))


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
    return f"differs in {len(off)} of {x.size} elements, {list(at)} is {x[at]} for {y[at]}"


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
