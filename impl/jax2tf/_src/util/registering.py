"""A decorator that puts functions into a table under the names of ops, each name once."""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping, Sequence
from typing import TypeVar

from jax2tf._src.util.typing import PyTree

F = TypeVar("F", bound=Callable[..., object])


def under(table: MutableMapping[str, PyTree], ops: Sequence[str], twice: str) -> Callable[[F], F]:
    """A decorator: puts its function into the table under each of the ops.

    Raises:
      ValueError: an op is there already; the message is `twice`, followed by the op.
    """
    return functools.partial(_register, table, ops, twice)


def _register(table: MutableMapping[str, PyTree], ops: Sequence[str], twice: str, function: F) -> F:
    for op in ops:
        if op in table:
            raise ValueError(f"{twice} {op}")
        table[op] = function
    return function


def results_of(rule: Callable[..., PyTree], *arguments: PyTree) -> list[PyTree]:
    """The results of a rule as a list; a rule of one result gives it without a list or a tuple."""
    results = rule(*arguments)
    return list(results) if isinstance(results, list | tuple) else [results]
