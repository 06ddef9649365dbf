"""Files are written beside their place, and put there by renaming when all of them are right."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jax2tf.errors import ExportError
from jax2tf.export import disk


def refuse_existing(targets: Sequence[Path], overwrite: bool) -> None:
    """Refuses to replace what is there.

    Raises:
      FileExistsError: one of the paths exists, and `overwrite` is False.
      ExportError: the folder that they should stand in is a file.
    """
    for target in targets:
        if not overwrite and os.path.lexists(target):
            raise FileExistsError(
                f"jax2tf.export: {target} exists. What to do: pass overwrite=True to replace it, "
                "or give another path"
            )
    parent = targets[0].absolute().parent
    existing = next(folder for folder in (parent, *parent.parents) if folder.exists())
    if not existing.is_dir():
        raise ExportError(f"jax2tf.export: {existing} should be a folder, and it is a file")


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A new folder next to `target`, which goes when the context ends, whatever happens."""
    parent = target.absolute().parent
    with disk.making_folder(target):
        parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(
            dir=parent, prefix=f".{target.name}-", ignore_cleanup_errors=True
        )
    with made as folder:
        yield Path(folder)


def put(written: Sequence[Path], targets: Sequence[Path], overwrite: bool) -> None:
    """Renames what was written to its place: all of it, or nothing.

    What is replaced stays under a name of its own until the new stands in its place.

    Raises:
      FileExistsError: something came to stand there meanwhile, and `overwrite` is False.
    """
    refuse_existing(targets, overwrite)
    replaced: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    try:
        for source, target in zip(written, targets, strict=True):
            if os.path.lexists(target):
                old = source.with_name(f"{source.name}.replaced")
                os.rename(target, old)
                replaced.append((old, target))
            os.rename(source, target)
            placed.append(target)
    except BaseException:
        for target in placed:
            _remove(target)
        for old, target in replaced:
            os.rename(old, target)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
