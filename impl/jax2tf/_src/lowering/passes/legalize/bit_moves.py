"""Moves 16-bit floats and uint32 as bits of integers, for LiteRT's converter, which moves casts.

LiteRT's converter moves a cast behind the op that moves elements, and LiteRT may lack that op for
the dtype. __init__.py casts integers by Bitcast instead, but not the rows that loops read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.keys import data_of, is_keys, keys_of
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import jaxprs
from jax2tf._src.tracing.jaxprs import Scan
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Aval, PyTree, aval_of

Function = Callable[..., Sequence[jax.Array]]

_MOVES = frozenset(named("broadcast_in_dim", "dynamic_slice", "gather", "scatter"))
_MOVED_AS_INT16 = frozenset({"bfloat16", "float16", "uint16"})
# The rows that a scan reads (GatherV2), and those that it writes into a list (TensorListSetItem):
# LiteRT takes these ops of fewer dtypes than it stores. Bits move as integers of the same size; the
# list takes no int16 either, so that numbers of 16 bits are written as what holds all of them.
_READ_AS = {"bfloat16": "int16", "float16": "int16", "uint16": "int16", "uint32": "int32"}
_WRITTEN_AS = {
    **dict.fromkeys(("bfloat16", "float16"), "float32"),
    **dict.fromkeys(("int16", "uint16", "uint32"), "int32"),
}


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a move of an emulated dtype; None for other equations."""
    if not target.has(Quirk.MOVES_CASTS):
        return None
    of_rows = _OF_ROWS.get(eqn.primitive)
    if of_rows is not None:
        is_held = target.computes_in.get("uint32") == "int32" and _has_rows(eqn)
        return of_rows if is_held else None
    if eqn.primitive not in _MOVES:
        return None
    dtype = str(aval_of(eqn.outvars[0]).dtype)
    if dtype not in _MOVED_AS_INT16 or dtype not in target.computes_in:
        return None
    if eqn.primitive is not lax.scatter_p:
        return _as_bits
    return _written_as_bits if eqn.params["update_jaxpr"] is None else None


def _as_bits(eqn: jex_core.JaxprEqn, x: jax.Array, *others: jax.Array) -> Sequence[jax.Array]:
    dtype = aval_of(eqn.outvars[0]).dtype
    params = dict(eqn.params)
    if eqn.primitive is lax.gather_p:
        fill = params["fill_value"]
        if fill is None:  # What JAX gives for indices out of bounds.
            fill = np.iinfo(dtype).max if dtype == np.uint16 else np.nan
        params["fill_value"] = int(np.asarray(fill, dtype).view(np.int16))
    bits = lax.bitcast_convert_type(x, np.int16)
    return [lax.bitcast_convert_type(eqn.primitive.bind(bits, *others, **params), dtype)]


def _written_as_bits(
    eqn: jex_core.JaxprEqn, x: jax.Array, indices: jax.Array, updates: jax.Array
) -> Sequence[jax.Array]:
    dtype = aval_of(eqn.outvars[0]).dtype
    bits = [lax.bitcast_convert_type(y, np.int16) for y in (x, updates)]
    written = jaxprs.bind(eqn.primitive, [bits[0], indices, bits[1]], eqn.params)
    return [lax.bitcast_convert_type(y, dtype) for y in written]


def _has_rows(eqn: jex_core.JaxprEqn) -> bool:
    """Whether a scan has rows, or a reduction operands, that LiteRT's loops do not take."""
    if eqn.primitive is not lax.scan_p:
        return any(str(aval_of(v).dtype) in _WRITTEN_AS for v in eqn.invars)
    scan = Scan.of(eqn)
    return any(
        is_keys(aval_of(v)) or str(aval_of(v).dtype) in carriers
        for atoms, carriers in (
            (scan.split(eqn.invars)[2], _READ_AS),
            (eqn.outvars[scan.n_carry :], _WRITTEN_AS),
        )
        for v in atoms
    )


def _scanned(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Scans rows in dtypes that LiteRT's loops read and write. The step converts them back.

    PRNG keys come and go as their data, of uint32.
    """
    scan = Scan.of(eqn)
    n_carry = scan.n_carry
    consts, start, xs = scan.split(operands)
    args = scan.body.in_avals
    read = [_of_data(aval) for aval in args[scan.n_consts + n_carry :]]
    written = [_of_data(aval_of(v)) for v in eqn.outvars[n_carry:]]
    run = jex_core.jaxpr_as_fun(scan.body)

    def step(*values: jax.Array) -> list[jax.Array]:
        carry, rows = values[:n_carry], map(_as_dtype, values[n_carry:], read)
        results = [*map(data_of, run(*map(keys_of, [*consts, *carry, *rows], args)))]
        return [*results[:n_carry], *(_as_carrier(y, _WRITTEN_AS) for y in results[n_carry:])]

    results = scan.run(step, start, [_as_carrier(x, _READ_AS) for x in xs])
    return [*results[:n_carry], *map(_as_dtype, results[n_carry:], written)]


def _of_data(aval: Aval) -> np.dtype:
    return np.dtype(np.uint32) if is_keys(aval) else aval.dtype


def _as_carrier(x: jax.Array, carriers: Mapping[str, str]) -> jax.Array:
    return _as_dtype(x, np.dtype(carriers.get(str(x.dtype), x.dtype)))


def _as_dtype(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bits of `x` in a dtype of its size, or its number in one of another size."""
    is_same_size = x.dtype.itemsize == dtype.itemsize
    return (lax.bitcast_convert_type if is_same_size else lax.convert_element_type)(x, dtype)


def _reduced(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Reduces in dtypes that LiteRT's loops read and write. The combination converts them back."""
    n = len(operands) // 2
    own = [aval_of(v).dtype for v in eqn.invars[:n]]
    combine = jex_core.jaxpr_as_fun(eqn.params["jaxpr"])

    def combined(one: PyTree, other: PyTree) -> PyTree:
        results = combine(*map(_as_dtype, one, own), *map(_as_dtype, other, own))
        return [_as_carrier(x, _WRITTEN_AS) for x in results]

    arrays, starts = (
        [_as_carrier(x, _WRITTEN_AS) for x in xs] for xs in (operands[:n], operands[n:])
    )
    results = lax.reduce(arrays, starts, combined, eqn.params["dimensions"])
    return [*map(_as_dtype, results, own)]


_OF_ROWS = {
    lax.scan_p: _scanned,
    **dict.fromkeys(named("reduce"), _reduced),
}
