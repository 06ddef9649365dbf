"""Changes the ranks of operands, for targets that compute wrongly with some ranks."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Sequence

import jax
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import traits
from jax2tf._src.util.typing import aval_of

Function = Callable[..., Sequence[jax.Array]]

# The op of each reduction.
_REDUCTIONS = {
    lax.reduce_and_p: "All",
    lax.reduce_max_p: "Max",
    lax.reduce_min_p: "Min",
    lax.reduce_or_p: "Any",
    lax.reduce_prod_p: "Prod",
    lax.reduce_sum_p: "Sum",
}
# TensorFlow's kernels broadcast dimensions of size 1. They merge neighbours that are broadcast
# alike into one dimension, and take at most this many.
_MOST_GROUPS = 5


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for operands of ranks that the target computes wrongly, or None."""
    if eqn.primitive in traits.BINARY and _has_many_groups(eqn):
        return _of_one_shape
    if eqn.primitive is lax.atan2_p and target.has(Quirk.NO_ATAN2_OF_SCALAR):
        shapes = {v.aval.shape for v in (*eqn.invars, *eqn.outvars)}  # type: ignore[attr-defined]
        return _of_one_shape if len(shapes) > 1 else None
    if eqn.primitive in traits.ORDERED_ALONG and target.has(Quirk.NO_GATHER_OF_ONE_BATCH):
        return _of_one_row if _is_one_row(eqn) else None
    if eqn.primitive not in _REDUCTIONS:
        return None
    aval = aval_of(eqn.invars[0])
    rank = len(aval.shape)
    if not target.takes_rank(_REDUCTIONS[eqn.primitive], rank):
        return functools.partial(_with_merged_dimensions, target)
    is_integer = jax.numpy.issubdtype(aval.dtype, jax.numpy.integer)
    if is_integer and target.has(Quirk.NO_INTEGERS_OF_THREE_DIMENSIONS):
        groups = _groups(rank, eqn.params["axes"])
        if len(groups) < rank or _is_along_the_middle(groups):
            return _of_integers
    return None


def _has_many_groups(eqn: jex_core.JaxprEqn) -> bool:
    out = aval_of(eqn.outvars[0]).shape
    shapes = [aval_of(v).shape for v in eqn.invars]
    if len(out) <= _MOST_GROUPS or any(len(shape) != len(out) for shape in shapes):
        return False
    sizes = zip(out, *shapes, strict=True)
    repeated = (tuple(size != whole for size in of_each) for whole, *of_each in sizes)
    return sum(1 for _ in itertools.groupby(repeated)) > _MOST_GROUPS


def _of_one_shape(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    out = aval_of(eqn.outvars[0])
    whole = (jax.numpy.broadcast_to(x, out.shape) for x in operands)
    return [eqn.primitive.bind(*whole, **eqn.params)]


def _is_one_row(eqn: jex_core.JaxprEqn) -> bool:
    shape = list(aval_of(eqn.invars[0]).shape)
    del shape[eqn.params[traits.ORDERED_ALONG[eqn.primitive]]]
    return bool(shape) and all(isinstance(size, int) and size == 1 for size in shape)


def _of_one_row(eqn: jex_core.JaxprEqn, *operands: jax.Array) -> Sequence[jax.Array]:
    """Applies the primitive to vectors, and restores the dimensions of size one."""
    param = traits.ORDERED_ALONG[eqn.primitive]
    along = eqn.params[param] % operands[0].ndim
    others = [d for d in range(operands[0].ndim) if d != along]
    vectors = (lax.squeeze(x, others) for x in operands)
    results = eqn.primitive.bind(*vectors, **(eqn.params | {param: 0}))
    return [lax.expand_dims(y, others) for y in results]


def _of_integers(eqn: jex_core.JaxprEqn, x: jax.Array) -> Sequence[jax.Array]:
    """Merges neighbouring dimensions before the reduction.

    If the middle one of three dimensions is reduced, it adds a first dimension of size 1, which is
    reduced too.
    """
    groups = _groups(x.ndim, eqn.params["axes"])
    merged, axes = _merged(x, groups)
    if _is_along_the_middle(groups):
        merged, axes = lax.expand_dims(merged, [0]), (0, 2)
    result = eqn.primitive.bind(merged, **(eqn.params | {"axes": axes}))
    out = aval_of(eqn.outvars[0])
    return [lax.reshape(result, out.shape) if result.shape != out.shape else result]


def _with_merged_dimensions(
    target: Target, eqn: jex_core.JaxprEqn, x: jax.Array
) -> Sequence[jax.Array]:
    """Merges neighbours that are all reduced, or all kept, into one dimension and reduces."""
    return [_reduced(target, eqn, x, frozenset(eqn.params["axes"]))]


def _reduced(
    target: Target, eqn: jex_core.JaxprEqn, x: jax.Array, axes: frozenset[int]
) -> jax.Array:
    groups = _groups(x.ndim, axes)
    if not target.takes_rank(_REDUCTIONS[eqn.primitive], len(groups)):
        # There are still too many dimensions, so the last group is reduced first.
        last = max(dims for is_reduced, dims in groups if is_reduced)
        once = _reduced(target, eqn, x, frozenset(last))
        return _reduced(target, eqn, once, axes.difference(last))
    merged, along = _merged(x, groups)
    result = eqn.primitive.bind(merged, **(eqn.params | {"axes": along}))
    kept = [x.shape[d] for d in range(x.ndim) if d not in axes]
    return lax.reshape(result, kept)


# Groups of neighbouring dimensions, each with whether it is reduced.
_Groups = Sequence[tuple[bool, tuple[int, ...]]]


def _groups(rank: int, axes: Collection[int]) -> _Groups:
    return [
        (is_reduced, tuple(dims))
        for is_reduced, dims in itertools.groupby(range(rank), lambda d: d in axes)
    ]


def _is_along_the_middle(groups: _Groups) -> bool:
    return [is_reduced for is_reduced, _ in groups] == [False, True, False]


def _merged(x: jax.Array, groups: _Groups) -> tuple[jax.Array, tuple[int, ...]]:
    """Reshapes `x` to one dimension for each group; also returns the dimensions to reduce."""
    along = tuple(i for i, (is_reduced, _) in enumerate(groups) if is_reduced)
    if len(groups) == x.ndim:
        return x, along
    return lax.reshape(x, [math.prod(x.shape[d] for d in dims) for _, dims in groups]), along
