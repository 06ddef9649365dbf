"""Primitives of other libraries, lowered as what they say of themselves.

A library that makes a primitive of its own (Equinox's error checks are one) gives it an
implementation in JAX functions. That is traced and lowered where no rule is registered.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf import compat
from jax2tf.lowering.rules import Context, Rule


def rule(eqn: jex_core.JaxprEqn) -> Rule | None:
    """A rule made from the primitive's own implementation, if it is not one of JAX's."""
    return None if compat.is_implemented_by_jax(eqn.primitive) else _RULE


def _by_implementation(ctx: Context, *operands: tf.Tensor, **params: Any) -> Any:
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
    implementation = functools.partial(ctx.eqn.primitive.impl, **params)
    results = ctx.inline(jax.jit(implementation).trace(*specs).jaxpr, *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


_RULE = Rule(_by_implementation, frozenset(), takes_all=True, takes_keys=True)
