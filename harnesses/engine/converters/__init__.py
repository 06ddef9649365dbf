"""Converters that do not end in TensorFlow: the class to write, and those that are here.

    class MyConverter(Converter):
        def convert(self, fun, args):          # may raise: that is an error in the phase "lower"
            return my_package.compile(fun, args)

        def call(self, model, args):           # may raise: that is an error in the phase "run"
            return model.run(args)

    python -m harnesses run --impl my_module:MyConverter

The judge makes one object of the class in each process. `SHIPPED` names those that need no module
before the class:

    jax2onnx      jax2onnx, run by ONNX Runtime
    jax.export    StableHLO: exported, serialised, read back and called
    jax.jit       the same function under jax.jit, on another device than JAX's result is from
"""

import abc
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

from harnesses.harness import Harness

SHIPPED: Mapping[str, str] = {
    "jax2onnx": f"{__name__}.onnx:Jax2Onnx",
    "jax.export": f"{__name__}.stablehlo:RoundTrip",
    "jax.jit": f"{__name__}.devices:OtherDevice",
}


class ConverterError(ValueError):
    """There is no such converter, or it cannot be used here."""


class Converter(abc.ABC):
    """A converter under the judge: how it converts, how the result is called, what it claims."""

    # Distributions (names that pip knows) whose versions go into each row.
    distributions: ClassVar[Sequence[str]] = ()
    # What changes in its messages from cell to cell: pairs of a regular expression and what to put
    # in its place, so that failures of one cause have one message.
    noise: ClassVar[Sequence[tuple[str, str]]] = ()

    @abc.abstractmethod
    def convert(self, fun: Callable[..., Any], args: tuple) -> Any:
        """What the converter makes of a JAX function.

        Args:
          fun: the function. JAX's setting of x64 is the one that the arguments need.
          args: its arguments, pytrees of NumPy arrays: examples, of which a converter takes the
            shapes and dtypes alone.

        Returns:
          What `call` takes. An exception is an error in the phase "lower".
        """

    def call(self, model: Any, args: tuple) -> Any:
        """The result for the arguments: a pytree of the structure of `fun`'s, of arrays.

        An exception is an error in the phase "run". Without this method the model is called.
        """
        return model(*args)

    def declines(self, harness: Harness) -> str | None:
        """Why the converter claims nothing about a harness; None if it is to be judged.

        Such a cell is "inapplicable". A harness has a family, a primitive, a dtype and params.
        """
        return None

    @classmethod
    def versions(cls) -> str:
        """The distributions with their versions, such as "jax2onnx 0.17.1, onnx 1.23.2"."""
        return ", ".join(f"{name} {metadata.version(name)}" for name in cls.distributions)


def is_converter(impl: str | None) -> bool:
    """Whether the name is of a class of this kind, and not of a module with `convert`."""
    return impl is not None and (impl in SHIPPED or ":" in impl)


def module_of(impl: str) -> str:
    """The module that holds the class."""
    return SHIPPED.get(impl, impl).partition(":")[0]


def converter(impl: str) -> type[Converter]:
    """The class of a name, of `SHIPPED` or `MODULE:CLASS`.

    Raises:
      ConverterError: the module or the class is not there, or the class is no `Converter`.
    """
    module, _, name = SHIPPED.get(impl, impl).partition(":")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ConverterError(f"--impl {impl}: {module} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Converter)):
        raise ConverterError(
            f"--impl {impl}: {module} has no class {name!r} that is a "
            f"{Converter.__module__}.{Converter.__name__}"
        )
    return found
