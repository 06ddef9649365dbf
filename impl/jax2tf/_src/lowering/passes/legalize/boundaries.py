"""Passes uint32 in and out of control flow as int32, for targets without arrays of uint32.

The bits cross the boundary as int32, and so do the data of PRNG keys. The inner jaxpr bitcasts them
to uint32, which costs no op if the next equation computes in int32 (_to_carrier in __init__.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.keys import data_of, is_keys, keys_of
from jax2tf._src.lowering.passes.legalize.emulated_dtypes import Function
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import Scan, While, branches_of, traced
from jax2tf._src.util.typing import Aval, Param, aval_of

CARRIERS = {"uint32": "int32"}
_UINT32, _INT32 = np.dtype(np.uint32), np.dtype(np.int32)

Arrays = Sequence[jax.Array]


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for control flow with operands or results of uint32, or None."""
    if target.takes_arrays("uint32"):
        return None
    function = _FUNCTIONS.get(eqn.primitive)
    return function if function is not None and has_uint32((*eqn.invars, *eqn.outvars)) else None


def has_uint32(atoms: Sequence[Param]) -> bool:
    """Whether a value is of uint32, or an array of PRNG keys, whose data are uint32."""
    return any(_is_uint32(aval_of(v)) or is_keys(aval_of(v)) for v in atoms)


def _is_uint32(aval: Aval) -> bool:
    return getattr(aval, "dtype", None) == _UINT32


def _on_bits(jaxpr: jex_core.ClosedJaxpr) -> Callable[..., list[jax.Array]]:
    """Returns the jaxpr as a function with int32 for uint32 in its arguments and results."""
    run = jex_core.jaxpr_as_fun(jaxpr)

    def of_bits(*args: jax.Array) -> list[jax.Array]:
        given = zip(jaxpr.jaxpr.invars, args, strict=True)
        return [_as_bits(y) for y in run(*(_from_bits(x, aval_of(v)) for v, x in given))]

    return of_bits


def _from_bits(x: jax.Array, aval: Aval) -> jax.Array:
    is_bits = is_keys(aval) or _is_uint32(aval)
    return keys_of(lax.bitcast_convert_type(x, _UINT32) if is_bits else x, aval)


def _as_bits(x: jax.Array) -> jax.Array:
    x = data_of(x)
    return lax.bitcast_convert_type(x, _INT32) if x.dtype == _UINT32 else x


def _while(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Arrays:
    # lax.while_loop is not used: the condition of a vmapped loop is an array.
    loop = While.of(eqn)
    condition_consts, body_consts, carry = loop.split(operands)
    condition = traced(_on_bits(loop.condition), _specs([*condition_consts, *carry]))
    body = traced(_on_bits(loop.body), _specs([*body_consts, *carry]))
    return eqn.primitive.bind(*operands, **loop.params(condition, body))


def _specs(arrays: Arrays) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]


def _scan(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Arrays:
    scan = Scan.of(eqn)
    consts, carry, xs = scan.split(operands)
    return scan.run(functools.partial(_on_bits(scan.body), *consts), carry, xs)


def _cond(eqn: jex_core.JaxprEqn, index: jax.Array, *operands: jax.Array) -> Arrays:
    return lax.switch(index, [*map(_on_bits, branches_of(eqn))], *operands)


_FUNCTIONS: dict[jex_core.Primitive, Function] = {
    lax.cond_p: _cond,
    lax.scan_p: _scan,
    lax.while_p: _while,
}
