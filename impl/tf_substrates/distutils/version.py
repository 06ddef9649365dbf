"""Versions that are compared by their numbers."""

from __future__ import annotations

import functools
import re


@functools.total_ordering
class LooseVersion:
    """The numbers and words of a version, in their order.

    >>> LooseVersion("2.9") < LooseVersion("2.21.0")
    True
    """

    def __init__(self, vstring: str):
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+", vstring)
        # A word is before a number, so that 2.0.rc1 is before 2.0.1.
        self.version = [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LooseVersion) and self.version == other.version

    def __lt__(self, other: LooseVersion) -> bool:
        return self.version < other.version

    def __hash__(self) -> int:
        return hash(tuple(self.version))

    def __str__(self) -> str:
        return self.vstring
