"""What public functions require of their options: one form of check and of message for all.

Each check is given the public function and the argument, as "jax2tf.convert: target", and raises
where the argument enters.
"""

from __future__ import annotations

import inspect
import numbers
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src.util.typing import PyTree

T = TypeVar("T")

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def shown(value: object) -> str:
    """The value for a message: its repr, shortened."""
    return " ".join(_REPR.repr(value).split())


def callable_(value: object, where: str, of: str = "") -> None:
    """Refuses what cannot be called.

    Args:
      value: what should be a function.
      where: the public function and its argument, as "jax2tf.convert: fun_jax".
      of: what follows "a function" in the message.

    Raises:
      TypeError: it is none.
    """
    if not callable(value):
        raise TypeError(f"{where} should be a function{of}, got {type(value).__name__}")


def switches(function: str, **given: object) -> None:
    """Refuses "no" and "false", which Python takes for true.

    Raises:
      TypeError: one is neither True nor False.
    """
    for name, value in given.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{function}: {name} should be True or False, got {shown(value)}")


def sequence(value: PyTree, where: str, of: str, example: str) -> tuple[PyTree, ...]:
    """The members of a sequence, which an iterator gives once.

    Args:
      value: what should be a sequence.
      where: the public function and its argument.
      of: what its members are, as "texts".
      example: how to write one.

    Raises:
      TypeError: it is a number, None or something else that has no members, or an array.
      ValueError: it is a text, whose members are its characters.
    """
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{where} should be a sequence of {of}, got the text {value!r}; write {example}"
        )
    is_array = isinstance(value, np.ndarray | jax.Array | tf.Tensor | tf.Variable)
    if is_array or not isinstance(value, Iterable):
        raise TypeError(
            f"{where} should be a sequence of {of}, got {shown(value)}; write {example}, or leave "
            "it out"
        )
    return tuple(value)


def whole_number(value: PyTree, where: str, least: int, remedy: str) -> int:
    """The value as an int.

    Raises:
      ValueError: it is no whole number of at least `least`.
    """
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_number or value < least:
        raise ValueError(
            f"{where} should be a number of at least {least}, got {shown(value)}; {remedy}"
        )
    return operator.index(value)


def tolerance(value: PyTree, where: str) -> float | None:
    """The value as a float, or None.

    Raises:
      TypeError: it is no real number.
      ValueError: it is negative or NaN.
    """
    if value is None:
        return None
    is_real = isinstance(value, numbers.Real | np.floating | np.integer)
    is_scalar = isinstance(value, np.ndarray | jax.Array) and np.shape(value) == ()
    if isinstance(value, bool) or not (is_real or (is_scalar and value.dtype.kind in "iuf")):
        raise TypeError(
            f"{where} should be a number such as 1e-3, or None for the default, got {shown(value)}"
        )
    if not float(value) >= 0:
        raise ValueError(
            f"{where} should be a number that is not negative, such as 1e-3, got {value!r}; leave "
            "it out for the default"
        )
    return float(value)


def path(value: object, where: str, example: str) -> Path:
    """The path that a text or an os.PathLike stands for.

    Raises:
      TypeError: it is no text, as bytes are none.
      ValueError: it is empty, or holds a character that no file system takes.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        decode = "; decode it with os.fsdecode" if isinstance(text, bytes) else ""
        raise TypeError(
            f"{where} should be a text or a pathlib.Path, such as {example!r}, got "
            f"{shown(value)}{decode}"
        )
    if not text or "\0" in text or not _is_encodable(text):
        raise ValueError(
            f"{where} should be the path of a file or folder, such as {example!r}, got {text!r}"
        )
    return Path(text)


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def one_of(value: T, where: str, known: Collection[T]) -> T:
    """The value, which is among those known, as a bool and the number 1 are not the same.

    Raises:
      ValueError: it is not.
    """
    if not any(_is_same(value, other) for other in known):
        are_names = all(isinstance(other, str) for other in known)
        names = ", ".join(map(str if are_names else repr, known))
        raise ValueError(f"{where} should be one of {names}, got {shown(value)}")
    return value


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, np.bool_ | np.integer):
        value = value.item()
    return type(value) is type(other) and bool(value == other)


def options_of(
    taker: Callable[..., object], given: Mapping[str, object], function: str, own: Iterable[str]
) -> None:
    """Refuses options that a function does not have to which they are handed on.

    Args:
      taker: the function that takes them by keyword.
      given: the options.
      function: the public function that the caller gave them to.
      own: those that this function has itself, or does not hand on.

    Raises:
      TypeError: one is unknown.
    """
    of_taker = inspect.signature(taker).parameters.values()
    known = [p.name for p in of_taker if p.kind is p.KEYWORD_ONLY and p.name not in set(own)]
    for name in given:
        if name not in known:
            raise TypeError(
                f"{function}: it has no option {name!r}. Beside its own, its options are those of "
                f"jax2tf.convert: {', '.join(known)}"
            )
