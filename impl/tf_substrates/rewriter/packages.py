"""Whole packages, rewritten into a folder."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable

from tf_substrates.rewriter import known_libraries
from tf_substrates.rewriter.edits import as_text
from tf_substrates.rewriter.hook import first_file_of
from tf_substrates.rewriter.places import Substrate
from tf_substrates.rewriter.rules import edits_of


def rewrite(
    package: str,
    substrate: str,
    out: str | os.PathLike,
    omit: Iterable[str] = (),
    name: str = "",
    others: Iterable[str] = (),
) -> pathlib.Path:
    """Writes a package on a substrate into a folder, and returns where.

    What is written is beside the place until it is whole, and then renamed, so that half a package
    is never there. Rewriting again gives the same bytes.

    Args:
      package: the name of an installed package, or the path of its folder.
      substrate: "numpy" or "jax".
      out: the folder in which the package's own folder is made; an older one there is replaced.
      omit: modules to leave out.
      name: what the package is called there; `PACKAGE_SUBSTRATE` if not given.
      others: packages that are rewritten beside it: `import other` becomes that of
        `other_SUBSTRATE`.

    Raises:
      SyntaxError: a file of the package is not Python of this version. Nothing is written.
      ModuleNotFoundError: there is no such package.
    """
    given = pathlib.Path(package)
    source = given if given.is_dir() else source_of(package)
    original = source.stem if source.is_file() else source.name
    target = pathlib.Path(out) / (name or f"{original}_{substrate}")
    modules = {other: f"{other}_{substrate}" for other in others} | {original: target.name}
    place = known_libraries.substrate(substrate, modules, omit)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _write_all(source, original, place, beside)
        _swap(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def source_of(package: str) -> pathlib.Path:
    """The folder, or the one file, of an installed package, found without importing it.

    Raises:
      ModuleNotFoundError: there is none, or it has no Python source.
    """
    file = pathlib.Path(first_file_of(package))
    return file.parent if file.name == "__init__.py" else file


def _write_all(source: pathlib.Path, original: str, place: Substrate, folder: pathlib.Path) -> None:
    for file in files_of(source):
        relative = file.relative_to(source) if source.is_dir() else pathlib.Path("__init__.py")
        module = module_of(original, relative)
        if place.omits(module):
            continue
        written = folder / relative
        written.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".py":
            shutil.copyfile(file, written)
            continue
        text = file.read_text(encoding="utf-8")
        is_package = relative.name == "__init__.py"
        package = module if is_package else module.rpartition(".")[0]
        written.write_text(
            as_text(text, edits_of(text, place, package, str(file), module)),
            encoding="utf-8",
            newline="",
        )


def _swap(made: pathlib.Path, target: pathlib.Path) -> None:
    made.chmod(0o755)
    if not target.exists():
        os.rename(made, target)
        return
    older = target.with_name(f".{target.name}-older-{os.getpid()}")
    os.rename(target, older)
    try:
        os.rename(made, target)
    except OSError:
        os.rename(older, target)
        raise
    shutil.rmtree(older)


def files_of(source: pathlib.Path) -> list[pathlib.Path]:
    """The files of a package in one order everywhere, without what Python left there."""
    if source.is_file():
        return [source]
    return sorted(
        file
        for file in source.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix not in (".pyc", ".so")
    )


def module_of(package: str, relative: pathlib.Path) -> str:
    """The dotted name of a file of a package."""
    parts = relative.with_suffix("").parts
    return ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
