"""Errors of the disk, such as a full or read-only one, as ExportErrors with a remedy."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from jax2tf._src.api.errors import ExportError
from jax2tf._src.util.lazy_imports import classes

_FULL = "free some space there, or give a path on another disk"
_CLOSED = "give a path in a folder that this program may write to"

# A remedy for each error number of a disk. Errors of the user's function have other numbers.
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "give a path on a file system that takes files of this size, or raise the limit "
    "that the shell sets (ulimit -f)",
    errno.EROFS: _CLOSED,
    errno.EIO: "give a path on another disk",
}

# Remedies for making the folder around the target, before any function of the user runs.
REMEDIES_OF_FOLDERS = {
    **_REMEDIES,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENOENT: _CLOSED,
    errno.ENAMETOOLONG: "give a shorter name",
}


def errno_of(error: BaseException, remedies: Mapping[int, str] = _REMEDIES) -> int | None:
    """The number of the disk's error behind an exception, or None.

    TensorFlow and OpenVINO write files from C++, and put the text of the error into their own.
    """
    if isinstance(error, OSError) and error.errno in remedies:
        return error.errno
    if isinstance(error, (RuntimeError, *classes("errors.OpError"))):
        return next((n for n in remedies if os.strerror(n) in str(error)), None)
    return None


class _NotSavedError(Exception):
    """A library's error while it saves a file, without an error number."""


@contextlib.contextmanager
def saved_by(library: str) -> Iterator[None]:
    """Tells the `writing` around it that every RuntimeError of a library is the disk's."""
    try:
        yield
    except RuntimeError as error:
        if errno_of(error) is not None:
            raise
        raise _NotSavedError(f"{library} says {error}") from error


@contextlib.contextmanager
def writing(target: Path, remedies: Mapping[int, str] = _REMEDIES) -> Iterator[None]:
    """Turns an error of the disk into one that names `target`; other errors pass.

    Raises:
      ExportError: the disk refuses the file or folder.
    """
    try:
        yield
    except _NotSavedError as error:
        raise _error(target, str(error), _FULL) from error.__cause__
    except Exception as error:
        number = errno_of(error, remedies)
        if number is None:
            raise
        raise _error(target, os.strerror(number), remedies[number]) from error


def _error(target: Path, reason: str, remedy: str) -> ExportError:
    return ExportError(
        f"jax2tf.export: {target} cannot be written: {reason}. Nothing new is left there. What to "
        f"do: {remedy}"
    )
