"""tf.Module, tf.name_scope and the scopes that mean nothing outside TensorFlow's graphs."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from tf_substrates.numpy.namespaces import export
from tf_substrates.numpy.variables import Variable

_SCOPES: list[str] = []


@export("name_scope")
class name_scope:
    """A context that names operations; what is named is nothing here, but modules and errors.

    >>> from tf_substrates.numpy import tf
    >>> with tf.name_scope("a"), tf.name_scope("b") as scope:
    ...     print(scope)
    a/b/
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        outer = _SCOPES[-1] if _SCOPES else ""
        own = self._name if self._name.endswith("/") or not self._name else f"{self._name}/"
        _SCOPES.append(own if self._name.endswith("/") else outer + own)
        return _SCOPES[-1]

    def __exit__(self, *error: object) -> None:
        _SCOPES.pop()


@export("compat.v1.name_scope")
class name_scope_v1(name_scope):
    """As in TensorFlow 1: `name_scope(name, default_name, values)`."""

    def __init__(self, name: Any, default_name: Any = None, values: Any = None):
        super().__init__(name or default_name or "")


@export("get_current_name_scope")
def get_current_name_scope() -> str:
    return _SCOPES[-1].rstrip("/") if _SCOPES else ""


@export("control_dependencies", "compat.v1.control_dependencies")
@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Everything happens in the order it is written, so there is nothing to wait for."""
    for item in control_inputs or ():
        if callable(item):
            item()
    yield


@export("device")
@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Where operations run is the substrate's choice."""
    yield


@export("init_scope")
@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    yield


@export("no_op", "compat.v1.no_op")
def no_op(name: Any = None) -> None:
    """Nothing."""


@export("group", "compat.v1.group")
def group(*inputs: Any, **kwargs: Any) -> None:
    """Nothing: the inputs have run."""
    unknown = set(kwargs) - {"name"}
    if unknown:
        raise ValueError(f"Unknown keyword arguments: {', '.join(sorted(unknown))}")


@export("tuple")
def tf_tuple(tensors: Any, control_inputs: Any = None, name: Any = None) -> list:
    return list(tensors)


@export("executing_eagerly")
def executing_eagerly() -> bool:
    """True: nothing here builds a graph of TensorFlow's."""
    return True


@export("inside_function")
def inside_function() -> bool:
    return False


def _snake(name: str) -> str:
    """`MyMLP2` is `my_mlp2`, as tf.Module names itself."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()


@export("Module")
class Module:
    """A container of variables and other modules, found by walking its attributes.

    >>> from tf_substrates.numpy import tf
    >>> class Dense(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = tf.Variable(tf.zeros([2, 3]))
    >>> len(Dense().trainable_variables), Dense().name
    (1, 'dense')
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset = frozenset(())

    def __init__(self, name: str | None = None):
        if name is None:
            name = _snake(type(self).__name__)
        elif not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python"
                " identifiers."
            )
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self) -> Any:
        return name_scope(self._name + "/")

    @property
    def variables(self) -> tuple:
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple:
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple:
        return tuple(self._flatten(predicate=_is_module))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable | None = None,
        attribute_traversal_key: Any = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator:
        """Whatever in the attributes of this module, and of those below it, fulfils a predicate."""
        seen: set[int] = set()
        for path, value in _walk(self, (), recursive, seen, self._TF_MODULE_IGNORED_PROPERTIES):
            if value is not self and (predicate is None or predicate(value)):
                yield (path, value) if with_path else value

    def _no_dependency(self, value: Any) -> Any:
        """The value, which nothing tracks."""
        return value

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Runs a method inside the module's name scope."""

        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return call


def _is_module(value: Any) -> bool:
    return isinstance(value, Module)


def _is_variable(value: Any) -> bool:
    return isinstance(value, Variable)


def _walk(
    value: Any, path: tuple, recursive: bool, seen: set[int], ignored: frozenset
) -> Iterator[tuple[tuple, Any]]:
    if isinstance(value, Module):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield path, value
        if path and not recursive:
            return
        left_out = ignored | value._TF_MODULE_IGNORED_PROPERTIES
        for name in sorted(vars(value)):
            if name not in left_out:
                yield from _walk(vars(value)[name], (*path, name), recursive, seen, ignored)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _walk(value[key], (*path, key), recursive, seen, ignored)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), recursive, seen, ignored)
    elif id(value) not in seen:
        seen.add(id(value))
        yield path, value
