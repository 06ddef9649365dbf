"""Moves 16-bit floats and uint32 as bits of integers, for LiteRT's converter, which moves casts.

LiteRT's converter moves a cast behind the op that moves elements, and LiteRT may lack that op for
the dtype. __init__.py casts integers by Bitcast instead, but not the rows that loops read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import Scan
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Atom, PyTree, aval_of

Function = Callable[..., Sequence[jax.Array]]

_MOVES = frozenset(named("broadcast_in_dim", "dynamic_slice", "gather"))
_FLOATS = frozenset({"bfloat16", "float16"})


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for a move of an emulated dtype; None for other equations."""
    if not target.has(Quirk.MOVES_CASTS):
        return None
    of_rows = _OF_ROWS.get(eqn.primitive)
    if of_rows is not None:
        is_held = target.computes_in.get("uint32") == "int32" and _has_rows_of_uint32(eqn)
        return of_rows if is_held else None
    if eqn.primitive not in _MOVES:
        return None
    dtype = str(aval_of(eqn.outvars[0]).dtype)
    return _as_bits if dtype in _FLOATS and dtype in target.computes_in else None


def _as_bits(eqn: jex_core.JaxprEqn, x: jax.Array, *others: jax.Array) -> Sequence[jax.Array]:
    dtype = aval_of(eqn.outvars[0]).dtype
    params = dict(eqn.params)
    if eqn.primitive is lax.gather_p:
        fill = np.nan if params["fill_value"] is None else params["fill_value"]
        params["fill_value"] = int(np.asarray(fill, dtype).view(np.int16))
    bits = lax.bitcast_convert_type(x, np.int16)
    return [lax.bitcast_convert_type(eqn.primitive.bind(bits, *others, **params), dtype)]


def _are_uint32(atoms: Sequence[Atom]) -> list[bool]:
    return [aval_of(v).dtype == np.uint32 for v in atoms]


def _has_rows_of_uint32(eqn: jex_core.JaxprEqn) -> bool:
    """Whether a scan reads or writes rows of uint32, or a reduction has operands of uint32."""
    if eqn.primitive is not lax.scan_p:
        return any(_are_uint32(eqn.invars))
    scan = Scan.of(eqn)
    return any(_are_uint32([*scan.split(eqn.invars)[2], *eqn.outvars[scan.n_carry :]]))


def _scanned_as_bits(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Scans the bits of uint32 as int32. The step converts them to uint32 and back."""
    scan = Scan.of(eqn)
    n_carry = scan.n_carry
    consts, start, xs = scan.split(operands)
    taken, given = _are_uint32(scan.split(eqn.invars)[2]), _are_uint32(eqn.outvars[n_carry:])
    run = jex_core.jaxpr_as_fun(scan.body)

    def step(*values: jax.Array) -> list[jax.Array]:
        carry, rows = values[:n_carry], values[n_carry:]
        results = run(*consts, *carry, *_as(np.uint32, rows, taken))
        return [*results[:n_carry], *_as(np.int32, results[n_carry:], given)]

    results = scan.run(step, start, _as(np.int32, xs, taken))
    return [*results[:n_carry], *_as(np.uint32, results[n_carry:], given)]


def _reduced_as_bits(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Reduces the bits of uint32 as int32. The combination converts them to uint32 and back."""
    n = len(operands) // 2
    are_bits = _are_uint32(eqn.invars[:n])
    combine = jex_core.jaxpr_as_fun(eqn.params["jaxpr"])

    def combined(one: PyTree, other: PyTree) -> PyTree:
        both = (*_as(np.uint32, one, are_bits), *_as(np.uint32, other, are_bits))
        return _as(np.int32, combine(*both), are_bits)

    arrays, starts = (_as(np.int32, xs, are_bits) for xs in (operands[:n], operands[n:]))
    results = lax.reduce(arrays, starts, combined, eqn.params["dimensions"])
    return _as(np.uint32, results, are_bits)


_OF_ROWS = {
    lax.scan_p: _scanned_as_bits,
    **dict.fromkeys(named("reduce"), _reduced_as_bits),
}


def _as(
    dtype: type[np.integer], arrays: Sequence[jax.Array], which: Sequence[bool]
) -> list[jax.Array]:
    """Bitcasts the arrays marked in `which` to another dtype."""
    pairs = zip(arrays, which, strict=True)
    return [lax.bitcast_convert_type(x, dtype) if is_one else x for x, is_one in pairs]
