"""Complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.math.dtype_groups import NUMBERS
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, require

JAX_MODE = False
if JAX_MODE:
    import jax


@op("complex", "dtypes.complex")
def tf_complex(real: Any, imag: Any, name: Any = None) -> Any:
    """complex64 of float32 parts, complex128 of float64 parts.

    Raises:
      TypeError: the parts have other dtypes, or two different ones.
    """
    real = convert(real, hint=np.float32)
    imag = convert(imag, hint=real.dtype)
    of = {("float32", "float32"): np.complex64, ("float64", "float64"): np.complex128}
    dtype = of.get((real.dtype.name, imag.dtype.name))
    if dtype is None:
        raise TypeError(
            "The `real` and `imag` components have incorrect types:"
            f" {real.dtype.name} {imag.dtype.name}. They must be consistent, and one of"
            " float32, float64."
        )
    broadcast_shapes(real.shape, imag.shape, "Complex")
    return _parts(real, imag, dtype)


def _parts(real: Any, imag: Any, dtype: Any) -> Any:
    if JAX_MODE:
        # Not real + 1j * imag, in which an infinity makes a NaN of the other part.
        return jax.lax.complex(*jax.numpy.broadcast_arrays(real, imag))
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    result.real, result.imag = real, imag
    return result


@op("math.real")
def real(input: Any, name: Any = None) -> Any:
    x = convert(input)
    return xp.real(x) if x.dtype.kind == "c" else x


@op("math.imag")
def imag(input: Any, name: Any = None) -> Any:
    x = convert(input)
    return xp.imag(x) if x.dtype.kind == "c" else xp.zeros_like(x)


@op("math.angle")
def angle(input: Any, name: Any = None) -> Any:
    x = convert(input)
    if x.dtype.kind == "c":
        return xp.angle(x)
    return xp.where(x < 0, np.asarray(np.pi, x.dtype), xp.zeros_like(x))


@op("math.conj", static=True)
def conj(x: Any, name: Any = None) -> Any:
    x = require("Conj", convert(x), NUMBERS)
    return xp.conj(x) if x.dtype.kind == "c" else x
