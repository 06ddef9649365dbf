"""What libraries import of modules that TensorFlow does not document, and have no public name for.

Test decorators, `remove_undocumented`, decorators of deprecated functions, and second names of
tf.nest and of Python's `inspect`.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from tf_substrates.numpy.namespaces import EXPORTS, export, export_lazily
from tf_substrates.numpy.tensors import Reference, Tensor, is_tensor, traced

JAX_MODE = False

export("python.util.object_identity.Reference")(Reference)


class _HasValue(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return is_tensor(instance) and not traced(instance)


if JAX_MODE:

    class EagerTensor(metaclass=_HasValue):
        """What tensors are that have a value, and are not traced. It makes none."""

else:
    EagerTensor = Tensor  # type: ignore[assignment]

export("python.framework.ops.EagerTensor")(EagerTensor)


@export("python.trackable.data_structures.sticky_attribute_assignment")
def sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """The value as it is: a module finds its variables by walking its attributes."""
    return value


_TEST_UTIL = "python.framework.test_util"
export_lazily(f"{_TEST_UTIL}.TensorFlowTestCase", "test_case", "TestCase")


class _Inspect(types.ModuleType):
    """Python's `inspect`; the functions of TensorFlow's API have no annotations."""

    def getfullargspec(self, obj: Any) -> inspect.FullArgSpec:
        # Modules that an import hook has rewritten are in tf_substrates.on_jax, and are not ours.
        module = str(getattr(obj, "__module__", ""))
        if not module.startswith("tf_substrates.") or module.startswith("tf_substrates.on_"):
            return inspect.getfullargspec(obj)
        return inspect.getfullargspec(inspect.unwrap(obj))._replace(annotations={})

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)


export("python.util.tf_inspect")(_Inspect("tf_inspect"))
for _name in [name for name in EXPORTS if name.startswith("nest.")]:
    export(f"python.util.{_name}")(EXPORTS[_name])


for _name in ("run_all_in_graph_and_eager_modes", "run_in_graph_and_eager_modes"):
    export_lazily(f"{_TEST_UTIL}.{_name}", "compiled_tests", _name)


@export(f"{_TEST_UTIL}.run_all_in_deprecated_graph_mode_only")
def run_all_in_deprecated_graph_mode_only(cls: type) -> type:
    return cls


@export(f"{_TEST_UTIL}.run_v2_only")
def run_v2_only(func: Any = None, reason: Any = None) -> Any:
    return _as_it_is if func is None else func


@export(f"{_TEST_UTIL}.run_deprecated_v1", f"{_TEST_UTIL}.deprecated_graph_mode_only")
def run_deprecated_v1(func: Any) -> Any:
    return func


def _as_it_is(function: Any) -> Any:
    return function


@export("python.util.all_util.remove_undocumented")
def remove_undocumented(
    module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None
) -> None:
    """Takes public names out of a module that are neither allowed nor in docstrings as `@@name`."""
    module = sys.modules[module_name]
    documented = doc_string_modules or [module]
    kept = {
        name
        for source in documented
        for name in re.findall(r"^@@(\w+)", source.__doc__ or "", re.M)
    }
    kept.update(allowed_exception_list or ())
    for name in dir(module):
        if name not in kept and not name.startswith("_"):
            delattr(module, name)


@export("python.util.deprecation.deprecated")
def deprecated(date: Any, instructions: Any, warn_once: bool = True) -> Callable:
    """A decorator that leaves a deprecated function as it is, without TensorFlow's log line."""
    return _as_it_is


@export("python.util.deprecation.deprecated_args")
def deprecated_args(
    date: Any, instructions: Any, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable:
    return _as_it_is


@export("python.util.deprecation.deprecated_arg_values")
def deprecated_arg_values(
    date: Any, instructions: Any, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable:
    return _as_it_is


@export("python.util.deprecation.deprecated_alias")
def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True
) -> Any:
    return func_or_class


@export("python.util.deprecation.silence")
@contextlib.contextmanager
def silence() -> Iterator[None]:
    yield
