"""The mark in a package that `rewrite` wrote, by which it knows what it may replace.

The mark lists each file with the hash of its bytes. So a file that somebody added or changed is
known, and a folder that holds one is not replaced.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Iterator

NAME = ".tf_substrates.json"
_MADE_BY = "python -m tf_substrates rewrite"
# What Python and its tools leave beside modules.
_OF_TOOLS = frozenset({"__pycache__", ".DS_Store", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


def leave(folder: pathlib.Path, package: str, substrate: str) -> None:
    """Writes the mark of a package that is whole.

    Args:
      folder: the package's folder.
      package: what it was rewritten from.
      substrate: "numpy" or "jax".
    """
    files = {name: _hash(folder / name) for name in sorted(_files(folder))}
    mark = {"made by": _MADE_BY, "package": package, "substrate": substrate, "files": files}
    (folder / NAME).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8", newline="")


def not_made(folder: pathlib.Path) -> str:
    """Why a folder is not what `rewrite` made; empty if it is."""
    files = _marked(folder)
    if files is None:
        return f"rewrite did not make it: it has no {NAME} of rewrite"
    found = set(_files(folder))
    for name in sorted(found):
        if name not in files:
            return f"rewrite did not write {name} there"
        if files[name] != _hash(folder / name):
            return f"{name} was changed after rewrite wrote it"
    return ""


def _marked(folder: pathlib.Path) -> dict[str, str] | None:
    file = folder / NAME
    if not file.is_file():
        return None
    try:
        mark = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    if not isinstance(mark, dict) or mark.get("made by") != _MADE_BY:
        return None
    files = mark.get("files")
    return files if isinstance(files, dict) else None


def _files(folder: pathlib.Path) -> Iterator[str]:
    """The files and links of a folder, and the folders that are empty, by their names in it."""
    for path in folder.rglob("*"):
        below = path.relative_to(folder)
        if _OF_TOOLS.intersection(below.parts) or below.as_posix() == NAME:
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if path.suffix != ".pyc" and not (is_folder and any(path.iterdir())):
            yield below.as_posix()


def _hash(path: pathlib.Path) -> str:
    """What a file holds; nothing that a file can hold, for a link or a folder."""
    if path.is_symlink() or not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
