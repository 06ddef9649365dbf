"""The path of an export: the folder beside it to write in, and the renames that replace it."""

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

# Pairs of a written file and its place, in the order in which they are renamed.
Steps = Sequence[tuple[Path, Path]]


def refuse_existing(
    targets: Sequence[Path], overwrite: bool, obstacle: Callable[[Path], str]
) -> None:
    """Refuses to replace files or folders.

    Args:
      targets: the paths to be written; the caller's own path comes last.
      overwrite: whether models may be replaced.
      obstacle: returns the reason why a path must never be replaced; empty if it may be.

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
        if not _exists(target):
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


def _exists(target: Path) -> bool:
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
    """A new folder beside `target`, which is deleted when the context ends.

    New parent folders are deleted too, if they are empty.
    """
    parent = target.absolute().parent
    missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    try:
        with disk.writing(target, disk.REMEDIES_OF_FOLDERS):
            parent.mkdir(parents=True, exist_ok=True)
            # The target's own name may already have the greatest length, so it is not used here.
            temporary = tempfile.TemporaryDirectory(
                dir=parent, prefix=".jax2tf-", ignore_cleanup_errors=True
            )
        with temporary as folder:
            yield Path(folder)
    finally:
        for new in missing:
            with contextlib.suppress(OSError):
                new.rmdir()


def each(written: Sequence[Path], targets: Sequence[Path]) -> Steps:
    """Pairs each file or folder with its place."""
    return list(zip(written, targets, strict=True))


def put(steps: Steps) -> None:
    """Renames all written files and folders to their places, or none if one rename fails.

    `swapping.put` replaces a file or folder in one step. The old one goes to the place of the new
    one, and is deleted with the folder that `beside` made.
    """
    with contextlib.ExitStack() as undo:
        for written, target in steps:
            is_new = not os.path.lexists(target)
            swapping.put(written, target)
            if is_new:
                undo.callback(os.rename, target, written)
            else:
                undo.callback(swapping.put, written, target)
        undo.pop_all()
