"""Copies what a step of a loop moves from the place of one argument to that of another.

LiteRT writes the results of a step one after the other into the places of the arguments: an
argument that moves may be overwritten before it is read.
"""

from __future__ import annotations

import numpy as np

from jax2tf._src.export.tflite.model import Op, Subgraph, Value


def copy_moved(graph: Subgraph) -> None:
    """Copies them in the bodies of the loops of a graph, in place. It has to be the last pass."""
    for op in graph.ops:
        if op.code == "WHILE":
            body: Subgraph = op.options["bodySubgraphIndex"]
            body.outputs = [
                _copied(body, x, i) if _is_moved(body, x, i) else x
                for i, x in enumerate(body.outputs)
            ]


def _is_moved(body: Subgraph, x: Value, place: int) -> bool:
    return x in body.inputs and body.inputs[place] is not x


def _copied(body: Subgraph, x: Value, place: int) -> Value:
    code = "LOGICAL_OR" if x.dtype == np.bool_ else "MAXIMUM"
    op = Op(code, [x, x], [])
    op.results = [Value(f"{x.name}/moved_to_{place}", x.dtype, x.shape, None, op)]
    body.ops.append(op)
    return op.results[0]
