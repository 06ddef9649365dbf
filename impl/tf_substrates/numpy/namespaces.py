"""Where TensorFlow's public names are registered, and the decorators that register them."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy.known_values import as_twin, is_known, is_small, known, unchanging
from tf_substrates.numpy.recording import recorded, staged

JAX_MODE = False
if JAX_MODE:
    import jax

# What TensorFlow has no derivative for, not even zeros.
_WITHOUT_DERIVATIVE = frozenset(
    {
        "stop_gradient",
        "zeros_like",
        "ones_like",
        "floor",
        "math.ceil",
        "round",
        "math.rint",
        "math.floordiv",
        "truncatediv",
    }
)

# The public name without its leading `tf.` ("math.exp") and what it stands for.
EXPORTS: dict[str, Any] = {}


def export(*names: str) -> Callable[[Any], Any]:
    """Registers a symbol under TensorFlow's public names, without their leading `tf.`."""

    def register(symbol: Any) -> Any:
        for name in names:
            if name in EXPORTS:
                raise ValueError(f"tf.{name} is registered twice: {EXPORTS[name]} and {symbol}")
            EXPORTS[name] = symbol
        return symbol

    return register


# What is imported when it is asked for: the module beside this one, and its name there.
LAZY: dict[str, tuple[str, str]] = {}


def export_lazily(name: str, module: str, symbol: str) -> None:
    """Registers a symbol of a module that is imported when the symbol is asked for."""
    if name in EXPORTS or name in LAZY:
        raise ValueError(f"tf.{name} is registered twice")
    LAZY[name] = module, symbol


def named(function: Callable, name: str, documentation: str) -> Callable:
    """A function that a table makes, with a name and documentation of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation
    return function


def op(*names: str, static: bool = False) -> Callable[[Callable], Callable]:
    """Registers a function that computes with plain arrays and returns them.

    On NumPy its results become tensors. On JAX, with `static`, a call whose arguments are all
    integers or booleans known while tracing is computed by NumPy, so that the arithmetic of shapes
    stays usable as a shape under jax.jit.
    """

    def register(function: Callable) -> Callable:
        if JAX_MODE:
            wrapped = _static_by_numpy(function, names[0]) if static else _jax_out(function)
            wrapped = _known_by_numpy(wrapped, names[0])
            wrapped = recorded(wrapped, connects=names[0] not in _WITHOUT_DERIVATIVE)
        else:
            wrapped = _tensors_out(function)
        return export(*names)(wrapped)

    return register


def _tensors_out(function: Callable) -> Callable:
    tensors = importlib.import_module(f"{__package__}.tensors")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return tensors.wrap(function(*args, **kwargs))

    return call


def _jax_out(function: Callable) -> Callable:
    """The results on the device, but for integers and booleans, which stay known under a trace."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _on_device(function(*args, **kwargs))

    return call


def _on_device(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "iubOS":
        return jax.numpy.asarray(value)
    if isinstance(value, np.ndarray):
        return unchanging(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_on_device, value))
    if type(value) in (list, tuple):
        return type(value)(map(_on_device, value))
    return value


def _static_by_numpy(function: Callable, name: str) -> Callable:
    parameters = list(inspect.signature(function).parameters.values())
    dtype_at = next((i for i, p in enumerate(parameters) if p.name in ("dtype", "out_type")), None)
    default = None if dtype_at is None else parameters[dtype_at].default

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        known = all(map(_is_static, args)) and all(map(_is_static, kwargs.values()))
        if known and dtype_at is not None:
            passed = len(args) > dtype_at or parameters[dtype_at].name in kwargs
            known = passed or _is_static(default)
        if known:
            importlib.import_module(".numpy.tf", "tf_substrates")
            twin = importlib.import_module(".numpy.namespaces", "tf_substrates").EXPORTS[name]
            return _on_device(_plain(twin(*args, **kwargs)))
        return _on_device(function(*args, **kwargs))

    return call


# What has a state, or gives as many elements as its first argument says.
_OF_A_SHAPE = frozenset({"zeros", "ones", "fill", "eye"})


def _known_by_numpy(function: Callable, name: str) -> Callable:
    """The function, which NumPy computes of known numbers while JAX traces."""
    if name.startswith("random."):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not all(map(is_known, args)) or not all(map(is_known, kwargs.values())) or not staged():
            return function(*args, **kwargs)
        if name in _OF_A_SHAPE and not (args and is_small(args[0])):
            return function(*args, **kwargs)
        importlib.import_module(".numpy.tf", "tf_substrates")
        twin = importlib.import_module(".numpy.namespaces", "tf_substrates").EXPORTS[name]
        args = tuple(map(as_twin, args))
        return _known(_plain(twin(*args, **{k: as_twin(v) for k, v in kwargs.items()})))

    return call


def _known(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_known, value))
    if type(value) in (list, tuple):
        return type(value)(map(_known, value))
    return known(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


def _is_static(value: Any) -> bool:
    """Whether a value is known while tracing and holds no float, so that NumPy may compute it."""
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return not (isinstance(value, str) and _names_a_float(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "iubOSU"
    if isinstance(value, (list, tuple, range)):
        return all(map(_is_static, value))
    dtype = getattr(value, "as_numpy_dtype", None)
    if dtype is not None:
        return np.dtype(dtype).kind in "iubOS"
    if isinstance(value, (np.dtype, type)):
        try:
            return np.dtype(value).kind in "iubOS"
        except TypeError:
            return False
    return hasattr(value, "as_list")  # a TensorShape


def _names_a_float(text: str) -> bool:
    return text in ("half", "float", "double") or text.startswith(("float", "bfloat", "complex"))


class Namespace(types.ModuleType):
    """A module of TensorFlow's: its public names and nothing else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{public_name(self.__name__)}.{name}".removeprefix("tf.")
        if path in LAZY:
            module, symbol = LAZY[path]
            setattr(self, name, getattr(importlib.import_module(f"{__package__}.{module}"), symbol))
            return getattr(self, name)
        raise AttributeError(missing(public_name(self.__name__), name, list(vars(self))))


def public_name(module: str) -> str:
    """`tf_substrates.jax.tf.math` is `tf.math`."""
    return "tf" + module.partition(".tf")[2]


def missing(owner: str, name: str, here: list[str]) -> str:
    """What to say of a name that a module of TensorFlow's does not have here."""
    names = importlib.import_module("tf_substrates.tensorflow_names")
    wanted = f"{owner}.{name}"
    candidates = [symbol for symbol in here if not symbol.startswith("_")]
    near = difflib.get_close_matches(name, candidates, n=3)
    elsewhere = sorted(f"tf.{known}" for known in EXPORTS if known.rpartition(".")[2] == name)
    hint = elsewhere or [f"{owner}.{symbol}" for symbol in near]
    refused = importlib.import_module("tf_substrates.refused").reason_for(wanted)
    if refused:
        return f"{wanted} is refused by tf_substrates: {refused}."
    if wanted.startswith("tf.compat.v1."):  # the list of names has those of TensorFlow 2 alone
        what = f"{wanted} is not in tf_substrates, which has a few names of TensorFlow 1"
    elif names.has(wanted):
        what = f"{wanted} is TensorFlow's and not yet in tf_substrates"
    else:
        what = f"TensorFlow {names.VERSION} has no {wanted}"
    return f"{what}." + (f" Near it is: {', '.join(hint)}." if hint else "")
