"""The tensors inside a model of TensorFlow.js, which returns the results of any of its nodes."""

from __future__ import annotations

import collections
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from jax2tf._src.export import tfjs
from jax2tf._src.locate.differences import Difference
from jax2tf._src.locate.inputs import Taken
from jax2tf._src.util.typing import PyTree

# What makes no number, what only names one, and lists of arrays.
_OUTSIDE = ("Placeholder", "NoOp", "Const", "Identity", "Assert", "Switch", "Enter", "Exit")
_LISTS = "TensorList"
# The nodes between which the body of a loop, or a branch, is written.
_OPENING, _CLOSING = ("Enter", "Switch"), ("Exit", "Merge")
_BACK = "NextIteration"
_DTYPES = {
    "DT_FLOAT": "float32",
    "DT_INT32": "int32",
    "DT_BOOL": "bool",
    "DT_COMPLEX64": "complex64",
}
# Weights are stored in these; a weight with fewer bits has another one.
_SIZES = {
    "float32": 4,
    "int32": 4,
    "bool": 1,
    "complex64": 8,
    "float16": 2,
    "uint16": 2,
    "uint8": 1,
}


def inputs(path: Path) -> dict[str, Taken]:
    """The inputs of a model by name."""
    given = _described(path)["signature"].get("inputs", {})
    return {name: Taken(np.dtype(_DTYPES[x["dtype"]]), _shape(x)) for name, x in given.items()}


def _shape(tensor: Mapping[str, PyTree]) -> tuple[int | None, ...]:
    sizes = (int(dim["size"]) for dim in tensor["tensorShape"].get("dim", []))
    return tuple(None if size < 0 else size for size in sizes)


def _described(path: Path) -> dict[str, PyTree]:
    """The contents of model.json."""
    described: dict[str, PyTree] = json.loads((path / "model.json").read_text(encoding="utf-8"))
    return described


def ends(path: Path) -> dict[str, tuple[float, float]]:
    """None: TensorFlow.js makes floats of weights with fewer bits before it computes."""
    return {}


