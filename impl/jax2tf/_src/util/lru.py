"""The caches of this package. Each has a bound and serves several threads.

A value that is made for each shape, dtype or static value of a call would otherwise stay as long as
the process. `Lru` is a cache of one object; `cached` keeps the results of a function.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# The number of results that `cached` keeps of a function.
SIZE = 4096

# Stands for a value that is not in a cache.
_ABSENT: Any = object()


def cached(function: F) -> F:
    """A decorator that keeps the last `SIZE` results of a function, by its arguments."""
    return cast("F", functools.lru_cache(maxsize=SIZE)(function))


class Lru(Generic[T]):
    """Values by key; when there are too many, the least recently used one is dropped.

    >>> lru = Lru(2)
    >>> for key in ("a", "b", "a", "c"):
    ...     _ = lru.value(key, key.upper)
    >>> lru.get("a"), lru.get("b"), lru.get("c")
    ('A', None, 'C')

    Args:
      size: the largest number of values, at least 1.
      lock: held while a value is made; a lock of its own by default. Nobody waits for it who asks
        for a value that is there.
    """

    def __init__(self, size: int, lock: contextlib.AbstractContextManager[bool] | None = None):
        self._size = size
        self._values: collections.OrderedDict[Hashable, T] = collections.OrderedDict()
        self._order = threading.RLock()
        self._making = threading.RLock() if lock is None else lock

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, default: T | None = None) -> T | None:
        """The value under `key`, which counts as used now; `default` if there is none."""
        with self._order:
            if key not in self._values:
                return default
            self._values.move_to_end(key)
            return self._values[key]

    def add(self, key: Hashable, value: T) -> None:
        """Puts `value` under `key`; it counts as used now."""
        with self._order:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def value(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under `key`; the first caller makes it, and the others wait."""
        # Not with a KeyError, which Python would print above each error of `make`.
        value = self.get(key, _ABSENT)
        if value is _ABSENT:
            with self._making:
                value = self.get(key, _ABSENT)
                if value is _ABSENT:
                    value = make()
                    self.add(key, value)
        return cast("T", value)

    def clear(self) -> None:
        """Forgets all values."""
        with self._order:
            self._values.clear()
