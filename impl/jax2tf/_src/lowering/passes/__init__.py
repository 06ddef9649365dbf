"""Passes: what becomes of a jaxpr and of its equations before rules make ops of them.

../pipeline.py lists them in their order.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from jax2tf._src.util.typing import Atom, Param


@dataclasses.dataclass(frozen=True, slots=True)
class Instead:
    """How an equation is lowered otherwise than by its rule on its operands.

    Attributes:
      operands: atoms of the jaxpr, which the rule gets as tensors.
      rule: called as the rule of a primitive; None for the rule that the equation has.
      params: the keyword arguments of `rule`.
      gives_many: whether `rule` gives a list of results; None where the primitive decides.
    """

    operands: Sequence[Atom]
    rule: Callable[..., object] | None = None
    params: dict[str, Param] = dataclasses.field(default_factory=dict)
    gives_many: bool | None = None


Condition = TypeVar("Condition")
Run = TypeVar("Run")


@dataclasses.dataclass(frozen=True)
class Pass(Generic[Condition, Run]):
    """One pass of a list.

    Attributes:
      applies: says whether it runs; the list says of what.
      run: does its work; the list says with which arguments.
      reason: why it stands where it stands.
    """

    name: str
    applies: Condition
    run: Run
    reason: str


_off: frozenset[str] = frozenset()


def switched_off() -> frozenset[str]:
    """The names of the passes that do nothing at present."""
    return _off


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """Switches a pass off, for tests. What was traced before may have passed through it."""
    global _off
    before, _off = _off, _off | {name}
    try:
        yield
    finally:
        _off = before
