"""`install` replaces `jax.experimental.jax2tf` by this package, and `uninstall` restores it."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import threading
import types
from collections.abc import Mapping

_PACKAGE = "jax.experimental.jax2tf"

# The public names of JAX's module jax2tf that exist here. The package itself gets all our names.
_IN_MODULE = (
    "DisabledSafetyCheck",
    "PolyShape",
    "convert",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "split_to_logical_devices",
)

# A remedy for each name that JAX's own jax2tf has or had, and that does not exist here.
_INSTEAD: Mapping[str, str] = {
    "DEFAULT_NATIVE_SERIALIZATION": "leave native_serialization and enable_xla out of the call",
    "UnspecifiedOutputShapeDtype": "leave output_shape_dtype out of the call",
    "CallTfEffect": "call_tf(..., has_side_effects=True)",
    "CallTfOrderedEffect": "call_tf(..., has_side_effects=True, ordered=True)",
    "call_tf_effect": "call_tf(..., has_side_effects=True)",
    "call_tf_ordered_effect": "call_tf(..., has_side_effects=True, ordered=True)",
    "call_tf_p": "call_tf",
    "preprocess_arg_tf": "dtype_of_val, which gives the dtype that an argument is cast to",
    "TfVal": "tf.types.experimental.TensorLike",
    "TfConcreteFunction": "tf.types.experimental.ConcreteFunction",
    "DType": "tf.DType",
    "PrecisionType": "jax.lax.PrecisionLike",
    "shape_poly": "PolyShape for shape_poly.PolyShape, jax.export for everything else",
}

_lock = threading.Lock()
# The replaced modules; None while nothing is installed.
_replaced: _Replaced | None = None


def install() -> None:
    """Makes this package `jax.experimental.jax2tf` for all later imports in this process.

    Libraries that convert with `from jax.experimental import jax2tf` (Keras on its JAX backend,
    Orbax, the TensorFlow.js converter) then convert with this package. Names that a module imported
    earlier (`from jax.experimental.jax2tf import convert` at its top) do not change, so install
    before such a module is imported. Installing again changes nothing.

    >>> import jax, jax2tf
    >>> install()
    >>> from jax.experimental import jax2tf as installed
    >>> installed.convert is jax2tf.convert
    True
    >>> uninstall()
    """
    global _replaced
    with _lock:
        if _replaced is None:
            experimental = importlib.import_module("jax.experimental")
            _replaced = _Replaced(experimental)
            modules = _stand_ins()
            _put(modules)
            vars(experimental)["jax2tf"] = modules[_PACKAGE]


def uninstall() -> None:
    """Restores the modules that `install` replaced; without an `install` it changes nothing."""
    global _replaced
    with _lock:
        if _replaced is not None:
            _replaced.put_back()
            _replaced = None


class _Replaced:
    """The modules under the names of JAX's jax2tf, and the attribute of jax.experimental."""

    def __init__(self, experimental: types.ModuleType):
        self.modules = _modules()
        self._experimental = experimental
        self._attribute = {k: v for k, v in vars(experimental).items() if k == "jax2tf"}

    def put_back(self) -> None:
        _put(self.modules)
        vars(self._experimental).pop("jax2tf", None)
        vars(self._experimental).update(self._attribute)


def _put(modules: Mapping[str, types.ModuleType]) -> None:
    """Replaces all modules of JAX's package in sys.modules by `modules`.

    Another thread that imports the package meanwhile finds the old or the new modules.
    """
    sys.modules.update(modules)
    for name in _modules().keys() - modules.keys():
        del sys.modules[name]


def _modules() -> dict[str, types.ModuleType]:
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
    }


class _StandIn(types.ModuleType):
    """A module under JAX's name with the public names of this package.

    It is not an alias of our module, because Python would import ours again under JAX's names.
    """

    def __init__(self, name: str, names: Mapping[str, object], is_package: bool = False):
        super().__init__(name, _this_package().__doc__)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=is_package)
        if is_package:
            self.__path__: list[str] = []
        self.__all__ = sorted(names)
        vars(self).update(names)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        others = ", ".join(self.__all__)
        instead = _INSTEAD.get(name, f"use one of the public names ({others})")
        raise AttributeError(
            f"{self.__name__}.{name}: jax2tf.install() put jax2tf in the place of JAX's own "
            f"jax2tf, and it has no such name. What to do: {instead}; or call jax2tf.uninstall() "
            "before what needs JAX's own"
        )


def _stand_ins() -> dict[str, types.ModuleType]:
    """The package and its modules, by their full names."""
    package = _this_package()
    public = {name: getattr(package, name) for name in package.__all__ if name[0] != "_"}
    functions = _StandIn(f"{_PACKAGE}.jax2tf", {name: public[name] for name in _IN_MODULE})
    calls = _StandIn(f"{_PACKAGE}.call_tf", {"call_tf": public["call_tf"]})
    stand_in = _StandIn(_PACKAGE, {**public, "jax2tf": functions}, is_package=True)
    return {module.__name__: module for module in (functions, calls, stand_in)}


def _this_package() -> types.ModuleType:
    """jax2tf, which imports this module and so cannot be imported at its top."""
    return importlib.import_module("jax2tf")
