"""Where rewritten packages are written: what is refused beforehand, and how they get there."""

from __future__ import annotations

import contextlib
import keyword
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from tf_substrates import swapping
from tf_substrates.rewriter import mark


def name_of(folder: pathlib.Path) -> str:
    """What a package is called by its folder's path, which may end in `.` or `..`."""
    return folder.resolve().name if folder.name in ("", "..") else folder.name


def target(out: str | os.PathLike, name: str, original: str) -> pathlib.Path:
    """The folder of the rewritten package `name` in `out`.

    Raises:
      ValueError: no package can have that name.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"tf_substrates: a package rewritten from {original!r} cannot be called {name!r}: that"
            " is no identifier of Python. What to do: give another name, as --name"
            " some_package_jax."
        )
    if not os.fspath(out):
        raise ValueError("tf_substrates: the folder to write into is given as an empty text.")
    return pathlib.Path(out) / name


def check(sources: Sequence[pathlib.Path], targets: Sequence[pathlib.Path]) -> None:
    """Refuses to write what would replace a source, or anything that `rewrite` did not make.

    Raises:
      ValueError: a target and a source overlap, or two targets do.
      FileExistsError: something else stands at a target.
      NotADirectoryError, PermissionError: the folder around a target cannot be written.
    """
    for place in targets:
        for source in sources:
            if _overlap(place, source):
                raise ValueError(
                    f"tf_substrates: {place} would be written over or inside of the package that"
                    f" it is made from, {source}, or around it. What to do: give another folder as"
                    " --out, or another name as --name."
                )
        if sum(_overlap(place, other) for other in targets) > 1:
            raise ValueError(f"tf_substrates: {place} would be written twice.")
        _check_place(place)


def _overlap(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Whether one path is the other or inside of it, by whatever names they go."""
    return _is_inside(one, other) or _is_inside(other, one)


def _is_inside(inner: pathlib.Path, outer: pathlib.Path) -> bool:
    real = pathlib.Path(os.path.realpath(inner))
    wanted = os.path.realpath(outer).casefold()
    for folder in (real, *real.parents):
        # Some file systems take names that differ in case for one; others are mounted twice.
        if str(folder).casefold() == wanted:
            return True
        with contextlib.suppress(OSError):
            if os.path.samefile(folder, outer):
                return True
    return False


def _check_place(target: pathlib.Path) -> None:
    parent = target.absolute().parent
    # A link that leads nowhere exists only to lexists.
    existing = next(f for f in (parent, *parent.parents) if os.path.lexists(f))
    if not existing.is_dir():
        raise NotADirectoryError(
            f"tf_substrates: cannot write {target}: {existing} is no folder. What to do: give"
            " another folder as --out."
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(
            f"tf_substrates: cannot write {target}: {existing} may not be written. What to do:"
            " give another folder as --out."
        )
    if not os.path.lexists(target):
        return
    if target.is_symlink():
        reason = "it is a symbolic link"
    elif not target.is_dir():
        reason = "it is no folder"
    else:
        reason = mark.not_made(target)
    if reason:
        raise FileExistsError(
            f"tf_substrates: {target} is not replaced: {reason}. What to do: move or delete it, or"
            " give another folder as --out or another name as --name."
        )


@contextlib.contextmanager
def beside(targets: Sequence[pathlib.Path]) -> Iterator[dict[pathlib.Path, pathlib.Path]]:
    """New folders next to some targets, by target. They go when the context ends.

    So do the parents that were made for them, if nothing was put there.

    Raises:
      OSError: the system refuses what is done in the context; it says for which target.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_explained())
        made = {}
        for place in targets:
            parent = place.absolute().parent
            stack.enter_context(_parents(parent))
            around = tempfile.mkdtemp(prefix=".tf_substrates-", dir=parent)
            stack.callback(shutil.rmtree, around, ignore_errors=True)
            made[place] = pathlib.Path(around) / place.name
            made[place].mkdir()
        yield made


def put(made: Mapping[pathlib.Path, pathlib.Path]) -> None:
    """Puts every folder at its target, or none."""
    with contextlib.ExitStack() as undo:
        for place, folder in made.items():
            # Something may have come to stand there meanwhile.
            _check_place(place)
            back = swapping.put if os.path.lexists(place) else _moved_back
            swapping.put(folder, place)
            undo.callback(back, folder, place)
        undo.pop_all()


def _moved_back(folder: pathlib.Path, target: pathlib.Path) -> None:
    os.rename(target, folder)


@contextlib.contextmanager
def _parents(folder: pathlib.Path) -> Iterator[None]:
    """Makes a folder and those around it; what was made and is empty goes in the end."""
    missing = [f for f in (folder, *folder.parents) if not os.path.lexists(f)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for made in missing:
            with contextlib.suppress(OSError):
                made.rmdir()


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Says of what the system refuses that nothing was changed by it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(
            error.errno,
            f"tf_substrates: cannot write {error.filename or 'the package'}: {error.strerror}."
            " What stood at the place that was given still does",
        ) from error
