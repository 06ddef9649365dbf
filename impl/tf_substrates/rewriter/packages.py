"""Whole packages, rewritten into a folder."""

from __future__ import annotations

import dataclasses
import io
import os
import pathlib
import shutil
import tokenize
from collections.abc import Iterable, Sequence

from tf_substrates.rewriter import known_libraries, mark, targets
from tf_substrates.rewriter.edits import as_text
from tf_substrates.rewriter.hook import first_file_of
from tf_substrates.rewriter.places import Substrate
from tf_substrates.rewriter.rules import edits_of


@dataclasses.dataclass(frozen=True)
class Planned:
    """A package that will be rewritten.

    Attributes:
      source: its folder, or its one file.
      original: what it is called.
      target: the folder that will be written.
      substrate: what is replaced in it.
    """

    source: pathlib.Path
    original: str
    target: pathlib.Path
    substrate: Substrate


def planned(
    package: str,
    substrate: str,
    out: str | os.PathLike,
    omit: Iterable[str] = (),
    name: str | None = None,
    others: Iterable[str] = (),
) -> Planned:
    """A package on a substrate, which `write` writes into a folder. Nothing is written yet.

    Args:
      package: the name of an installed package, or the path of its folder.
      substrate: "numpy" or "jax".
      out: the folder in which the package's own folder is made.
      omit: modules to leave out.
      name: what the package is called there; `PACKAGE_SUBSTRATE` if not given.
      others: packages that are rewritten beside it: `import other` becomes that of
        `other_SUBSTRATE`.

    Raises:
      ModuleNotFoundError: there is no such package.
      ValueError: `name` is no name of a package.
    """
    source = _folder_or_source(package)
    original = source.stem if source.is_file() else targets.name_of(source)
    target = targets.target(out, f"{original}_{substrate}" if name is None else name, original)
    modules = {other: f"{other}_{substrate}" for other in others} | {original: target.name}
    return Planned(
        source, original, target, known_libraries.substrate(substrate, modules, tuple(omit))
    )


def write(plans: Sequence[Planned]) -> list[pathlib.Path]:
    """Writes all packages or none, and returns where.

    What is written is beside the place until it is whole, and then renamed, so that half a package
    is never there. Writing again gives the same bytes. A file `.tf_substrates.json` in the folder
    says that it is written so: a later `write` replaces what has that file, and nothing else.

    Raises:
      SyntaxError: a file of a package is not Python of this version. Nothing is written.
      ValueError: what is written would stand in a package, or a package in it, or two of them would
        be written to one place.
      FileExistsError: what stands there is not what an earlier `write` wrote.
      OSError: the folder cannot be written. What stood there still does.
    """
    targets.check([plan.source for plan in plans], [plan.target for plan in plans])
    texts = [_texts(plan) for plan in plans]
    with targets.beside([plan.target for plan in plans]) as made:
        for plan, rewritten in zip(plans, texts, strict=True):
            _write_files(made[plan.target], rewritten)
            mark.leave(made[plan.target], plan.original, plan.substrate.name)
        targets.put(made)
    return [plan.target for plan in plans]


def _folder_or_source(package: str) -> pathlib.Path:
    given = pathlib.Path(package)
    if package and (given / "__init__.py").is_file():
        return given
    if package.isidentifier():
        return source_of(package)
    raise ModuleNotFoundError(
        f"tf_substrates: {package!r} is no package: it should be the name of an installed one, or"
        " the path of the folder that holds its __init__.py.",
        name=package,
    )


def source_of(package: str) -> pathlib.Path:
    """The folder, or the one file, of an installed package, found without importing it.

    Raises:
      ModuleNotFoundError: there is none, or it has no Python source.
    """
    file = pathlib.Path(first_file_of(package))
    return file.parent if file.name == "__init__.py" else file


def _texts(plan: Planned) -> dict[pathlib.Path, bytes | pathlib.Path]:
    """What each file of the rewritten package holds: bytes, or the file that it copies."""
    found: dict[pathlib.Path, bytes | pathlib.Path] = {}
    for file in files_of(plan.source):
        is_folder = plan.source.is_dir()
        relative = file.relative_to(plan.source) if is_folder else pathlib.Path("__init__.py")
        module = module_of(plan.original, relative)
        if plan.substrate.omits(module):
            continue
        if file.suffix != ".py":
            found[relative] = file
            continue
        text, encoding = decoded(file)
        is_package = relative.name == "__init__.py"
        package = module if is_package else module.rpartition(".")[0]
        edits = edits_of(text, plan.substrate, package, str(file), module)
        found[relative] = as_text(text, edits).encode(encoding)
    return found


def _write_files(folder: pathlib.Path, texts: dict[pathlib.Path, bytes | pathlib.Path]) -> None:
    for relative, content in texts.items():
        written = folder / relative
        written.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            written.write_bytes(content)
        else:
            shutil.copyfile(content, written)


def decoded(file: pathlib.Path) -> tuple[str, str]:
    """The text of a file of Python, and the encoding that it says it has.

    Raises:
      SyntaxError: it has not that encoding, or is no text.
    """
    data = file.read_bytes()
    encoding = "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SyntaxError(f"{file} is no text in {encoding}: {error}") from None
    if "\0" in text:
        raise SyntaxError(f"{file} is no text: it holds a byte 0")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def files_of(source: pathlib.Path) -> list[pathlib.Path]:
    """The files of a package in one order everywhere, without what Python left there."""
    if source.is_file():
        return [source]
    return sorted(
        file
        for file in source.rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and file.suffix not in (".pyc", ".so")
        and file != source / mark.NAME
    )


def module_of(package: str, relative: pathlib.Path) -> str:
    """The dotted name of a file of a package."""
    parts = relative.with_suffix("").parts
    return ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
