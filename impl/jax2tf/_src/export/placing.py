"""Files are written beside their place, and put there by renaming when all of them are right."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jax2tf._src.api.errors import ExportError
from jax2tf._src.export import disk
from tf_substrates import swapping

# What was written, and where it goes, in this order.
Steps = Sequence[tuple[Path, Path]]


def refuse_existing(
    targets: Sequence[Path], overwrite: bool, obstacle: Callable[[Path], str]
) -> None:
    """Refuses to replace what is there.

    Args:
      targets: what will be written, the path that the caller gave last.
      overwrite: whether models may be replaced.
      obstacle: why what stands at a path may not be replaced even so; empty if it may be.

    Raises:
      FileExistsError: one of the paths exists, and `overwrite` is False or there is an obstacle.
      ValueError: the path names no file, or the name is longer than the system takes.
      ExportError: the folder that they should stand in is a file.
    """
    if targets[-1].name in ("", ".."):
        raise ValueError(
            "jax2tf.export: path should end in the name of what is written, got "
            f"{os.fspath(targets[-1])!r}"
        )
    parent = targets[0].absolute().parent
    existing = next(folder for folder in (parent, *parent.parents) if os.path.lexists(folder))
    if not existing.is_dir():
        raise ExportError(f"jax2tf.export: {existing} should be a folder, and it is a file")
    for target in targets:
        if not _stands(target):
            continue
        reason = obstacle(target)
        if reason:
            raise FileExistsError(
                f"jax2tf.export: {target} is not replaced: {reason}. What to do: move or delete "
                "it, or give another path"
            )
        if not overwrite:
            raise FileExistsError(
                f"jax2tf.export: {target} exists. What to do: pass overwrite=True to replace it, "
                "or give another path"
            )


def _stands(target: Path) -> bool:
    try:
        os.lstat(target)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(
                "jax2tf.export: a name in the path is longer than the system takes, which is 255 "
                f"bytes on most: the last name has {len(os.fsencode(target.name))}, in {target}. "
                "What to do: give a shorter path"
            ) from error
        return False
    return True


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A new folder next to `target`, which goes when the context ends, whatever happens.

    So do folders that are made around it, if nothing was put there.
    """
    parent = target.absolute().parent
    missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    try:
        with disk.making_folder(target):
            parent.mkdir(parents=True, exist_ok=True)
            # The name of the target may be as long as the system takes: it is not part of this one.
            made = tempfile.TemporaryDirectory(
                dir=parent, prefix=".jax2tf-", ignore_cleanup_errors=True
            )
        with made as folder:
            yield Path(folder)
    finally:
        for new in missing:
            with contextlib.suppress(OSError):
                new.rmdir()


def each(written: Sequence[Path], targets: Sequence[Path]) -> Steps:
    """Each file or folder to its place."""
    return list(zip(written, targets, strict=True))


def put(steps: Steps) -> None:
    """Renames what was written to its place: all of it, or nothing.

    A file or folder is replaced in one step, as `swapping.put` says; what it replaces stands where
    it was written, until the folder that `beside` made goes.
    """
    with contextlib.ExitStack() as undo:
        for made, target in steps:
            is_new = not os.path.lexists(target)
            swapping.put(made, target)
            if is_new:
                undo.callback(os.rename, target, made)
            else:
                undo.callback(swapping.put, made, target)
        undo.pop_all()
