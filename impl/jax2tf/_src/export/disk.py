"""Files that the disk does not take: it is full, may not be written, or has no such place."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from jax2tf._src.api.errors import ExportError

_FULL = "free some space there, or give a path on another disk"
_CLOSED = "give a path in a folder that this program may write to"

# What a disk says, with what to do about it. Errors of the user's function have other numbers.
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "give a path on a file system that takes files of this size, or raise the limit "
    "that the shell sets (ulimit -f)",
    errno.EROFS: _CLOSED,
    errno.EIO: "give a path on another disk",
}

# Those of a folder that is made before anything else is done.
_REMEDIES_OF_FOLDERS = {
    **_REMEDIES,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENOENT: _CLOSED,
    errno.ENAMETOOLONG: "give a shorter name",
}


def number_of(error: BaseException) -> int | None:
    """The number of the disk's error that an exception tells of, or None.

    TensorFlow and OpenVINO write from C++, and have its text in errors of their own.
    """
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        return error.errno
    if isinstance(error, tf.errors.OpError | RuntimeError):
        return next((n for n in _REMEDIES if os.strerror(n) in str(error)), None)
    return None


@contextlib.contextmanager
def making_folder(target: Path) -> Iterator[None]:
    """Says that the folder of `target` cannot be made.

    Raises:
      ExportError: the disk does not take it.
    """
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES_OF_FOLDERS.get(error.errno or 0)
        if remedy is None:
            raise
        raise _error(target, os.strerror(error.errno or 0), remedy) from error


class _NotSavedError(Exception):
    """A library's error while it saves, which has no number of the disk's."""


@contextlib.contextmanager
def saved_by(library: str) -> Iterator[None]:
    """Says to `writing`, around it, that all that a library raises is of the disk."""
    try:
        yield
    except RuntimeError as error:
        if number_of(error) is not None:
            raise
        raise _NotSavedError(f"{library} says {error}") from error


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Says that `target` cannot be written; all other errors pass.

    Raises:
      ExportError: the disk does not take it.
    """
    try:
        yield
    except _NotSavedError as error:
        raise _error(target, str(error), _FULL) from error.__cause__
    except Exception as error:
        number = number_of(error)
        if number is None:
            raise
        raise _error(target, os.strerror(number), _REMEDIES[number]) from error


def _error(target: Path, reason: str, remedy: str) -> ExportError:
    return ExportError(
        f"jax2tf.export: {target} cannot be written: {reason}. Nothing new is left there. What to "
        f"do: {remedy}"
    )
