"""Finds ops of the graph that are one op of LiteRT: gelu and hard swish."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in
from jax2tf._src.graph.pruning import prune


def with_idioms(graph: Graph) -> None:
    """Writes idioms as nodes "Gelu" and "HardSwish" of one operand, in inner graphs too."""
    _replace(graph)
    prune(graph)


def _replace(graph: Graph) -> None:
    for node in graph.nodes:
        for inner in graphs_in(node):
            _replace(inner)
        if node.op == "Mul" and node.outputs[0].dtype == np.float32:
            for find, op, attributes in _IDIOMS:
                x = find(node)
                if x is not None:
                    node.op, node.inputs, node.attributes = op, [x], attributes
                    break


def _gelu(node: Node) -> Tensor | None:
    """x/2 * erfc(-x * sqrt(1/2))."""
    for half, tail in _both_ways(node):
        x = _times(half, 0.5)
        erfc = _made_by(tail, "Erfc")
        scaled = _times(erfc.inputs[0], math.sqrt(0.5)) if erfc else None
        negative = _made_by(scaled, "Neg")
        if x is not None and negative and negative.inputs[0] is x:
            return x
        if x is not None and erfc and _times(erfc.inputs[0], -math.sqrt(0.5)) is x:
            return x
    return None


def _gelu_by_tanh(node: Node) -> Tensor | None:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))."""
    for half, curve in _both_ways(node):
        x = _times(half, 0.5)
        tanh = _made_by(_plus(curve, 1.0), "Tanh")
        inner = _made_by(_times(tanh.inputs[0], math.sqrt(2 / math.pi)), "AddV2") if tanh else None
        if x is None or inner is None:
            continue
        for one, cubes in _both_ways(inner):
            power = _made_by(_times(cubes, 0.044715), "Pow")
            if one is x and power and power.inputs[0] is x and _is(power.inputs[1], 3.0):
                return x
    return None


def _hard_swish(node: Node) -> Tensor | None:
    """x * (relu6(x + 3) / 6)."""
    for x, share in _both_ways(node):
        quotient = _made_by(share, "RealDiv")
        if quotient and _is(quotient.inputs[1], 6.0):
            relu = _made_by(quotient.inputs[0], "Relu6")
            if relu and _plus(relu.inputs[0], 3.0) is x:
                return x
    return None


_Idiom = tuple[Callable[[Node], Tensor | None], str, dict[str, bool]]
_IDIOMS: tuple[_Idiom, ...] = (
    (_gelu, "Gelu", {"approximate": False}),
    (_gelu_by_tanh, "Gelu", {"approximate": True}),
    (_hard_swish, "HardSwish", {}),
)


def _both_ways(node: Node) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    one, other = node.inputs
    return (one, other), (other, one)


def _made_by(x: Tensor | None, op: str) -> Node | None:
    node = None if x is None else x.node
    return node if node is not None and node.op == op else None


def _is(x: Tensor, number: float) -> bool:
    array = x.value
    return array is not None and bool(array.size) and bool(np.allclose(array, number, 1e-6, 0))


def _with_number(x: Tensor | None, op: str, number: float) -> Tensor | None:
    node = _made_by(x, op)
    if node is not None:
        for one, other in _both_ways(node):
            if _is(other, number):
                return one
    return None


def _times(x: Tensor | None, number: float) -> Tensor | None:
    """`y` if x is y * number."""
    return _with_number(x, "Mul", number)


def _plus(x: Tensor | None, number: float) -> Tensor | None:
    """`y` if x is y + number."""
    return _with_number(x, "AddV2", number)
