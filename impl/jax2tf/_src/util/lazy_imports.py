"""Modules that are imported on the first use of a name: of a package, or TensorFlow as `tf`.

A program that imports jax2tf and converts nothing does not import the rules of all primitives.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

__all__ = ["LazyModule", "names", "tf"]

# One thread at a time imports: two threads could each wait for a module that the other imports, and
# Python raises an error then.
_lock = threading.RLock()


def names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    Args:
      package: the package's name.
      modules: for each name the module that has it, or the module itself if it has that name.
    """

    def get(name: str) -> object:
        if name not in modules:
            has = "" if len(modules) > 3 else f"; it has {', '.join(modules)}"
            raise AttributeError(f"module {package!r} has no attribute {name!r}{has}")
        with _lock:
            module = importlib.import_module(modules[name])
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        # The next access does not call `get`.
        setattr(sys.modules[package], name, value)
        return value

    def names_of_package() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names_of_package


class LazyModule:
    """A module of TensorFlow's that is imported when an attribute is first read."""

    __slots__ = ("__dict__", "_name")

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        with _lock:
            module = importlib.import_module(self._name)
        # Later reads find the attributes as they are in the module then.
        self.__dict__ = vars(module)
        return getattr(module, attribute)


if TYPE_CHECKING:
    import tensorflow as tf
else:
    tf = LazyModule("tensorflow")
