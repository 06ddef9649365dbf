"""The shapes of loops and branches, which hold their graphs.

A size that differs between branches, or between the argument and the result of a loop's body, is
unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jax2tf._src.graph.graph import Graph
from jax2tf._src.graph.shapes.registry import Shape


def shapes_of_branches(branches: Sequence[Graph]) -> list[Shape]:
    """The shapes of the results, which each of the graphs may give."""
    by_result = zip(*([x.shape for x in branch.outputs] for branch in branches), strict=True)
    return [functools.reduce(joined, shapes) for shapes in by_result]


def joined(a: Shape, b: Shape) -> Shape:
    """What is known of a shape that is one of two."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
