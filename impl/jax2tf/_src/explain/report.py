"""A function for one target: its ops, what is refused, what is known not to hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A use of a primitive that has no lowering for a target.

    Attributes:
      primitive: its name.
      source: the user's line, as `file:line (function)`; empty where there is none.
      reason: what is missing, and where.
      remedy: what to do.
      count: how often that line uses it so.
    """

    primitive: str
    source: str
    reason: str
    remedy: str
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Limitation:
    """What is known not to hold of a primitive for a target; the function may be touched by it.

    Attributes:
      primitive: its name.
      dtypes: those for which it was seen.
      expect: "error", "mismatch" or "crash".
      reason: what happens, and why.
    """

    primitive: str
    dtypes: tuple[str, ...]
    expect: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Report:
    """What a function becomes for one target.

    Attributes:
      target: its name.
      refusals: what cannot be lowered, all of it.
      ops: how many ops there are of each type, those aside that compute nothing; a function that
        several places call counts once.
      lines: how many of them come from each line of the user's.
      scopes: how many of them stand in each of the user's named scopes.
      limitations: what is known of the primitives and dtypes that the function uses.
    """

    target: str
    refusals: tuple[Refusal, ...]
    ops: Mapping[str, int]
    lines: Mapping[str, int]
    scopes: Mapping[str, int]
    limitations: tuple[Limitation, ...]

    @property
    def converts(self) -> bool:
        """Whether everything can be lowered."""
        return not self.refusals

    @property
    def size(self) -> int:
        """How many ops there are."""
        return sum(self.ops.values())
