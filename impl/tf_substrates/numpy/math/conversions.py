"""Tensors in other dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import UnimplementedError
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, is_tensor

JAX_MODE = False


@op("cast", "dtypes.cast", static=True)
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """x in another dtype: floats to integers toward zero, complex numbers to their real part."""
    wanted, tensor = dtypes.numpy_dtype(dtype), x
    x = convert(x)
    if x.dtype == wanted:
        return tensor if is_tensor(tensor) else x
    if x.dtype.kind == "O" or wanted.kind == "O":
        raise UnimplementedCast(x, wanted)
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = xp.real(x) if wanted.kind != "b" else x
    if wanted.kind in "iu" and x.dtype.kind not in "iub":
        return _float_to_integer(x, wanted)
    return x.astype(wanted)


def UnimplementedCast(x: Any, wanted: np.dtype) -> Exception:
    """The error of a cast from or to strings."""
    names = dtypes.dtype_of(x).name, dtypes.as_dtype(wanted).name
    return UnimplementedError(
        None, None, f"Cast {names[0]} to {names[1]} is not supported [Op:Cast]"
    )


def _float_to_integer(x: Any, wanted: np.dtype) -> Any:
    """As TensorFlow's CPU kernel: what int32 or int64 does not hold is its minimum."""
    if JAX_MODE:
        return x.astype(wanted)
    if wanted == np.dtype(np.uint64):
        return x.astype(wanted)
    wide: Any = np.dtype(np.int64 if wanted.itemsize == 8 or wanted == np.uint32 else np.int32)
    low, high = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    inside = (x >= low) & (x < high)
    return np.where(inside, np.where(inside, x, 0).astype(wide), np.iinfo(wide).min).astype(wanted)


@op("saturate_cast", "dtypes.saturate_cast")
def saturate_cast(value: Any, dtype: Any, name: Any = None) -> Any:
    """x in another dtype, clipped to its limits first."""
    wanted = dtypes.as_dtype(dtype)
    x = convert(value)
    if dtypes.dtype_of(x) == wanted or wanted.is_complex:
        return cast(x, wanted)
    if x.dtype.kind == "c":
        x = xp.real(x)
    here = dtypes.dtype_of(x)
    low, high = max(here.min, wanted.min), min(here.max, wanted.max)
    if here.is_floating:
        # The largest value of x's dtype that the other holds.
        high = _floor_to(high, x.dtype)
        low = -_floor_to(-low, x.dtype)
    return cast(xp.clip(x, np.asarray(low, x.dtype), np.asarray(high, x.dtype)), wanted)


def _floor_to(limit: Any, dtype: np.dtype) -> Any:
    rounded = np.asarray(limit, dtype)
    if float(rounded) > float(limit):
        rounded = np.nextafter(rounded, np.asarray(0, dtype))
    return rounded
