"""Sort, by what its comparison of two elements computes."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.program import Op
from jax2tf._src.stablehlo.registry import reads, reads_composite, reads_custom_call
from jax2tf._src.stablehlo.rules.elementwise import ordered_bits
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree


@dataclasses.dataclass(frozen=True)
class _Side:
    """What a comparison reads of one element.

    Attributes:
      argument: the number of the region's argument.
      part: "real", "imag" or "" for the whole element.
      is_canonical: whether zeros and NaNs of both signs are the same.
    """

    argument: int
    part: str = ""
    is_canonical: bool = False


@dataclasses.dataclass(frozen=True)
class _Key:
    """One operand that decides, unless elements are equal in the keys before.

    Attributes:
      operand: the operand's place.
      part: "real", "imag" or "".
      is_total: whether -0 comes before +0, and a NaN by its sign before or after all numbers.
      is_descending: whether larger elements come first.
    """

    operand: int
    part: str
    is_total: bool
    is_descending: bool


@reads("stablehlo.sort")
def _sort(
    step: Step, *operands: Array, dimension: int = -1, is_stable: bool = False
) -> list[Array]:
    axis = dimension % operands[0].ndim
    keys = _Comparison(step).keys()
    if keys is None:
        return _sorted_by_ranks(step, operands, axis)
    flips = all(key.is_descending for key in keys)
    if flips:  # twice, so that equal elements keep their order
        operands = tuple(lax.rev(x, (axis,)) for x in operands)
        keys = [dataclasses.replace(key, is_descending=False) for key in keys]
    found = _sorted_by_keys(operands, keys, axis, is_stable)
    return [lax.rev(x, (axis,)) for x in found] if flips else found


def _sorted_by_keys(
    operands: tuple[Array, ...], keys: list[_Key], axis: int, is_stable: bool
) -> list[Array]:
    if count := _leading(operands, keys):
        return list(lax.sort(operands, dimension=axis, is_stable=is_stable, num_keys=count))
    arrays = [_ascending(operands[key.operand], key) for key in keys]
    every = lax.sort((*arrays, *operands), dimension=axis, is_stable=True, num_keys=len(arrays))
    return list(every[len(arrays) :])


def _leading(operands: tuple[Array, ...], keys: list[_Key]) -> int:
    """The number of first operands that are the keys, as lax.sort compares them; 0 otherwise."""
    if any(key.is_total or key.is_descending for key in keys):
        return 0
    parts = [(key.operand, key.part) for key in keys]
    expected: list[tuple[int, str]] = []
    for i, x in enumerate(operands):
        is_complex = np.issubdtype(x.dtype, np.complexfloating)
        expected += [(i, "real"), (i, "imag")] if is_complex else [(i, "")]
        if expected == parts:
            return i + 1
    return 0


def _ascending(x: Array, key: _Key) -> Array:
    """An array whose ascending order is the order of the key."""
    if key.part:
        x = lax.real(x) if key.part == "real" else lax.imag(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return lax.bitwise_not(x) if key.is_descending else x
    if not key.is_total:
        zero, nan = (jnp.full_like(x, value) for value in (0.0, jnp.nan))
        x = lax.select(lax.eq(x, zero), zero, lax.select(lax.ne(x, x), nan, x))
        if not key.is_descending:
            return x
    bits = ordered_bits(x)
    return lax.bitwise_not(bits) if key.is_descending else bits


class _Comparison:
    """Reads `a0 < b0 or (a0 == b0 and (a1 < b1 or ...))` in the region of a sort."""

    def __init__(self, step: Step) -> None:
        self._definitions = step.evaluator.program.definitions
        self._region = step.op.regions[0]
        self._types = step.types

    def keys(self) -> list[_Key] | None:
        """The keys in their order; None if the comparison is of another form."""
        return self._after(self._region.results[0])

    def _after(self, number: int) -> list[_Key] | None:
        op = self._definitions.get(number)
        if op is None or number in self._region.arguments:
            return None
        if op.name == "stablehlo.compare":
            key = self._key(op)
            return None if key is None else [key]
        parts = self._choice(op)
        if parts is None:
            return None
        first, equal, rest = parts
        following = self._after(rest)
        if following is None or first is None or not self._is_equality(equal, first):
            return None
        return [first, *following]

    def _choice(self, op: Op) -> tuple[_Key | None, Op, int] | None:
        """The key, the equality and the rest of a choice between two keys."""
        if op.name == "stablehlo.select":
            equal, rest, less = op.operands
        elif op.name == "stablehlo.or":
            less, both = op.operands
            inner = self._definitions.get(both)
            if inner is None or inner.name != "stablehlo.and":
                return None
            equal, rest = inner.operands
        else:
            return None
        less_op, equal_op = self._definitions.get(less), self._definitions.get(equal)
        if less_op is None or equal_op is None:
            return None
        return self._key(less_op), equal_op, rest

    def _key(self, op: Op) -> _Key | None:
        compared = self._compared(op)
        if compared is None or compared[0] not in ("LT", "GT"):
            return None
        direction, side = compared
        operand = side.argument // 2
        is_float = jnp.issubdtype(self._types[operand].dtype, jnp.inexact)
        is_total = op.attributes.get("compare_type") == "TOTALORDER" and not side.is_canonical
        return _Key(operand, side.part, is_total and is_float, direction == "GT")

    def _is_equality(self, op: Op, key: _Key) -> bool:
        compared = self._compared(op)
        if compared is None:
            return False
        direction, side = compared
        return direction == "EQ" and (side.argument // 2, side.part) == (key.operand, key.part)

    def _compared(self, op: Op) -> tuple[str, _Side] | None:
        """The direction and the first side of a comparison of two elements of one operand."""
        if op.name != "stablehlo.compare":
            return None
        first, second = (self._side(number) for number in op.operands)
        if first is None or second is None:
            return None
        direction = str(op.attributes["comparison_direction"])
        if first.argument > second.argument:
            first, second = second, first
            direction = {"LT": "GT", "GT": "LT"}.get(direction, direction)
        is_pair = first.argument % 2 == 0 and second == dataclasses.replace(
            first, argument=first.argument + 1
        )
        return (direction, first) if is_pair else None

    def _side(self, number: int) -> _Side | None:
        if number in self._region.arguments:
            return _Side(self._region.arguments.index(number))
        op = self._definitions.get(number)
        if op is None:
            return None
        if op.name in ("stablehlo.real", "stablehlo.imag"):
            whole = self._side(op.operands[0])
            part = op.name.removeprefix("stablehlo.")
            return None if whole is None else dataclasses.replace(whole, part=part)
        return self._canonical(op) if op.name == "stablehlo.select" else None

    def _canonical(self, op: Op) -> _Side | None:
        """`select(x == 0, 0, x)` and `select(x != x, nan, x)` of one element x."""
        which, constant, rest = op.operands
        condition, side = self._definitions.get(which), self._side(rest)
        value = self._constant(constant)
        if condition is None or condition.name != "stablehlo.compare" or side is None:
            return None
        plain = dataclasses.replace(side, is_canonical=False)
        left, right = condition.operands
        tested = self._side(left)
        if tested is None or dataclasses.replace(tested, is_canonical=False) != plain:
            return None
        direction = condition.attributes["comparison_direction"]
        is_nan = direction == "NE" and left == right and value is not None and value != value
        is_zero = direction == "EQ" and value == 0 and self._constant(right) == 0
        return dataclasses.replace(side, is_canonical=True) if is_nan or is_zero else None

    def _constant(self, number: int) -> PyTree:
        op = self._definitions.get(number)
        if op is None or op.name != "stablehlo.constant":
            return None
        value = op.attributes["value"]
        return value.reshape(-1)[0] if value.size == 1 else None


def _sorted_by_ranks(step: Step, operands: tuple[Array, ...], axis: int) -> list[Array]:
    """Sorts by any comparison: the rank of an element is the number of those that come before it.

    It takes the square of the number of elements, for orders that lax.sort does not have.
    """
    size = operands[0].shape[axis]
    moved = [jnp.moveaxis(x, axis, -1) for x in operands]
    firsts = [jnp.broadcast_to(x[..., :, None], (*x.shape, size)) for x in moved]
    seconds = [jnp.broadcast_to(x[..., None, :], (*x.shape, size)) for x in moved]
    forth, back = zip(firsts, seconds, strict=True), zip(seconds, firsts, strict=True)
    compare = step.region(0)
    before, after = (compare(*(x for pair in pairs for x in pair))[0] for pairs in (forth, back))
    is_earlier = jnp.arange(size)[:, None] < jnp.arange(size)[None, :]
    comes_first = before | (~after & is_earlier)
    order = jnp.argsort(jnp.sum(comes_first, axis=-2, dtype=jnp.int32), axis=-1)
    return [jnp.moveaxis(jnp.take_along_axis(x, order, -1), -1, axis) for x in moved]


@reads_composite("chlo.top_k")
@reads("chlo.top_k")
def _top_k(step: Step, x: Array, *, k: int, is_stable: bool = True) -> list[Array]:
    return list(lax.top_k(x, k))


@reads_custom_call("stablehlo.dynamic_top_k")
@takes_sizes
def _dynamic_top_k(step: Step, x: Array, k: PyTree) -> list[Array]:
    return list(lax.top_k(as_array(x), step.sizes(k, "k")[0]))