def tensors(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of all nodes outside of loops and branches, in their order."""
    return outputs_and_tensors(path, feeds, ())[1]


def outputs_and_tensors(
    path: Path, feeds: Mapping[str, np.ndarray], outputs: Sequence[str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The outputs, and the results of all nodes outside of loops and branches, of one run."""
    # A node that has the name of an output cannot be asked for.
    names = [name for name in _Graph(path).results() if name not in outputs]
    found = tfjs.run(path, feeds, [*outputs, *names])
    return {name: found[name] for name in outputs}, {name: found[name] for name in names}


class _Graph:
    """The nodes of a model.

    Attributes:
      nodes: the nodes by name, in an order in which each stands behind those that it reads, except
        at the end of a loop's body.
      readers: the names of the nodes that read a node.
    """

    def __init__(self, path: Path) -> None:
        described = _described(path)
        nodes = described["modelTopology"]["node"]
        self.nodes: dict[str, Mapping[str, PyTree]] = {node["name"]: node for node in nodes}
        self.readers: dict[str, list[str]] = collections.defaultdict(list)
        for node in nodes:
            for name in map(_node_of, node.get("input", [])):
                self.readers[name].append(node["name"])
        self._weights = dict(_weights(path, described["weightsManifest"]))
        self._depths = self._found_depths()

    def constant(self, name: str) -> tuple[PyTree, bytes] | None:
        """Shape, dtype and bytes of a constant; None if a node makes the value."""
        return self._weights.get(name)

    def results(self) -> Iterator[str]:
        """The names of the results of nodes that can be asked for."""
        counts = self._counts()
        for name, node in self.nodes.items():
            is_array = node["op"] not in _OUTSIDE and not node["op"].startswith(_LISTS)
            if (is_array or self._is_array_of_loop(node)) and not self._depths[name]:
                yield from (f"{name}:{i}" if i else name for i in range(counts[name] + 1))

    def _is_array_of_loop(self, node: Mapping[str, PyTree]) -> bool:
        """Whether a node is the result of a loop, and no list."""
        readers = [self.nodes[reader]["op"] for reader in self.readers[node["name"]]]
        return node["op"] == "Exit" and not any(op.startswith(_LISTS) for op in readers)

    def _counts(self) -> dict[str, int]:
        """The largest number of a result of each node that others read."""
        counts: dict[str, int] = collections.defaultdict(int)
        for node in self.nodes.values():
            for text in node.get("input", []):
                name, _, number = text.partition(":")
                counts[name] = max(counts[name], int(number or 0))
        return counts

    def _found_depths(self) -> dict[str, int]:
        """In how many loops and branches each node stands."""
        depths: dict[str, int] = {}
        for name in self._ordered():
            node = self.nodes[name]
            before = (depths.get(_node_of(text), 0) for text in node.get("input", []))
            depth = max(before, default=0)
            depths[name] = max(0, depth + _steps(node["op"], self._is_of_loop(node)))
        return depths

    def _is_of_loop(self, node: Mapping[str, PyTree]) -> bool:
        """Whether a Switch or Merge belongs to a loop, which Enter and Exit bound."""
        operands = [self.nodes[_node_of(text)]["op"] for text in node.get("input", [])]
        return _BACK in operands or "LoopCond" in operands

    def _ordered(self) -> Iterator[str]:
        """The names of all nodes, each behind those that it reads."""
        waiting = {
            name: len([t for t in node.get("input", []) if not self._is_back(t)])
            for name, node in self.nodes.items()
        }
        ready = collections.deque(name for name, count in waiting.items() if count == 0)
        while ready:
            name = ready.popleft()
            yield name
            if self.nodes[name]["op"] == _BACK:
                continue
            for reader in self.readers[name]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    ready.append(reader)

    def _is_back(self, text: str) -> bool:
        return bool(self.nodes[_node_of(text)]["op"] == _BACK)

    def outside(self, name: str) -> tuple[str, ...]:
        """The node, and the nearest ones behind it outside of its loop or branch."""
        found, seen, waiting = [name], {name}, collections.deque([name])
        while waiting:
            each = waiting.popleft()
            if self._depths[each] == 0:
                found.append(each)
                continue
            for reader in self.readers[each]:
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
        return tuple(dict.fromkeys(found))


def _steps(op: str, is_of_loop: bool) -> int:
    """By how much the depth of a node is another one than that of its operands."""
    if op in ("Switch", "Merge") and is_of_loop:
        return 0
    return (op in _OPENING) - (op in _CLOSING)


def _node_of(text: str) -> str:
    """The node of an operand, which `name:1` and `^name` are, too."""
    return text.removeprefix("^").partition(":")[0]


def _weights(
    path: Path, manifest: Sequence[Mapping[str, PyTree]]
) -> Iterator[tuple[str, tuple[PyTree, bytes]]]:
    """Each weight with its shape and dtype, and its bytes."""
    for group in manifest:
        data = b"".join((path / name).read_bytes() for name in group["paths"])
        start = 0
        for weight in group["weights"]:
            stored = weight.get("quantization", weight)["dtype"]
            end = start + _SIZES[stored] * math.prod(weight["shape"])
            about = {key: value for key, value in weight.items() if key != "name"}
            yield weight["name"], (about, data[start:end])
            start = end


def differences(path: Path, fresh: Path) -> list[Difference]:
    """What a model has otherwise than one that was written anew, in the order of its nodes."""
    return list(_between(_Graph(path), _Graph(fresh)))


def _between(graph: _Graph, fresh: _Graph) -> Iterator[Difference]:
    for name, wanted in fresh.nodes.items():
        if wanted["op"] == "Const":
            # A constant is told with the nodes that read it.
            continue
        where, node = f"{wanted['op']} {name!r}", graph.nodes.get(name)
        if node is None:
            text = f"the node {where} is missing"
        elif node["op"] != wanted["op"]:
            text = f"the node {where} is {node['op']}"
        else:
            texts = list(_of_nodes((graph, node), (fresh, wanted)))
            text = f"the node {where}: {'; '.join(texts)}" if texts else ""
        if text:
            yield Difference(text, fresh.outside(name))


def _of_nodes(
    ours: tuple[_Graph, Mapping[str, PyTree]], theirs: tuple[_Graph, Mapping[str, PyTree]]
) -> Iterator[str]:
    (graph, node), (fresh, wanted) = ours, theirs
    mine, others = node.get("input", []), wanted.get("input", [])
    if mine != others:
        yield f"reads {', '.join(mine)} in place of {', '.join(others)}"
    yield from _of_attributes(node.get("attr", {}), wanted.get("attr", {}))
    for name in dict.fromkeys(map(_node_of, others)):
        x, y = graph.constant(name), fresh.constant(name)
        if y is not None and x is not None and x != y:
            yield f"the constant {name} differs"


def _of_attributes(ours: Mapping[str, PyTree], theirs: Mapping[str, PyTree]) -> Iterator[str]:
    # Names that begin so are notes of TensorFlow's optimiser.
    names: Iterable[str] = (n for n in sorted({*ours, *theirs}) if not n.startswith("_"))
    for name in names:
        if ours.get(name) != theirs.get(name):
            yield f"the attribute {name} differs"
