"""Loops and branches.

A graph of LiteRT reads only its arguments. So what the graphs of a loop or a branch read of the
graphs around them is an argument too: loops carry it unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax2tf._src.export.tflite.model import Subgraph, Value
from jax2tf._src.export.tflite.registry import writes
from jax2tf._src.export.tflite.writer import Writer
from jax2tf._src.graph.graph import Graph, Node, Tensor


@writes("If")
def _if(w: Writer, node: Node, condition: Value) -> list[Value]:
    graphs: list[Graph] = [node.attributes[part] for part in ("then", "otherwise")]
    writers = [w.inner() for _ in graphs]
    results = [
        inner.write_results(graph, graph.outputs)
        for inner, graph in zip(writers, graphs, strict=True)
    ]
    captured = _captured(writers)
    then, otherwise = (
        Subgraph(w.unique(graph.name), [_argument(inner, x) for x in captured], found, inner.ops)
        for inner, graph, found in zip(writers, graphs, results, strict=True)
    )
    types = [(x.dtype, y.shape) for x, y in zip(results[0], node.outputs, strict=True)]
    operands = [condition, *map(w.value, captured)]
    return w.ops_of("IF", operands, types, thenSubgraphIndex=then, elseSubgraphIndex=otherwise)


def _captured(writers: Iterable[Writer]) -> list[Tensor]:
    """The tensors of graphs around these that one of them reads."""
    return [*dict.fromkeys(tensor for inner in writers for tensor in inner.captured)]


def _argument(inner: Writer, tensor: Tensor) -> Value:
    """The argument of an inner graph that stands for a tensor around it, read or not."""
    return inner.value(tensor)


@writes("While")
def _while(w: Writer, node: Node, *operands: Value) -> list[Value]:
    cond, body = node.attributes["cond"], node.attributes["body"]
    testing, stepping = w.inner(), w.inner()
    arguments = [
        [inner.argument(x, like) for x, like in zip(graph.inputs, operands, strict=True)]
        for inner, graph in ((testing, cond), (stepping, body))
    ]
    for inner, graph, values in zip((testing, stepping), (cond, body), arguments, strict=True):
        inner.take(dict(zip(graph.inputs, values, strict=True)))
    tested = testing.write_results(cond, cond.outputs)
    stepped = stepping.write_results(body, body.outputs)
    captured = _captured((testing, stepping))
    of_cond, of_body = (
        [*values, *(_argument(inner, x) for x in captured)]
        for inner, values in zip((testing, stepping), arguments, strict=True)
    )
    results = [*stepped, *of_body[len(stepped) :]]
    carried = [*operands, *map(w.value, captured)]
    types = [(x.dtype, x.shape) for x in of_body]
    found = w.ops_of(
        "WHILE",
        carried,
        types,
        condSubgraphIndex=Subgraph(w.unique(cond.name), of_cond, tested, testing.ops),
        bodySubgraphIndex=Subgraph(w.unique(body.name), of_body, results, stepping.ops),
    )
    return found[: len(operands)]
