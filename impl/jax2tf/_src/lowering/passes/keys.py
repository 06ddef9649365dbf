"""Lowers primitives that move typed PRNG keys (slice, gather, concatenate, select_n ...).

TensorFlow gets an array of keys as its uint32 data, whose last dimensions are the dimensions of one
key. A primitive acts on keys as its vmap over these dimensions acts on their data. So the vmap is
traced and lowered, and rules need not know about keys. For the primitives that move keys most
often, this module builds the equation of this vmap directly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import jax
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import Lowered, Rule
from jax2tf._src.tracing.jaxprs import traced
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Param, PyTree, Shape, aval_of

_DEBUG_INFO = jex_core.DebugInfo("jax2tf", "keys moved", None, None)

# The params of an equation.
Params = Mapping[str, Param]


def has_keys(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an operand or a result of the equation is an array of typed keys."""
    return any(is_keys(aval_of(v)) for v in (*eqn.invars, *eqn.outvars))


def data_of(x: jax.Array) -> jax.Array:
    """The data of an array of keys; another array as it is."""
    return jax.random.key_data(x) if dtypes.is_key(x.dtype) else x


def keys_of(data: jax.Array, aval: Aval) -> jax.Array:
    """The keys of an aval that have some data; for another aval the data are the array."""
    if not is_keys(aval):
        return data
    return jax.random.wrap_key_data(data, impl=compat.jaxprs.prng_impl(aval.dtype))


def _on_data(ctx: Context, *operands: Tensor, **params: Param) -> Lowered:
    del params
    jaxpr_of = _moved if ctx.eqn.primitive in _PARAMS_OF_DATA else _mapped
    results = ctx.inline(ctx.traced("on key data", lambda: jaxpr_of(ctx.eqn)), *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


def _mapped(eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """Traces the vmap of the primitive over the dimensions of a key."""
    primitive = eqn.primitive
    operands, results = ([aval_of(v) for v in vs] for vs in (eqn.invars, eqn.outvars))

    def one(*values: jax.Array) -> PyTree:
        results = primitive.bind(*values, **eqn.params)
        return tuple(results) if primitive.multiple_results else results

    # Each vmap maps the last dimension of the keys' data.
    per_key = functools.reduce(
        lambda fun, _: jax.vmap(fun, _axes(operands), _axes(results, primitive)),
        range(_key_rank((*operands, *results))),
        one,
    )
    specs = [_data_spec(aval) for aval in operands]
    return traced(per_key, specs)


def _moved(eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """Builds the jaxpr of `_mapped` without tracing, for a primitive that moves only keys.

    JAX takes two milliseconds to trace a vmap, and programs that draw random numbers have such an
    equation for each key.
    """
    aval = aval_of(eqn.invars[0])
    of_key = tuple(dtypes.key_data(aval.dtype).shape)
    operands = [_data_var(aval_of(v)) for v in eqn.invars]
    results = [_data_var(aval_of(v)) for v in eqn.outvars]
    of_data = _PARAMS_OF_DATA[eqn.primitive](eqn.params, of_key, len(aval.shape))
    moved = eqn.replace(invars=[*operands], outvars=results, params={**eqn.params, **of_data})
    return jex_core.ClosedJaxpr(
        jex_core.Jaxpr([], operands, results, [moved], debug_info=_DEBUG_INFO), []
    )


ON_DATA = Rule(_on_data, frozenset(), takes_all=True, takes_keys=True)


def is_keys(aval: Aval) -> bool:
    """Whether a value is an array of typed keys."""
    return hasattr(aval, "dtype") and dtypes.is_key(aval.dtype)


def _key_rank(avals: Sequence[Aval]) -> int:
    return next(len(dtypes.key_data(a.dtype).shape) for a in avals if is_keys(a))


def _axes(
    avals: Sequence[Aval], primitive: jex_core.Primitive | None = None
) -> int | Sequence[int | None] | None:
    axes = tuple(-1 if is_keys(a) else None for a in avals)
    return axes[0] if primitive is not None and not primitive.multiple_results else axes


def _data_spec(aval: Aval) -> jax.ShapeDtypeStruct:
    dtype = dtypes.key_data(aval.dtype).dtype if is_keys(aval) else aval.dtype
    return jax.ShapeDtypeStruct(dtypes.physical_shape(aval), dtype)


def _data_var(aval: Aval) -> jex_core.Var:
    spec = _data_spec(aval)
    return jex_core.Var(jax.core.ShapedArray(spec.shape, spec.dtype))


def _sliced(params: Params, of_key: Shape, rank: int) -> Params:
    whole = {"start_indices": (0,) * len(of_key), "limit_indices": of_key}
    if params["strides"] is not None:
        whole["strides"] = (1,) * len(of_key)
    return {name: (*params[name], *sizes) for name, sizes in whole.items()}


def _broadcast(params: Params, of_key: Shape, rank: int) -> Params:
    n_results = len(params["shape"])
    behind = range(n_results, n_results + len(of_key))
    return {
        "shape": (*params["shape"], *of_key),
        "broadcast_dimensions": (*params["broadcast_dimensions"], *behind),
    }


def _transposed(params: Params, of_key: Shape, rank: int) -> Params:
    return {"permutation": (*params["permutation"], *range(rank, rank + len(of_key)))}


def _reshaped(params: Params, of_key: Shape, rank: int) -> Params:
    return {"new_sizes": (*params["new_sizes"], *of_key)}


def _unchanged(params: Params, of_key: Shape, rank: int) -> Params:
    return {}


# Primitives whose operands are all keys. Each function returns the params that change. It gets the
# params, the shape of a key's data, and the rank of the first operand.
_PARAMS_OF_DATA: dict[jex_core.Primitive, Callable[[Params, Shape, int], Params]] = {
    lax.slice_p: _sliced,
    lax.broadcast_in_dim_p: _broadcast,
    lax.transpose_p: _transposed,
    lax.reshape_p: _reshaped,
    **dict.fromkeys(named("concatenate", "stack", "unstack"), _unchanged),
}
