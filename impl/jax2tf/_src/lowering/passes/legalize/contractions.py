"""Contracts integers by products and sums, for targets whose MatMul or Conv2D takes only floats.

int8_contractions.py contracts integers with at most 8 bits as floats. Other convolutions become one
contraction of the patches that each position of the filter sees. All is computed in int32, which
wraps around.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.lowering.passes.legalize import emulated_dtypes, int8_contractions
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import Param, aval_of


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> emulated_dtypes.Function | None:
    """Returns the function for a contraction of integers that the target lacks, or None."""
    found = _FUNCTIONS.get(eqn.primitive)
    if found is None:
        return None
    op, function = found
    avals = [aval_of(v) for v in (*eqn.invars, *eqn.outvars)]
    if any(aval.dtype not in int8_contractions.INTEGERS for aval in avals):
        return None
    if not target.takes(op, "int32"):
        return int8_contractions.function_of(eqn) or function
    rounds = target.has(Quirk.ADDS_INTEGERS_AS_FLOATS) and not int8_contractions.is_exact(eqn)
    return int8_contractions.function_of(eqn) if rounds else None


def _dot_general(eqn: jex_core.JaxprEqn, lhs: jax.Array, rhs: jax.Array) -> Sequence[jax.Array]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    aval = aval_of(eqn.outvars[0])
    rows = _rows(lhs, lhs_batch, lhs_contracting)[..., :, None, :]
    columns = _rows(rhs, rhs_batch, rhs_contracting)[..., None, :, :]
    product = jnp.sum(rows * columns, -1, dtype=np.int32)
    return [_as(product.reshape(aval.shape), aval.dtype)]


def _rows(x: jax.Array, batch: Sequence[int], contracting: Sequence[int]) -> jax.Array:
    """Reshapes `x` to (batch, free, contracting), in int32."""
    free = [d for d in range(x.ndim) if d not in (*batch, *contracting)]
    sizes = [math.prod(x.shape[d] for d in dims) for dims in (batch, free, contracting)]
    ordered = lax.transpose(jnp.asarray(x), (*batch, *free, *contracting))
    return lax.convert_element_type(ordered, np.int32).reshape(sizes)


def _as(x: jax.Array, dtype: np.dtype) -> jax.Array:
    return x != 0 if dtype == np.bool_ else lax.convert_element_type(x, dtype)


def _convolution(eqn: jex_core.JaxprEqn, lhs: jax.Array, rhs: jax.Array) -> Sequence[jax.Array]:
    params = eqn.params
    numbers = params["dimension_numbers"]
    aval = aval_of(eqn.outvars[0])
    lhs = lax.convert_element_type(lax.transpose(jnp.asarray(lhs), numbers.lhs_spec), np.int32)
    rhs = lax.convert_element_type(lax.transpose(jnp.asarray(rhs), numbers.rhs_spec), np.int32)
    out_shape = [aval.shape[d] for d in numbers.out_spec]
    if 0 in (*lhs.shape, *rhs.shape, *out_shape):
        return [jnp.zeros(aval.shape, aval.dtype)]
    spatial = [
        (*pad, d - 1) for pad, d in zip(params["padding"], params["lhs_dilation"], strict=True)
    ]
    lhs = lax.pad(lhs, np.int32(0), [(0, 0, 0), (0, 0, 0), *spatial])
    seen = _seen(lhs, rhs.shape[2:], out_shape[2:], params)
    out = _grouped(seen, rhs.reshape(*rhs.shape[:2], -1), params)
    out = out.reshape(out_shape[1], out_shape[0], *out_shape[2:])
    out = lax.transpose(
        out, np.argsort([numbers.out_spec[1], numbers.out_spec[0], *numbers.out_spec[2:]])
    )
    return [_as(out, aval.dtype)]


def _seen(
    lhs: jax.Array, window: Sequence[int], out: Sequence[int], params: Mapping[str, Param]
) -> jax.Array:
    """Returns the patch of each filter position: (batch, features, positions, outputs)."""
    strides, dilations = params["window_strides"], params["rhs_dilation"]
    patches = []
    for position in itertools.product(*map(range, window)):
        start = [p * d for p, d in zip(position, dilations, strict=True)]
        limit = [b + (n - 1) * s + 1 for b, n, s in zip(start, out, strides, strict=True)]
        patch = lax.slice(lhs, (0, 0, *start), (*lhs.shape[:2], *limit), (1, 1, *strides))
        patches.append(patch.reshape(*lhs.shape[:2], 1, math.prod(out)))
    return lax.concatenate(patches, 2)


def _grouped(seen: jax.Array, rhs: jax.Array, params: Mapping[str, Param]) -> jax.Array:
    """Contracts each group; returns (features out, batch, outputs), with the groups outermost."""
    n, features, positions, outputs = seen.shape
    groups = max(params["feature_group_count"], params["batch_group_count"])
    if params["batch_group_count"] > 1:
        seen = seen.reshape(groups, n // groups, features, positions, outputs)
        seen = lax.transpose(seen, (0, 2, 3, 1, 4))
    else:
        seen = seen.reshape(n, groups, features // groups, positions, outputs)
        seen = lax.transpose(seen, (1, 2, 3, 0, 4))
    depth = seen.shape[1] * positions
    columns = seen.reshape(groups, depth, -1)
    matrices = rhs.reshape(groups, rhs.shape[0] // groups, depth)
    return lax.dot_general(matrices, columns, (((2,), (1,)), ((0,), (0,))))


_FUNCTIONS = {
    lax.conv_general_dilated_p: ("Conv2D", _convolution),
    lax.dot_general_p: ("MatMul", _dot_general),
}
