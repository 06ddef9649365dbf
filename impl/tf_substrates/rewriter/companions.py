"""Other libraries that a package imports and that are written against TensorFlow too.

They have to be rewritten together: what is rewritten without them imports TensorFlow through them.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterable

from tf_substrates.rewriter.packages import decoded, files_of, source_of

# Quicker than parsing every file; examples in documentation look like imports too.
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
# At the margin: an import in a function, as of libraries for several frameworks, may never run.
_OF_TENSORFLOW = re.compile(rb"^(?:import|from)[ \t]+tensorflow\b", re.MULTILINE)
# They have parts for TensorFlow, and run without it. What stands for tf_keras is here.
_WITHOUT = frozenset({"jax", "jax2tf", "keras", "tensorflow", "tf_keras", "tf_substrates"})


def companions(files: Iterable[pathlib.Path], together: Iterable[str]) -> list[str]:
    """The top-level libraries that files import and that import TensorFlow, in order of name.

    Args:
      files: of Python.
      together: packages that are rewritten already, which are not named.
    """
    left_out = {*together, *_WITHOUT, *sys.stdlib_module_names}
    mentioned: dict[str, list[str]] = {}
    for file in files:
        text = decoded(file)[0]
        for name in set(_IMPORT.findall(text)) - left_out:
            mentioned.setdefault(name, []).append(text)
    return sorted(
        name
        for name, texts in mentioned.items()
        if _uses_tensorflow(name) and any(name in _imports(text) for text in texts)
    )


def _imports(text: str) -> set[str]:
    """The top-level modules that a text of Python imports, and not its documentation."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module
        if node.level == 0
    ]
    return {name.partition(".")[0] for name in names}


def advice(package: str, found: Iterable[str]) -> str:
    """What to do about the libraries that `companions` found; empty if there are none."""
    names = list(found)
    if not names:
        return ""
    them = ", ".join(names)
    packages = ", ".join(f'"{name}"' for name in (package, *names))
    return (
        f"{package} imports {them}, written against TensorFlow too, and needs TensorFlow through it"
        " unless they are rewritten together. What to do: name them in a pyproject.toml,"
        f" [tool.tf_substrates] packages = [{packages}], and run rewrite --out FOLDER; or"
        f" tf_substrates.install(SUBSTRATE, [{packages}])."
    )


def _uses_tensorflow(package: str) -> bool:
    try:
        source = source_of(package)
    except ModuleNotFoundError:
        # It is not here to be read; such a name says enough.
        return package.startswith(("tensorflow_", "tf_"))
    return any(
        file.suffix == ".py" and _OF_TENSORFLOW.search(file.read_bytes()) is not None
        for file in files_of(source)
        if "test" not in file.name
    )
