"""`jax2tf.load`: files and bytes of StableHLO as JAX functions."""

from __future__ import annotations

import os
import pathlib
import struct
from collections.abc import Iterator, Mapping

import jax
from jax import export

from jax2tf._src import compat
from jax2tf._src.api.errors import LoadError
from jax2tf._src.stablehlo import reading
from jax2tf._src.stablehlo.function import LoadedFunction, of_exported, of_program
from jax2tf._src.util.typing import PyTree

_BYTECODE = b"ML\xefR"
# The file of a SavedModel, as bytes or as text.
_GRAPHS = ("saved_model.pb", "saved_model.pbtxt")


class Loaded(Mapping[str, LoadedFunction]):
    """The functions of a file by name.

    A file with one function, as jax.export and .mlir files are, is also that function:
    `load(path)(x)`.

    A signature that is no function of arrays (it takes strings, or changes a variable) is not among
    them; `loaded[name]` raises a LoadError that says why.

    Attributes:
      origin: the path, or a description of the bytes.
    """

    def __init__(self, found: Mapping[str, LoadedFunction | LoadError], origin: str) -> None:
        self._functions = {k: v for k, v in found.items() if isinstance(v, LoadedFunction)}
        self._refusals = {k: v for k, v in found.items() if isinstance(v, LoadError)}
        self.origin = origin

    # jax.jit keeps what it compiled by the function, and a mapping has no hash of its own.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __getitem__(self, name: str) -> LoadedFunction:
        if name in self._refusals:
            raise self._refusals[name]
        if name not in self._functions:
            names = ", ".join(map(repr, self._functions))
            raise KeyError(f"jax2tf.load: {self.origin} has no function {name!r}; it has {names}")
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        return self._only()(*args, **kwargs)

    @property
    def specs(self) -> PyTree:
        """Those of the function, if it is the only one."""
        return self._only().specs

    @property
    def params(self) -> dict[str, PyTree]:
        """Those of the function, if it is the only one."""
        return self._only().params

    def apply(self, params: Mapping[str, PyTree], *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Calls the function with other values of its variables, if it is the only one."""
        return self._only().apply(params, *args, **kwargs)

    def _only(self) -> LoadedFunction:
        if len(self._functions) != 1:
            names = ", ".join(map(repr, self._functions))
            raise TypeError(
                f"jax2tf.load: {self.origin} has {len(self._functions)} functions ({names}). "
                "What to do: choose one, as in loaded[name](...)."
            )
        (function,) = self._functions.values()
        return function

    def __repr__(self) -> str:
        lines = "".join(f"\n  {function!r}" for function in self._functions.values())
        return f"Loaded({self.origin}){lines}"


def load(source: str | os.PathLike[str] | bytes | bytearray | export.Exported) -> Loaded:
    """Reads StableHLO back as JAX functions, which jit, grad, vmap, convert and export take.

    >>> import jax, jax.numpy as jnp
    >>> from jax import export
    >>> x = jnp.arange(3.0)
    >>> blob = export.export(jax.jit(jnp.sin))(x).serialize()
    >>> function = load(blob)["sin"]
    >>> bool((function(x) == jnp.sin(x)).all())
    True
    >>> jax.grad(lambda x: function(x).sum())(x).shape
    (3,)

    The module is evaluated op by op with jax.lax, so that its functions are ordinary JAX functions.
    Open dimensions stay open: a function that jax.export wrote with symbolic dimensions takes
    arguments of any size that its constraints allow.

    Args:
      source: what to read:
        * the folder of a SavedModel, or saved_model.pb in it: the signatures may hold XlaCallModule
          ops;
        * a file, or its bytes: what jax.export.Exported.serialize wrote, a portable artifact or
          bytecode of StableHLO or VHLO, or a module as text (.mlir);
        * a jax.export.Exported.

    Returns:
      The functions by name: the signatures of a SavedModel, the name of the exported function, or
      the public functions of a module. Each has `params` (the variables of a SavedModel, by name),
      `specs` (shapes and dtypes of its arguments) and a docstring.

    Raises:
      FileNotFoundError: there is no file at the path.
      LoadError: the file is of another kind, cut or of a newer version; or an op in it has no
        counterpart in JAX. Nothing in the file is executed before a function is called.
    """
    if isinstance(source, export.Exported):
        return _of_exported(source, f"the exported function {source.fun_name!r}")
    if isinstance(source, (bytes, bytearray)):
        return _of_bytes(bytes(source), f"bytes of length {len(source)}")
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            "jax2tf.load: source must be a path, bytes or a jax.export.Exported, got "
            f"{type(source).__name__}"
        )
    path = pathlib.Path(source)
    if not path.exists():
        raise FileNotFoundError(f"jax2tf.load: there is no file or folder {path}")
    if path.is_dir() or path.name in _GRAPHS:
        return _of_saved_model(path if path.is_dir() else path.parent)
    return _of_bytes(path.read_bytes(), str(path))


def _of_saved_model(path: pathlib.Path) -> Loaded:
    if not any((path / name).exists() for name in _GRAPHS):
        raise LoadError(
            f"jax2tf.load: the folder {path} is no SavedModel: it has no saved_model.pb. What to "
            "do: name the folder that tf.saved_model.save wrote, or a file of StableHLO."
        )
    from jax2tf._src.stablehlo.saved_models import functions_of  # needs TensorFlow

    return Loaded(functions_of(path), str(path))


def _of_bytes(data: bytes, origin: str) -> Loaded:
    if data.startswith(_BYTECODE):
        program = reading.program_of_artifact(data, origin)
        return Loaded(_public(program, origin), origin)
    text = _text(data)
    if text is not None:
        return Loaded(_public(reading.program_of_text(text, origin), origin), origin)
    try:
        exported = _deserialized(data)
    except Exception as error:
        # A flatbuffer says where its parts are; the reader finds no bytes there.
        is_short = isinstance(error, struct.error)
        found = f"it ends after {len(data)} bytes, before its parts do" if is_short else error
        remedy = "copy the file again, as a whole; or name" if is_short else "name"
        raise LoadError(
            f"jax2tf.load: {origin} is no file of jax.export, no StableHLO bytecode and no text "
            f"of a module ({type(error).__name__}: {found}). What to do: {remedy} a file that "
            "jax.export.Exported.serialize wrote with a JAX that is not newer than this one "
            f"({jax.__version__}), an .mlir file, or the folder of a SavedModel."
        ) from error
    return _of_exported(exported, origin)


def _deserialized(data: bytes) -> export.Exported:
    """A file of jax.export of any age: only its module must be readable, and jaxlib reads those of
    the last five years.
    """
    with compat.exports.reading_expired_files():
        return export.deserialize(bytearray(data))


def _text(data: bytes) -> str | None:
    """The text of a module; None for other bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if "func.func" in text or "module" in text or "vhlo.func" in text else None


def _of_exported(exported: export.Exported, origin: str) -> Loaded:
    function = of_exported(exported, origin)
    return Loaded({function.name: function}, origin)


def _public(program: PyTree, origin: str) -> Mapping[str, LoadedFunction]:
    """The functions that a module offers: "main" alone, or each one that no other calls."""
    called = {op.attributes.get("callee") for op in program.ops()}
    called |= {op.attributes.get("decomposition") for op in program.ops()}
    names = (
        ["main"]
        if "main" in program.functions
        else [n for n in program.functions if n not in called]
    )
    if not names:
        raise LoadError(f"jax2tf.load: {origin} has no function that could be called.")
    return {name: of_program(program, name, origin) for name in names}
