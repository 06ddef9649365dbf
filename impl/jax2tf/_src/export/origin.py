"""Where a file comes from: the versions of the writers, the function's line, the git commit."""

from __future__ import annotations

import decimal
import importlib.metadata
import inspect
import os
import subprocess
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import jax

from jax2tf._src.api import versions
from jax2tf._src.export.signatures import Signature
from jax2tf._src.tracing import functions
from jax2tf._src.tracing.functions import Function
from jax2tf._src.util.lazy_imports import has_tensorflow, tf
from jax2tf._src.util.typing import PyTree

# A repository on a slow disk must not hold up an export.
_SECONDS_FOR_GIT = 5.0


def metadata_of(signatures: Sequence[Signature], packages: Iterable[str]) -> dict[str, str]:
    """The metadata that says where a file comes from.

    Args:
      signatures: the functions.
      packages: the modules that write and run the format.
    """
    places = [_place(signature.function) for signature in signatures]
    return {
        "jax2tf": versions.__version__,
        "jax": jax.__version__,
        **({"tensorflow": tf.__version__} if has_tensorflow() else {}),
        **{name: version for name in packages if (version := _version(name))},
        "source": ", ".join(map(_source, signatures)),
        **_joined("line", (line for line, _ in places)),
        **_joined("commit", (commit for _, commit in places)),
    }


def said(differences: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """What the verification adds: the largest difference, rounded up to one digit.

    The digits behind it are those of one processor, and the file should be the same on others.
    """
    largest = max((d for outputs in differences.values() for d in outputs.values()), default=0.0)
    to_one_digit = decimal.Context(prec=1, rounding=decimal.ROUND_UP)
    return {"largest_difference": str(float(to_one_digit.create_decimal_from_float(largest)))}


def _version(package: str) -> str:
    # TensorFlow's packages have several names; its version is that of the module.
    if package == "tensorflow":
        return ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _joined(key: str, values: Iterable[str]) -> dict[str, str]:
    present = list(dict.fromkeys(filter(None, values)))
    return {key: ", ".join(present)} if present else {}


def _source(signature: Signature) -> str:
    fun = signature.function
    module = getattr(fun, "__module__", None) or type(fun).__module__
    return f"{module}:{getattr(fun, '__qualname__', Function(fun).name)}"


def _place(fun: PyTree) -> tuple[str, str]:
    """The file and line of a function, as "models/net.py:12", and the commit of the file.

    The path begins at the root of the git repository that tracks the file. Without one the path is
    the file's name, and the commit is empty. "-dirty" behind a commit says that files differ from
    it. Both are empty for a function that no file has, as one of a notebook.
    """
    code = _code(fun)
    if code is None or not os.path.isfile(code.co_filename):
        return "", ""
    file = Path(code.co_filename).resolve()
    tracked = _git(file.parent, "ls-files", "--error-unmatch", "--full-name", file.name)
    if not tracked:
        return f"{file.name}:{code.co_firstlineno}", ""
    commit = _git(file.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return f"{tracked}:{code.co_firstlineno}", commit


def _code(fun: PyTree) -> types.CodeType | None:
    """The code of the function inside of partials, bound methods and wrappers such as jax.jit."""
    inner = _unwrapped(fun)
    if not isinstance(inner, types.FunctionType):
        inner = _unwrapped(inspect.getattr_static(type(inner), "__call__", None))
    code = getattr(inner, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _unwrapped(fun: PyTree) -> PyTree:
    inner = functions.inner(fun)
    while hasattr(inner, "__wrapped__") and inner.__wrapped__ is not inner:
        inner = functions.inner(inner.__wrapped__)
    return inner


def _git(folder: Path, *words: str) -> str:
    """What git prints; empty if it is missing, refuses or takes too long."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_FOR_GIT,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
