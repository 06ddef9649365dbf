"""The caches of this package. Each has a bound and serves several threads.

A value that is made for each shape, dtype or static value of a call would otherwise stay as long as
the process. `Lru` is a cache of one object; `cached` keeps the results of a function.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
from collections.abc import Callable, Hashable, Iterator
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


class KeyedLock:
    """A lock for each key, for as long as a thread holds it or waits for it.

    Two threads that make different values never wait for each other. With one lock they might do so
    forever: one value may need another, which the other thread makes.

    >>> making = KeyedLock()
    >>> with making("a"), making("a"), making("b"):
    ...     pass
    """

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._counts: collections.Counter[Hashable] = collections.Counter()
        self._locks: dict[Hashable, contextlib.AbstractContextManager[bool]] = {}

    @contextlib.contextmanager
    def __call__(self, key: Hashable) -> Iterator[None]:
        """Holds the lock of `key`; a thread that holds it may enter again."""
        with self._counting:
            self._counts[key] += 1
            lock = self._locks.setdefault(key, threading.RLock())
        try:
            with lock:
                yield
        finally:
            with self._counting:
                self._counts[key] -= 1
                if not self._counts[key]:
                    del self._counts[key], self._locks[key]


class Lru(Generic[T]):
    """Values by key; when there are too many, the least recently used one is dropped.

    >>> lru = Lru(2)
    >>> for key in ("a", "b", "a", "c"):
    ...     _ = lru.value(key, key.upper)
    >>> lru.get("a"), lru.get("b"), lru.get("c")
    ('A', None, 'C')

    Args:
      size: the largest number of values, at least 1.
      lock: held while any value is made; by default, each key has a lock of its own. Nobody waits
        for it who asks for a value that is there.
    """

    def __init__(self, size: int, lock: contextlib.AbstractContextManager[bool] | None = None):
        self._size = size
        self._values: collections.OrderedDict[Hashable, T] = collections.OrderedDict()
        self._order = threading.RLock()
        self._making = KeyedLock() if lock is None else lambda key: lock

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
            with self._making(key):
                value = self.get(key, _ABSENT)
                if value is _ABSENT:
                    value = make()
                    self.add(key, value)
        return cast("T", value)

    def clear(self) -> None:
        """Forgets all values."""
        with self._order:
            self._values.clear()
