"""Passes change a jaxpr and its equations before rules lower them to ops.

../pipeline.py lists the passes in their order.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from jax2tf._src.util.typing import Atom, Param


@dataclasses.dataclass(frozen=True, slots=True)
class Instead:
    """Replaces the operands of an equation, and perhaps its rule.

    Attributes:
      operands: atoms of the jaxpr. The rule gets them as tensors.
      rule: the new rule, called as the rule of a primitive; None if the equation keeps its rule.
      params: the keyword arguments of `rule`.
      gives_many: whether `rule` returns a list of results; None if the primitive decides.
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
      applies: says whether the pass runs. The list defines the arguments.
      run: runs the pass. The list defines the arguments.
      reason: why the pass has this place in the list.
    """

    name: str
    applies: Condition
    run: Run
    reason: str


_off: frozenset[str] = frozenset()


def switched_off() -> frozenset[str]:
    """Returns the names of the passes that are switched off now."""
    return _off


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """Switches a pass off, for tests. The pass may already have run on earlier traces."""
    global _off
    before, _off = _off, _off | {name}
    try:
        yield
    finally:
        _off = before
