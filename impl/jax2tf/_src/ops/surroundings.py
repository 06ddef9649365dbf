"""The graph under construction, and what is around it: TensorFlow's, or a graph of our own.

The lowering asks these questions here, because TensorFlow answers them by its private names. No
function is around a graph of our own, XLA does not compile it, and its ops have no effects.
"""

from __future__ import annotations

import contextlib

from jax2tf._src import compat
from jax2tf._src.graph.make import is_making, scoped_in
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.ops import writing
from jax2tf._src.util.tensors import Graph, Operation
from jax2tf._src.util.typing import PyTree


def in_compiled_function() -> bool:
    """Whether XLA compiles the function whose graph is under construction."""
    return not is_making() and compat.functions.in_compiled_function()


def has_functions() -> bool:
    """Whether a graph calls functions; each call of one becomes a part of ours."""
    return not is_making()


def calls_python() -> bool:
    """Whether an op can call a function of Python; no op of ours does."""
    return not is_making()


def writes_functions() -> bool:
    """Whether functions are written into the graph without TensorFlow's Python."""
    return writing.writes() and writing.is_writable()


def named_in(graph: Graph, scope: str) -> contextlib.AbstractContextManager[None]:
    """A context for ops of a graph under construction, whose names begin with this scope."""
    return scoped_in(graph, scope) if is_making() else compat.graphs.name_scope(graph, scope)


def called_from_here() -> contextlib.AbstractContextManager[None]:
    """A context whose ops are all said to be made at this line; ours do not say it."""
    return contextlib.nullcontext() if is_making() else writing.called_from_here()


def without_order_of_effects(graph: Graph) -> contextlib.AbstractContextManager[None]:
    """A context for ops without effects, which TensorFlow need not put in order."""
    if is_making():
        return contextlib.nullcontext()
    return compat.graphs.without_order_of_effects(graph)


def operations_of(graph: Graph) -> list[Operation]:
    """The ops of a graph so far."""
    if not is_making():
        return list(graph.get_operations())
    results = [node.outputs[0] for node in graph.nodes if node.outputs]
    operations: list[PyTree] = [Symbol(x, graph).op for x in (*graph.inputs, *results)]
    return operations
