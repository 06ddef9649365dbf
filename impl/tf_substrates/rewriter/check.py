"""What of TensorFlow a package uses that a substrate does not have, found without running it.

Such a name is missing, which can be mended; or refused, with a reason; or no name of TensorFlow's.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from tf_substrates import refused, tensorflow_names
from tf_substrates.rewriter import known_libraries, targets
from tf_substrates.rewriter.packages import decoded, files_of, module_of, source_of
from tf_substrates.rewriter.places import TENSORFLOW

MISSING, REFUSED, UNKNOWN = "missing", "refused", "not TensorFlow's"


@dataclasses.dataclass(frozen=True)
class Missing:
    """One use of a name of TensorFlow's that is not here.

    Attributes:
      kind: MISSING, REFUSED or UNKNOWN.
      reason: why a name is refused, and what to do instead.
    """

    file: pathlib.Path
    line: int
    name: str
    kind: str = MISSING
    reason: str = ""

    def __str__(self) -> str:
        said = {
            MISSING: "",
            REFUSED: f" (refused: {self.reason})",
            UNKNOWN: f" (TensorFlow {tensorflow_names.VERSION} has no such name)",
        }
        return f"{self.file}:{self.line}: {self.name}{said[self.kind]}"


def check(package: str, substrate: str = "jax") -> list[Missing]:
    """The uses of names that are not here in a package, by file and line.

    Modules that `rewrite` leaves out of a library that it knows are not looked at.

    Args:
      package: the name of an installed package, or the path of its folder or of one file.
      substrate: "numpy" or "jax".

    Raises:
      ModuleNotFoundError: there is no such package.
      SyntaxError: a file is not Python of this version.
    """
    tf = importlib.import_module(f"tf_substrates.{substrate}.tf")
    files, _ = _files(package, substrate)
    return [missing for file in files for missing in _of_file(file, tf)]


def left_out(package: str, substrate: str = "jax") -> list[pathlib.Path]:
    """The files of a package that `check` does not look at: `rewrite` leaves or replaces them."""
    _, omitted = _files(package, substrate)
    return omitted


def looked_at(package: str | os.PathLike, substrate: str = "jax") -> list[pathlib.Path]:
    """The files of a package that `check` looks at."""
    files, _ = _files(package, substrate)
    return files


def name_of(package: str) -> str:
    """What a package is called that is given by its name or its path."""
    return targets.name_of(_source(package)).removesuffix(".py")


def _files(
    package: str | os.PathLike, substrate: str
) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    source = _source(package)
    place = known_libraries.substrate(substrate, {source.stem: source.stem})
    looked_at: list[pathlib.Path] = []
    omitted: list[pathlib.Path] = []
    for file in files_of(source):
        if file.suffix == ".py":
            relative = file.relative_to(source) if source.is_dir() else pathlib.Path("__init__.py")
            module = module_of(source.stem, relative)
            here = place.omits(module) or place.of(module) != module
            (omitted if here else looked_at).append(file)
    return looked_at, omitted


def _source(package: str | os.PathLike) -> pathlib.Path:
    name, given = os.fspath(package), pathlib.Path(package)
    if not name or (not given.exists() and (os.sep in name or name.endswith(".py"))):
        raise ModuleNotFoundError(
            f"tf_substrates: there is no file or folder {name!r}. What to do: give the path of "
            "a package's folder or of a file of Python, or the name of an installed package."
        )
    source = given if given.exists() else source_of(name)
    if not any(file.suffix == ".py" for file in files_of(source)):
        raise ValueError(
            f"tf_substrates: {str(source)!r} has no file of Python (.py) to look at. What to do: "
            "give the folder of a package, or a file of Python."
        )
    return source


def _of_file(file: pathlib.Path, tf: Any) -> Iterator[Missing]:
    tree = ast.parse(decoded(file)[0], str(file))
    # What a name stands for: `tf` is "", `linalg` of `from tensorflow import linalg` is "linalg".
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                inside = _inside(alias.name)
                if inside is not None:
                    bound[alias.asname or alias.name.partition(".")[0]] = (
                        inside if alias.asname else ""
                    )
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inside = _inside(node.module or "")
            for alias in node.names if inside is not None else ():
                name = f"tensorflow.{inside}.{alias.name}" if inside else f"tensorflow.{alias.name}"
                path = (
                    _inside("tensorflow.compat." + alias.name)
                    if inside == "compat"
                    else _inside(name)
                )
                bound[alias.asname or alias.name] = path or ""
                if path and not _has(tf, path):
                    yield _use(file, node.lineno, path)
    parts_of_longer = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in parts_of_longer:
            path = _dotted(node, bound)
            absent = path and _first_missing(tf, path)
            if absent:
                found.add(_use(file, node.lineno, absent))
    yield from sorted(found, key=lambda missing: (missing.line, missing.name))


def _use(file: pathlib.Path, line: int, path: str) -> Missing:
    reason = refused.reason_for(path)
    if reason:
        return Missing(file, line, f"tf.{path}", REFUSED, reason)
    # The list of names has the public ones of TensorFlow 2 alone.
    listed = path.partition(".")[0] not in ("compat", "compiler", "python", "__internal__")
    unknown = listed and not tensorflow_names.has(f"tf.{path}")
    return Missing(file, line, f"tf.{path}", UNKNOWN if unknown else MISSING)


def _inside(module: str) -> str | None:
    """`tensorflow.compat.v2.linalg` is "linalg" of TensorFlow; None for another package."""
    for known in TENSORFLOW:
        if module == known:
            return ""
        if module.startswith(known + "."):
            return module[len(known) + 1 :]
    return None


def _dotted(node: ast.expr, bound: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return ".".join(filter(None, [bound[node.id], *reversed(parts)]))


def _first_missing(tf: Any, path: str) -> str | None:
    """The first name along a path that is not there; what is below a symbol is not TensorFlow's."""
    owner, so_far = tf, []
    for part in path.split("."):
        so_far.append(part)
        if not hasattr(owner, part):
            return ".".join(so_far)
        owner = getattr(owner, part)
        if type(owner).__name__ != "Namespace":
            return None
    return None


def _has(tf: Any, path: str) -> bool:
    return _first_missing(tf, path) is None
