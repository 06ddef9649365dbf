"""Typed PRNG keys in primitives that move elements (slice, gather, concatenate, select_n ...).

An array of keys stands in TensorFlow as its uint32 data, with the dimensions of one key behind its
own. What a primitive does to keys is what its vmap over those dimensions does to their data, so the
vmap is traced and lowered, and no rule has to know about keys.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf import dtypes
from jax2tf.lowering.rules import Context, Lowered, Rule
from jax2tf.typing import Aval, Param, PyTree, aval_of


def has_keys(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an operand or result of the equation is an array of typed keys."""
    return any(_is_keys(aval_of(v)) for v in (*eqn.invars, *eqn.outvars))


def _on_data(ctx: Context, *operands: tf.Tensor, **params: Param) -> Lowered:
    primitive = ctx.eqn.primitive

    def one(*values: jax.Array) -> PyTree:
        results = primitive.bind(*values, **params)
        return tuple(results) if primitive.multiple_results else results

    def make() -> jex_core.ClosedJaxpr:
        # Innermost last: each vmap takes the last dimension of the keys' data.
        per_key = functools.reduce(
            lambda fun, _: jax.vmap(fun, _axes(ctx.avals_in), _axes(ctx.avals_out, primitive)),
            range(_key_rank((*ctx.avals_in, *ctx.avals_out))),
            one,
        )
        specs = [_data_spec(aval) for aval in ctx.avals_in]
        jaxpr: jex_core.ClosedJaxpr = jax.jit(per_key).trace(*specs).jaxpr
        return jaxpr

    results = ctx.inline(ctx.traced("on data", make), *operands)
    return results if primitive.multiple_results else results[0]


ON_DATA = Rule(_on_data, frozenset(), takes_all=True, takes_keys=True)


def _is_keys(aval: Aval) -> bool:
    return hasattr(aval, "dtype") and dtypes.is_key(aval.dtype)


def _key_rank(avals: Sequence[Aval]) -> int:
    return next(len(dtypes.key_data(a.dtype).shape) for a in avals if _is_keys(a))


def _axes(
    avals: Sequence[Aval], primitive: jex_core.Primitive | None = None
) -> int | Sequence[int | None] | None:
    axes = tuple(-1 if _is_keys(a) else None for a in avals)
    return axes[0] if primitive is not None and not primitive.multiple_results else axes


def _data_spec(aval: Aval) -> jax.ShapeDtypeStruct:
    dtype = dtypes.key_data(aval.dtype).dtype if _is_keys(aval) else aval.dtype
    return jax.ShapeDtypeStruct(dtypes.physical_shape(aval), dtype)
