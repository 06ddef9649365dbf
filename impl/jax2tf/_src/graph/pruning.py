"""Removes what no result needs: nodes, and carried values of loops."""

from __future__ import annotations

from collections.abc import Iterable

from jax2tf._src.graph.graph import Graph, Node, Tensor, graphs_in


def prune(graph: Graph) -> None:
    """Removes nodes and carried values that no result of a graph needs; inlined graphs only."""
    live = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if live.isdisjoint(node.outputs):
            continue
        if node.op == "While":
            _keep(node, _needed(node, live))
            used = frozenset(i for i, x in enumerate(node.outputs) if x in live)
            node.attributes = {**node.attributes, "used": used}
        elif node.op == "If":
            _keep_results(node, [i for i, x in enumerate(node.outputs) if x in live])
        kept.append(node)
        for inner in graphs_in(node):
            prune(inner)
        live |= _reads(node)
    graph.nodes = kept[::-1]


def _reads(node: Node) -> set[Tensor]:
    """The tensors that a node reads, those of graphs around it too."""
    return set(node.inputs).union(*(free(inner) for inner in graphs_in(node)))


def free(graph: Graph) -> set[Tensor]:
    """The tensors of other graphs that a graph reads."""
    made = set(graph.inputs).union(*(node.outputs for node in graph.nodes))
    read = set(graph.outputs).union(*map(_reads, graph.nodes))
    return read - made


def _needed(loop: Node, live: set[Tensor]) -> list[int]:
    """The positions of the carried values that the condition or a live result needs."""
    cond, body = loop.attributes["cond"], loop.attributes["body"]
    needed = {i for i, x in enumerate(loop.outputs) if x in live}
    needed |= _arguments(cond, cond.outputs)
    while True:
        more = needed | _arguments(body, (body.outputs[i] for i in needed))
        if more == needed:
            return sorted(needed)
        needed = more


def _arguments(graph: Graph, results: Iterable[Tensor]) -> set[int]:
    """The positions of the arguments that some results of a graph need."""
    live = live_in(graph, results)
    return {i for i, x in enumerate(graph.inputs) if x in live}


def live_in(graph: Graph, results: Iterable[Tensor]) -> set[Tensor]:
    """All tensors that some results of a graph need."""
    live = set(results)
    for node in reversed(graph.nodes):
        if live.isdisjoint(node.outputs):
            continue
        if node.op != "While":
            live |= _reads(node)
            continue
        needed = _needed(node, live)
        live.update(node.inputs[i] for i in needed)
        cond, body = node.attributes["cond"], node.attributes["body"]
        live |= live_in(cond, cond.outputs)
        live |= live_in(body, [body.outputs[i] for i in needed])
    return live


def _keep(loop: Node, carried: list[int]) -> None:
    loop.inputs = [loop.inputs[i] for i in carried]
    for part in graphs_in(loop):
        part.inputs = [part.inputs[i] for i in carried]
    _renumber(loop.attributes["cond"].inputs)
    body = loop.attributes["body"]
    body.outputs = [body.outputs[i] for i in carried]
    _renumber(body.inputs)
    loop.outputs = [loop.outputs[i] for i in carried]
    _renumber(loop.outputs)


def _keep_results(node: Node, positions: list[int]) -> None:
    for branch in graphs_in(node):
        branch.outputs = [branch.outputs[i] for i in positions]
    node.outputs = [node.outputs[i] for i in positions]
    _renumber(node.outputs)


def _renumber(tensors: list[Tensor]) -> None:
    for i, tensor in enumerate(tensors):
        tensor.index = i
