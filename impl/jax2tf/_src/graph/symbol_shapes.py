"""Shapes of our graphs as rules see them: sizes with names are unknown; see util/tensors.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jax2tf._src.graph.shapes.registry import Shape
from jax2tf._src.util.typing import PyTree


class SymbolShape:
    """The shape of a tensor, as far as it is known in numbers."""

    def __init__(self, sizes: Shape) -> None:
        self._sizes = None if sizes is None else [s if isinstance(s, int) else None for s in sizes]

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None if it is unknown."""
        return None if self._sizes is None else len(self._sizes)

    def as_list(self) -> list[int | None]:
        """The sizes, with None for each unknown one."""
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown rank")
        return list(self._sizes)

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self._sizes is not None and None not in self._sizes

    def num_elements(self) -> int | None:
        """The number of elements; None if it is unknown."""
        known = [size for size in self._sizes or () if size is not None]
        return math.prod(known) if self.is_fully_defined() else None

    def __getitem__(self, place: PyTree) -> PyTree:
        part = self.as_list()[place]
        return SymbolShape(tuple(part)) if isinstance(part, list) else part

    def __len__(self) -> int:
        return len(self.as_list())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.as_list())

    def __eq__(self, other: object) -> bool:
        sizes = other._sizes if isinstance(other, SymbolShape) else other
        return self._sizes == (list(sizes) if isinstance(sizes, list | tuple) else sizes)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SymbolShape({self._sizes})"

    def __str__(self) -> str:
        return "<unknown>" if self._sizes is None else str(tuple(self._sizes))
