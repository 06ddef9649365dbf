"""The effects of a graph: whether it has state, and which variables it writes to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jax2tf._src import compat
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf


def nodes(concrete: tf.types.experimental.ConcreteFunction) -> Iterator[tf.Operation]:
    """The nodes of a graph and of the functions that it calls."""
    graph = concrete.graph.as_graph_def()
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


# TensorFlow marks these ops as stateful, but they write nothing.
_READS = frozenset(
    {
        *("Placeholder", "ReadVariableOp", "VarHandleOp", "VarIsInitializedOp", "VariableShape"),
        *("ResourceGather", "ResourceGatherNd", "StatefulPartitionedCall", "PartitionedCall"),
        *("While", "If", "Case"),
    }
)


def is_stateful(nodes: Sequence[tf.Operation]) -> bool:
    """Whether one of the nodes has a side effect, or draws random numbers."""
    return any(node.op not in _READS and compat.graphs.is_stateful_op(node.op) for node in nodes)


_WRITE = re.compile(
    "Assign(Add|Sub)?VariableOp|Resource(Sparse)?Apply|Resource(Scatter|StridedSliceAssign)"
)


def written(
    concrete: tf.types.experimental.ConcreteFunction, nodes: Sequence[tf.Operation]
) -> list[tf.Variable | str]:
    """The variables that the graph writes to; for an op in a called function, the op's name."""
    variables = {Identity(v.handle): v for v in concrete.variables}
    captured = concrete.captured_inputs
    inner = concrete.inputs[len(concrete.inputs) - len(captured) :]
    captures = {i.name: variables.get(Identity(o)) for o, i in zip(captured, inner, strict=True)}
    written = (
        (captures.get(f"{node.input[0]}:0"), f"op '{node.name}' ({node.op})")
        for node in nodes
        if _WRITE.match(node.op)
    )
    return [op if variable is None else variable for variable, op in written]
