"""Lowers reduce_precision of 16-bit floats, for targets without Bitcast or without these floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]

_SIGN = np.int32(1 << 15)


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for reduce_precision of 16-bit floats; None for other equations.

    emit/float_bits.py handles other floats, and targets that compute with int16.
    """
    if eqn.primitive is not lax.reduce_precision_p:
        return None
    dtype = aval_of(eqn.invars[0]).dtype
    is_lacking = not target.takes("Bitcast") or str(dtype) in target.computes_in
    return _with_fewer_bits if is_lacking and dtype.itemsize == 2 else None


def _with_fewer_bits(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Rounds the bits to even, as int32. Numbers too small for the exponent become zero."""
    info = jnp.finfo(x.dtype)
    bits = lax.bitcast_convert_type(x, np.uint16).astype(np.int32)
    sign = lax.shift_right_logical(bits, np.int32(15)) * _SIGN
    size = bits - sign
    infinity = np.int32(((1 << info.nexp) - 1) << info.nmant)
    rounded = _rounded(size, info.nmant - eqn.params["mantissa_bits"])
    exponent_bits = eqn.params["exponent_bits"]
    if exponent_bits < info.nexp:
        exponent = lax.shift_right_logical(rounded, np.int32(info.nmant))
        bias, reduced_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        rounded = jnp.where(exponent > bias + reduced_bias, infinity, rounded)
        rounded = jnp.where(exponent <= bias - reduced_bias, np.int32(0), rounded)
    # Rounding can change a NaN into another number, so NaNs keep their bits.
    kept = jnp.where(size > infinity, size, rounded) + sign
    return [lax.bitcast_convert_type(kept.astype(np.uint16), x.dtype)]


def _rounded(size: jax.Array, dropped: int) -> jax.Array:
    """Rounds unsigned bits to even; the lowest `dropped` bits become zero."""
    if dropped <= 0:
        return size
    kept = lax.shift_right_logical(size, np.int32(dropped))
    is_odd = kept & np.int32(1)
    size = size + is_odd + np.int32((1 << (dropped - 1)) - 1)
    return lax.shift_right_logical(size, np.int32(dropped)) * np.int32(1 << dropped)
