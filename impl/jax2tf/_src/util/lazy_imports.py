"""Modules that are imported on the first use of a name: of a package, or TensorFlow as `tf`.

A program that imports jax2tf and converts nothing does not import the rules of all primitives.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jax2tf._src.api.errors import MissingPackageError
from jax2tf._src.util.lru import cached

__all__ = [
    "LazyModule",
    "classes",
    "has_tensorflow",
    "load_tensorflow",
    "missing_tensorflow",
    "names",
    "tf",
]

# One thread at a time imports: two threads could each wait for a module that the other imports, and
# Python raises an error then.
_lock = threading.RLock()
_tensorflows: list[LazyModule] = []


def names(
    package: str, modules: Mapping[str, str], without_tensorflow: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    Args:
      package: the package's name.
      modules: for each name the module that has it, or the module itself if it has that name.
      without_tensorflow: the functions that refuse no call where TensorFlow is not installed.
    """

    def get(name: str) -> object:
        if name not in modules:
            has = "" if len(modules) > 3 else f"; it has {', '.join(modules)}"
            raise AttributeError(f"module {package!r} has no attribute {name!r}{has}")
        with _lock:
            value = _value(package, name, modules[name], name in without_tensorflow)
        # The next access does not call `get`.
        setattr(sys.modules[package], name, value)
        return value

    def names_of_package() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names_of_package


def _value(package: str, name: str, module_name: str, is_free: bool) -> object:
    """A name of a package; without TensorFlow, functions and TensorFlow's classes refuse calls."""
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if error.name != "tensorflow":
            raise
        return _stand_in(package, name)
    if module.__name__ == f"{package}.{name}":
        return module
    value = getattr(module, name)
    if inspect.isfunction(value) and not is_free and not has_tensorflow():
        return functools.wraps(value)(_refusal(f"{package}.{name}"))
    return value


def _stand_in(package: str, name: str) -> object:
    """A function, or a class, whose module cannot be imported."""
    refusal = _refusal(f"{package}.{name}")
    if name[0].isupper():
        return type(name, (), {"__init__": refusal, "__module__": package})
    refusal.__name__ = refusal.__qualname__ = name
    return refusal


def _refusal(name: str) -> Callable[..., None]:
    def refuse(*args: object, **kwargs: object) -> None:
        raise missing_tensorflow(name)

    return refuse


def missing_tensorflow(name: str) -> MissingPackageError:
    """The error of a function or command of this name that needs TensorFlow."""
    return MissingPackageError(
        f"{name} needs the package tensorflow, which is not installed. What to do: install it "
        "with pip install tensorflow, or tensorflow-cpu",
        name="tensorflow",
    )


class LazyModule:
    """A module of TensorFlow's that is imported when an attribute is first read.

    `import jax2tf` imports it where TensorFlow is installed, and says so if it has moved.
    """

    __slots__ = ("__dict__", "_name")

    def __init__(self, name: str):
        self._name = name
        _tensorflows.append(self)

    def load(self) -> ModuleType:
        """Imports the module.

        Raises:
          MissingPackageError: TensorFlow is not installed.
        """
        if not has_tensorflow():
            raise missing_tensorflow("This part of jax2tf")
        module = importlib.import_module(self._name)
        # Later reads find the attributes as they are in the module then.
        self.__dict__ = vars(module)
        return module

    def __getattr__(self, attribute: str) -> Any:
        with _lock:
            return getattr(self.load(), attribute)


if TYPE_CHECKING:
    import tensorflow as tf
else:
    tf = LazyModule("tensorflow")


def load_tensorflow() -> None:
    """Imports TensorFlow and those of its modules that compat/ names, if it is installed."""
    if has_tensorflow():
        for module in _tensorflows:
            module.load()


@cached
def has_tensorflow() -> bool:
    """Whether TensorFlow is installed; imports it."""
    try:
        importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        return False
    return True


@cached
def classes(*names: str) -> Any:
    """A tuple of TensorFlow's classes, for isinstance; empty if it is not installed."""
    return tuple(operator.attrgetter(name)(tf) for name in names) if has_tensorflow() else ()
