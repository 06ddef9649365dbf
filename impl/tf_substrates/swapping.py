"""Folders and files are put into their place by renaming, so that no part of one ever stands there.

`jax2tf.export` uses this too. It stands here because it needs neither JAX nor TensorFlow.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import shutil
import sys

# By platform: the function of the C library that exchanges two names in one step, and what stands
# before each of the two paths (Linux takes an open folder there, and -100 is the current one).
_EXCHANGES: dict[str, tuple[str, tuple[int, ...]]] = {
    "linux": ("renameat2", (-100,)),
    "darwin": ("renamex_np", ()),
}
_EXCHANGE = 2
# The system or the file system has no such function.
_LACKING = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def put(made: pathlib.Path, target: pathlib.Path) -> None:
    """Renames `made` to `target`. What stood at `target` stands at `made` afterwards.

    On Linux and macOS that is one step of the system: a process that is killed leaves the old or
    the new at `target`. On systems and file systems without that step it is so for files, and of
    folders two names are renamed: a process that is killed between them leaves the old whole,
    beside `made` with the suffix .older.

    Args:
      made: a file or folder on the file system of `target`.
      target: where it shall stand.

    Raises:
      OSError: it cannot be renamed. Both are as they were.
    """
    if not os.path.lexists(target):
        os.rename(made, target)
    elif not _exchanged(made, target):
        _put_by_two_names(made, target)


def _put_by_two_names(made: pathlib.Path, target: pathlib.Path) -> None:
    older = made.with_name(made.name + ".older")
    if target.is_symlink() or not target.is_dir():
        # A file is replaced in one step everywhere; what it replaces is kept by a copy.
        shutil.copy2(target, older, follow_symlinks=False)
        os.replace(made, target)
    else:
        os.rename(target, older)
        try:
            os.rename(made, target)
        except BaseException:
            os.rename(older, target)
            raise
    os.rename(older, made)


def _exchanged(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Exchanges two names; False where the system cannot do it in one step."""
    name, before = _EXCHANGES.get(sys.platform, ("", ()))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        return False
    if function(*before, os.fsencode(one), *before, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _LACKING:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
