"""Checks of the options of public functions, with messages of one form.

Each check gets the public function and the argument as text, such as "jax2tf.convert: target".
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

from jax2tf._src.util.lazy_imports import classes
from jax2tf._src.util.typing import PyTree

T = TypeVar("T")

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def shown(value: object) -> str:
    """The value for a message: its repr, shortened."""
    return " ".join(_REPR.repr(value).split())


def callable_(value: object, where: str, of: str = "") -> None:
    """Refuses a value that is not callable.

    Args:
      value: the value that should be a function.
      where: the public function and its argument, as "jax2tf.convert: fun_jax".
      of: the words after "a function" in the message.

    Raises:
      TypeError: the value is not callable.
    """
    if not callable(value):
        raise TypeError(f"{where} should be a function{of}, got {type(value).__name__}")


def switches(function: str, **options: object) -> None:
    """Refuses options that are not bools, such as "no" and "false", which are true in Python.

    Raises:
      TypeError: an option is neither True nor False.
    """
    for name, value in options.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{function}: {name} should be True or False, got {shown(value)}")


def sequence(value: PyTree, where: str, of: str, example: str) -> tuple[PyTree, ...]:
    """The members of a sequence or an iterator, as a tuple.

    Args:
      value: the value that should be a sequence.
      where: the public function and its argument.
      of: the kind of the members, as "texts".
      example: how to write one.

    Raises:
      TypeError: the value is an array, or has no members, like a number or None.
      ValueError: the value is a text, whose members are its characters.
    """
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{where} should be a sequence of {of}, got the text {value!r}; write {example}"
        )
    is_array = isinstance(value, (np.ndarray, jax.Array, *classes("Tensor", "Variable")))
    if is_array or not isinstance(value, Iterable):
        raise TypeError(
            f"{where} should be a sequence of {of}, got {shown(value)}; write {example}, or leave "
            "it out"
        )
    return tuple(value)


def whole_number(value: PyTree, where: str, least: int, remedy: str) -> int:
    """The value as an int.

    Raises:
      ValueError: the value is not a whole number of at least `least`.
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
      TypeError: the value is not a real number.
      ValueError: the value is negative or NaN.
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
    """A text or an os.PathLike as a Path.

    Raises:
      TypeError: the value is neither; bytes are refused too.
      ValueError: the path is empty, or has a character that file systems refuse.
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
    """The value, if it is one of those known; True and 1 are different values here.

    Raises:
      ValueError: the value is none of them.
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
    taker: Callable[..., object], options: Mapping[str, object], function: str, own: Iterable[str]
) -> None:
    """Refuses options that the function `taker`, to which they are passed on, does not have.

    Args:
      taker: the function that takes them by keyword.
      options: the options.
      function: the public function that the caller passed them to.
      own: the options that this function has itself or does not pass on.

    Raises:
      TypeError: an option is unknown.
    """
    of_taker = inspect.signature(taker).parameters.values()
    known = [p.name for p in of_taker if p.kind is p.KEYWORD_ONLY and p.name not in set(own)]
    for name in options:
        if name not in known:
            raise TypeError(
                f"{function}: it has no option {name!r}. Beside its own, its options are those of "
                f"jax2tf.convert: {', '.join(known)}"
            )
