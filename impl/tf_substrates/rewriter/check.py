"""What of TensorFlow a package uses that a substrate does not have, found without running it."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

from tf_substrates.rewriter.packages import files_of, source_of
from tf_substrates.rewriter.places import TENSORFLOW


@dataclasses.dataclass(frozen=True)
class Missing:
    """One use of a name of TensorFlow's that is not here."""

    file: pathlib.Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}"


def check(package: str, substrate: str = "jax") -> list[Missing]:
    """The uses of missing names in a package, by file and line.

    Args:
      package: the name of an installed package, or the path of its folder or of one file.
      substrate: "numpy" or "jax".

    Raises:
      ModuleNotFoundError: there is no such package.
      SyntaxError: a file is not Python of this version.
    """
    tf = importlib.import_module(f"tf_substrates.{substrate}.tf")
    given = pathlib.Path(package)
    source = given if given.exists() else source_of(package)
    return [
        missing
        for file in files_of(source)
        if file.suffix == ".py"
        for missing in _of_file(file, tf)
    ]


def _of_file(file: pathlib.Path, tf: Any) -> Iterator[Missing]:
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
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
                    yield Missing(file, node.lineno, f"tf.{path}")
    parts_of_longer = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in parts_of_longer:
            path = _dotted(node, bound)
            absent = path and _first_missing(tf, path)
            if absent:
                found.add(Missing(file, node.lineno, f"tf.{absent}"))
    yield from sorted(found, key=lambda missing: (missing.line, missing.name))


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
