"""The table of shape functions, and what they ask of the use of an op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Size, Tensor
from jax2tf._src.util import registering
from jax2tf._src.util.typing import PyTree

Sizes: TypeAlias = tuple[Size, ...]
# The shape of a tensor; None if its rank is unknown.
Shape: TypeAlias = Sizes | None
# Gives the shape of the result, or a list of shapes if there are several results.
Infer: TypeAlias = Callable[["Use"], "Shape | list[Shape]"]
F = TypeVar("F", bound=Callable[..., "Shape | list[Shape]"])

TABLE: dict[str, Infer] = {}


def gives(*ops: str) -> Callable[[F], F]:
    """A decorator: the function gives the shapes of the results of these ops."""
    return registering.under(TABLE, ops, "two functions give the shapes of")


class UnknownRankError(Exception):
    """A shape function needs the shape of an operand of unknown rank."""


def elements_of(x: Tensor) -> np.ndarray | None:
    """The known elements of a tensor of integers, as sizes; see `graph.Tensor.sizes`."""
    array = x.value
    if array is None or x.sizes is not None:
        return x.sizes
    return array.astype(object) if array.dtype.kind in "iu" and array.size <= MOST else None


# Elements are known of tensors that have at most so many.
MOST = 1024


@dataclass(frozen=True)
class Use:
    """One use of an op.

    Attributes:
      op: its name.
      operands: all operands, those of lists too.
      attributes: all attributes, those with defaults too.
      n_results: the number of results.
    """

    op: str
    operands: Sequence[Tensor]
    attributes: PyTree
    n_results: int

    def shape(self, i: int) -> Sizes:
        """The shape of an operand.

        Raises:
          UnknownRankError: its rank is unknown; then the shapes of all results are.
        """
        shape = self.operands[i].shape
        if shape is None:
            raise UnknownRankError
        return shape

    def ranked(self, i: int, *ranks: int) -> Sizes:
        """The shape of an operand that has to be of one of these ranks."""
        shape = self.shape(i)
        if len(shape) not in ranks:
            names = " or ".join(map(str, ranks))
            raise self.error(f"operand {i} has rank {len(shape)}, not {names}")
        return shape

    def at_least(self, i: int, rank: int) -> Sizes:
        """The shape of an operand that has to be of this rank or more."""
        shape = self.shape(i)
        if len(shape) < rank:
            raise self.error(f"operand {i} has rank {len(shape)}, which is less than {rank}")
        return shape

    def sizes(self, i: int) -> np.ndarray | None:
        """The known elements of an operand of integers, as sizes; see `graph.Tensor.sizes`."""
        return elements_of(self.operands[i])

    def size(self, i: int) -> Size:
        """The value of an operand that is one integer; None if it is unknown."""
        sizes = self.sizes(i)
        return None if sizes is None or sizes.size != 1 else sizes.item()

    def vector(self, i: int) -> Sizes | None:
        """The elements of a vector of integers, None for unknown ones; None without its length."""
        sizes = self.sizes(i)
        if sizes is not None:
            return tuple(sizes.ravel().tolist())
        shape = self.operands[i].shape
        if shape is None or len(shape) > 1:
            return None
        (length,) = shape or (1,)
        return (None,) * length if isinstance(length, int) else None

    def shape_in(self, i: int) -> Shape:
        """The shape that the elements of an operand state."""
        shape = self.operands[i].shape
        if shape is not None and len(shape) != 1:
            raise self.error(f"operand {i} states a shape and has rank {len(shape)}, not 1")
        sizes = self.vector(i)
        for size in sizes or ():
            if isinstance(size, int) and size < 0:
                raise self.error(f"operand {i} states the shape {shown(sizes)}")
        return sizes

    def axis(self, axis: int, rank: int, *, has_end: bool = False) -> int:
        """An axis counted from the front; with `has_end` one behind the last is allowed."""
        n = rank + has_end
        if not -n <= axis < n:
            raise self.error(f"axis {axis} is out of range for rank {rank}")
        return axis + n if axis < 0 else axis

    def merge(self, a: Size, b: Size) -> Size:
        """The size of a dimension of which two sizes are stated: the one that says more."""
        if dimensions.are_equal(a, b) is False and isinstance(a, int) and isinstance(b, int):
            raise self.error(f"the sizes {a} and {b} should be equal")
        if a is None or (isinstance(a, str) and isinstance(b, int)):
            return b
        return a

    def merged(self, a: Shape, b: Shape) -> Shape:
        """The shape of which two are stated."""
        if a is None or b is None:
            return b if a is None else a
        if len(a) != len(b):
            raise self.error(f"the shapes {shown(a)} and {shown(b)} should be equal")
        return tuple(map(self.merge, a, b))

    def broadcast(self, a: Shape, b: Shape) -> Shape:
        """The shape to which two shapes are broadcast, as NumPy does."""
        if a is None or b is None:
            return None
        rank = max(len(a), len(b))
        pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
        return tuple(self._broadcast(*pair, a, b) for pair in pairs)

    def _broadcast(self, x: Size, y: Size, a: Sizes, b: Sizes) -> Size:
        if x == 1 or y == 1:
            return y if x == 1 else x
        if isinstance(x, int) and isinstance(y, int):
            if x != y:
                raise self.error(f"the shapes {shown(a)} and {shown(b)} cannot be broadcast")
            return x
        # An open size is 1 or the number.
        for size in (x, y):
            if isinstance(size, int):
                return size
        return x if x == y else None

    def error(self, text: str) -> ValueError:
        """The error of a wrong use: it names the op, its operands and attributes."""
        operands = ", ".join(map(typed, self.operands))
        attributes = ", ".join(
            f"{name}={value!r}"
            for name, value in self.attributes.items()
            if isinstance(value, bool | int | float | str | list | tuple)
        )
        stated = f" with {attributes}" if attributes else ""
        return ValueError(f"{self.op}: {text}; the operands are {operands or 'none'}{stated}")


def shown(shape: Iterable[Size] | None) -> str:
    """A shape as text, such as "[b, 3, ?]"."""
    if shape is None:
        return "[...]"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def typed(x: Tensor) -> str:
    """The type of a tensor as text, such as "float32[b, 3]"."""
    if x.dtype is None:
        return "variant"
    return ("string" if x.dtype.hasobject else str(x.dtype)) + shown(x.shape)


@gives("NoOp", "Assert")
def _nothing(use: Use) -> list[Shape]:
    return []


@gives("Const")
def _constant(use: Use) -> Shape:
    return use.attributes["value"].shape


@gives("Placeholder")
def _argument(use: Use) -> Shape:
    return use.attributes["shape"]


@gives("PyFunc")
def _unknown(use: Use) -> list[Shape]:
    return [None] * use.n_results
