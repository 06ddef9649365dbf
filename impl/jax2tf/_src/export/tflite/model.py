"""What a LiteRT file holds: values, ops and graphs of these."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jax2tf._src.graph.graph import Size
from jax2tf._src.util.typing import PyTree

Shape = tuple[Size, ...] | None


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor of a LiteRT graph.

    Attributes:
      name: its name.
      dtype: NumPy's, or that of ml_dtypes.
      shape: the sizes; names and None stand for open ones. None if their number is unknown.
      array: the numbers of a constant.
      op: the op that makes it; None for a constant or an argument.
    """

    name: str
    dtype: np.dtype
    shape: Shape
    array: np.ndarray | None = None
    op: Op | None = None


@dataclasses.dataclass(eq=False)
class Op:
    """One use of a builtin op.

    Attributes:
      code: its name in the schema, such as "FULLY_CONNECTED".
      operands: None stands for an operand that is left out.
      results: at least one.
      options: the options of the schema by name; graphs stand for their indices.
    """

    code: str
    operands: list[Value | None]
    results: list[Value]
    options: dict[str, PyTree] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Subgraph:
    """A graph of the file: a signature, or a part of a loop or of a branch."""

    name: str
    inputs: list[Value]
    outputs: list[Value]
    ops: list[Op]


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of the file, with the names of its inputs and outputs."""

    name: str
    graph: Subgraph
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Model:
    """The signatures of a file, and its metadata by name."""

    signatures: Sequence[Signature]
    metadata: Mapping[str, bytes] = dataclasses.field(default_factory=dict)


def graphs_of(op: Op) -> list[Subgraph]:
    """The graphs that an op runs."""
    return [value for value in op.options.values() if isinstance(value, Subgraph)]


def graphs_in(graph: Subgraph) -> Iterator[Subgraph]:
    """The graph and all graphs within it."""
    yield graph
    for op in graph.ops:
        for inner in graphs_of(op):
            yield from graphs_in(inner)


def count_ops(model: Model) -> int:
    """The number of ops in all graphs."""
    return sum(len(g.ops) for s in model.signatures for g in graphs_in(s.graph))
