"""The graph of a harness made in two ways: through TensorFlow's graph, and by ours alone."""

from __future__ import annotations

import collections
from typing import Any

import jax
from jax import export

from jax2tf._src.api import own_graphs
from jax2tf._src.graph.graph import Graph
from jax2tf._src.graph.simplifying import simplify
from jax2tf._src.util import dtypes
from tests.impl.graph.harness_graphs import OPEN, Traced, nodes_of


def ours(traced: Traced, target: str, *, folds: bool = True) -> Graph:
    """The graph that is made without TensorFlow."""
    conversion = own_graphs.conversion_of(
        traced.harness.fun, target=target, polymorphic_shapes=traced.polymorphic_shapes
    )
    scope = export.SymbolicScope()
    specs = [
        jax.ShapeDtypeStruct(
            export.symbolic_shape(", ".join(map(str, traced.shape(x, OPEN))), scope=scope),
            dtypes.jax_dtype(x),
        )
        for x in traced.arrays
    ]
    args = jax.tree.unflatten(traced.tree, specs)
    trace, _ = conversion.trace(tuple(args), {}, own_graphs.described)
    return own_graphs.graph_of(conversion, trace, [f"x{i}" for i in range(len(specs))], folds=folds)


def ops_of(graph: Graph) -> collections.Counter[str]:
    """The ops of a graph that compute, with their attributes, and how many there are of each."""
    simplify(graph)
    return collections.Counter(
        f"{node.op} {_attributes(node.attributes)}"
        for node in nodes_of(graph)
        if node.op not in ("Const", "Identity")
    )


def _attributes(attributes: Any) -> str:
    kept = {k: v for k, v in attributes.items() if not k.startswith("_")}
    return str(sorted((k, str(v)) for k, v in kept.items() if not isinstance(v, Graph)))
