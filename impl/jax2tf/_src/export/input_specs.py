"""Reads the shape and dtype of an input from its spec."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import numpy as np
from jax import export as jax_export

from jax2tf._src.dims import bounds, specs
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import classes, tf
from jax2tf._src.util.option_checks import shown
from jax2tf._src.util.typing import Dim, PyTree

_DTYPE_OF_TEXT = "float32"

# Files store a size as a signed 64-bit integer.
_LARGEST = 2**63 - 1

# These names are refused for dimensions, because their writer probably means an unnamed dimension.
_REFUSED_NAMES = frozenset({"None", "True", "False"})

# The remedy for each type that stands for several tensors.
_REMEDIES = {
    "RaggedTensorSpec": "take its to_tensor() and row_lengths() as two inputs",
    "RaggedTensor": "take its to_tensor() and row_lengths() as two inputs",
    "SparseTensorSpec": "take its indices and values as two inputs",
    "SparseTensor": "take its indices and values as two inputs",
}


class Reader:
    """Reads the specs of one signature.

    Attributes:
      scope: the scope of the caller's symbolic dimensions, or None.
    """

    def __init__(self) -> None:
        self.scope: jax.export.SymbolicScope | None = None
        self._open = (f"d{i}" for i in itertools.count())
        self._scope = jax_export.SymbolicScope()

    def read(self, leaf: PyTree, where: str) -> tuple[tuple[int | str, ...], np.dtype]:
        """Shape and dtype of a spec."""
        if isinstance(leaf, str):
            return self._of_text(leaf, where)
        if isinstance(leaf, classes("TensorSpec")):
            return self._of_tensor_spec(leaf, where)
        if dtypes.is_tensor(leaf):
            return self._dims(leaf.shape.as_list(), where), _dtype_of_value(leaf, where)
        if isinstance(leaf, bool | int | float | complex):
            return (), _dtype_of_value(leaf, where)
        is_described = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        if not is_described or isinstance(leaf.dtype, classes("DType")):
            remedy = next(
                (r for kind, r in _REMEDIES.items() if isinstance(leaf, classes(kind))), ""
            )
            raise TypeError(
                f"jax2tf.export: the spec of {where} should be an array, a jax.ShapeDtypeStruct, a "
                f"tf.TensorSpec or a text such as 'b, 4:float32', got {shown(leaf)}"
                + (f". What to do: {remedy}" if remedy else "")
            )
        if dtypes.is_key(leaf.dtype):
            raise TypeError(
                f"jax2tf.export: the spec of {where} is one of typed PRNG keys, which files have "
                "no dtype for; take jax.random.key_data (uint32) as input, and call "
                "jax.random.wrap_key_data in the function"
            )
        if isinstance(leaf, np.ndarray | np.generic | jax.Array):
            return self._dims(leaf.shape, where), _dtype_of_value(leaf, where)
        return self._dims(leaf.shape, where), _dtype_named(leaf.dtype, leaf, where)

    def _of_tensor_spec(
        self, spec: tf.TensorSpec, where: str
    ) -> tuple[tuple[int | str, ...], np.dtype]:
        if spec.shape.rank is None:
            raise ValueError(
                f"jax2tf.export: the spec of {where} has no rank; give a shape, with None or a "
                "name for a dimension that is open"
            )
        if not dtypes.is_of_jax(spec.dtype):
            raise _without_dtype(spec.dtype.name, where)
        sizes = [next(self._open) if size is None else size for size in spec.shape.as_list()]
        return tuple(sizes), np.dtype(spec.dtype.as_numpy_dtype)

    def _of_text(self, text: str, where: str) -> tuple[tuple[int | str, ...], np.dtype]:
        shape, colon, name = text.rpartition(":")
        if not colon:
            shape, name = text, _DTYPE_OF_TEXT
        try:
            dtype = np.dtype(jax.numpy.dtype(name.strip()))
            for part in shape.split(","):
                bounds.refuse_large_powers(part)
            symbolic = jax_export.symbolic_shape(shape.strip(), scope=self._scope)
        # JAX reads the shape with Python's tokenizer, which raises other exceptions.
        except Exception as error:
            reason = specs.WITHOUT_NAME if "?" in shape else str(error)
            raise _unreadable(text, where, reason) from error
        if not dtypes.is_of_jax(dtype):
            raise _unreadable(text, where, f"files have no dtype {name.strip()!r}")
        if dtype.name != name.strip():
            # NumPy's "float" has 64 bits, "int" has a varying size, ">f4" has another byte order.
            raise _unreadable(
                text, where, f"{name.strip()!r} is {dtype.name} in NumPy, which has to be said"
            )
        for dim in symbolic:
            if str(dim) in _REFUSED_NAMES:
                raise _unreadable(
                    text, where, f"{dim} is no name; name the dimensions that are open, as 'b'"
                )
        return self._dims(symbolic, where, is_given=False), dtype

    def _dims(
        self, shape: Sequence[Dim], where: str, is_given: bool = True
    ) -> tuple[int | str, ...]:
        if not isinstance(shape, Sequence):
            raise TypeError(
                f"jax2tf.export: the spec of {where} should have a sequence of sizes as its shape, "
                f"got {shown(shape)}"
            )
        for dim in shape:
            if not jax_export.is_symbolic_dim(dim):
                _require_size(dim, where)
            elif is_given:
                if self.scope not in (None, dim.scope):
                    raise ValueError(
                        f"jax2tf.export: the shape of {where} has dimensions of another "
                        "SymbolicScope than those before it; make them in one scope"
                    )
                self.scope = dim.scope
        return tuple(map(_size, shape))


def _require_size(dim: Dim, where: str) -> None:
    is_number = isinstance(dim, int | np.integer)
    if not is_number or not 0 <= dim <= _LARGEST:
        error = ValueError if is_number else TypeError
        raise error(
            f"jax2tf.export: the spec of {where} should have sizes from 0 to 2**63 - 1, or names "
            f"for those that are open, got the size {shown(dim)}"
        )


def _dtype_of_value(value: PyTree, where: str) -> np.dtype:
    try:
        return dtypes.jax_dtype(value)
    except (TypeError, OverflowError) as error:
        raise type(error)(
            f"jax2tf.export: the spec of {where}: {error}. What to do: give a spec of numbers that "
            "JAX has, as 'b, 4:float32'"
        ) from None


def _dtype_named(dtype: PyTree, leaf: PyTree, where: str) -> np.dtype:
    try:
        canonical = jax.dtypes.canonicalize_dtype(dtype)
    except TypeError:
        raise _without_dtype(shown(dtype), where) from None
    if not dtypes.is_of_jax(canonical):
        raise _without_dtype(shown(dtype), where)
    return canonical


def _without_dtype(name: str, where: str) -> TypeError:
    return TypeError(
        f"jax2tf.export: the spec of {where} has the dtype {name}, and files have the numbers that "
        "JAX and TensorFlow have in common. What to do: make numbers of it before the exported "
        "function, and give their dtype, as 'b, 4:float32'"
    )


def _unreadable(text: str, where: str, reason: str) -> ValueError:
    return ValueError(
        f"jax2tf.export: the spec {text!r} of {where} should be a shape and, behind a colon, a "
        f"dtype by its own name, such as 'b, 224, 224, 3:float32': {reason}"
    )


def _size(dim: Dim) -> int | str:
    return str(dim) if jax_export.is_symbolic_dim(dim) else int(dim)
