"""A cache of the values that were used last, for several threads."""

from __future__ import annotations

import collections
import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by key; when there are too many, the least recently used one is dropped.

    >>> recent = Recent(2)
    >>> for key in ("a", "b", "a", "c"):
    ...     recent.add(key, key.upper())
    >>> recent.get("a"), recent.get("b"), recent.get("c")
    ('A', None, 'C')

    Args:
      size: the largest number of values, at least 1.
    """

    def __init__(self, size: int):
        self._size = size
        self._values: collections.OrderedDict[Hashable, T] = collections.OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        """The value under `key`, which counts as used now; None if there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def add(self, key: Hashable, value: T) -> None:
        """Puts `value` under `key`; it counts as used now."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)
