"""The report on a function for one target: its ops, refusals and known limitations."""

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
    """A known limitation of a primitive for a target, which may affect the function.

    Attributes:
      primitive: its name.
      dtypes: the dtypes for which it was seen.
      expect: "error", "mismatch" or "crash".
      reason: what happens, and why.
    """

    primitive: str
    dtypes: tuple[str, ...]
    expect: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The report on a function for one target.

    Attributes:
      target: the name of the target.
      refusals: all uses of primitives that cannot be lowered.
      ops: the number of ops of each type, without ops that compute nothing; a function that several
        places call counts once.
      lines: the number of ops from each line of the user.
      scopes: the number of ops in each named scope of the user.
      limitations: the known limitations of the primitives and dtypes that the function uses.
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
        """The number of ops."""
        return sum(self.ops.values())
