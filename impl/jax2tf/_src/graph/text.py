"""The text of a graph: one line a node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jax2tf._src.graph.graph import Graph, Node, Tensor
from jax2tf._src.graph.shapes import typed
from jax2tf._src.graph.signatures import known_ops, signature_of
from jax2tf._src.util.typing import PyTree

# Larger arrays are not written out.
_MOST = 16


def text_of(graph: Graph) -> str:
    """The graph as text, with the graphs of loops and branches; see `make` for an example.

    A line is `name = Op(operands) {attributes} : dtype[shape]`. Attributes that follow from the
    operands, and defaults, are left out.
    """
    return "\n".join(_lines(graph, f"graph {graph.name}", ""))


def _lines(graph: Graph, title: str, indent: str) -> Iterator[str]:
    arguments = ", ".join(f"{_name(x)} : {typed(x)}" for x in graph.inputs)
    yield f"{indent}{title}({arguments})"
    for node in graph.nodes:
        yield f"{indent}  {_line(node)}"
        for name, value in node.attributes.items():
            if isinstance(value, Graph):
                yield from _lines(value, name, f"{indent}    ")
    yield f"{indent}  return {', '.join(map(_name, graph.outputs))}".rstrip()


def _line(node: Node) -> str:
    operands = ", ".join(map(_name, node.inputs))
    stated = ", ".join(f"{name}: {_value(value)}" for name, value in _stated(node))
    types = ", ".join(map(typed, node.outputs)) or "nothing"
    return f"{node.name} = {node.op}({operands}) {f'{{{stated}}} ' if stated else ''}: {types}"


def _stated(node: Node) -> Iterator[tuple[str, PyTree]]:
    """The attributes that say something."""
    if node.op == "Const":
        yield "value", node.attributes["value"]
        return
    signature = signature_of(node.op) if node.op in known_ops() else None
    for name, value in node.attributes.items():
        known = None if signature is None else signature.attributes.get(name)
        follows = signature is not None and name in signature.of_operands
        is_default = known is not None and known.has_default and known.default == value
        if not (isinstance(value, Graph) or follows or is_default):
            yield name, value


def _value(value: PyTree) -> str:
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= _MOST else "..."
    return str(value)


def _name(x: Tensor) -> str:
    return x.name.removesuffix(":0")
