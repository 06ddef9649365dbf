"""Contractions: dot_general, ragged_dot_general and scaled_dot.

A contraction is one MatMul or BatchMatMulV2: batch dimensions stay as they are, and a transpose or
a reshape comes only where the operand's dimensions do not already read batch, free, contracting or
batch, contracting, free. XlaDotV2 serves where JAX asks for a precision that MatMul has no word
for.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from jax2tf import compat, dtypes
from jax2tf.lowering.conversions import cast
from jax2tf.lowering.rules import Context, register

DimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]],
    tuple[Sequence[int], Sequence[int]],
]

# Where TensorFlow has no MatMul kernel on every device and in every mode: the dtype in which the
# result, cast back, is the same. Integers wrap alike at every width; float8 is exact in float32, as
# XLA computes it; a bool is true where any product is.
KERNEL_DTYPES = {
    dtypes.to_tf(jnp.dtype(name)): kernel
    for kernel, names in {
        tf.int32: "bool int4 int8 int16 uint4 uint8 uint16 uint32",
        tf.int64: "uint64",
        tf.float32: "float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz",
    }.items()
    for name in names.split()
}


@register("dot_general")
def _dot_general(
    ctx: Context,
    lhs: tf.Tensor,
    rhs: tf.Tensor,
    *,
    dimension_numbers: DimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
) -> tf.Tensor:
    # preferred_element_type is the result's dtype.
    lhs_aval, rhs_aval = ctx.avals_in
    compute = compute_dtype(lhs_aval.dtype, rhs_aval.dtype, ctx.avals_out[0].dtype)
    kernel = KERNEL_DTYPES.get(compute, compute)
    # Two casts: the operands' values in `compute` first, as XLA has them there.
    lhs, rhs = (cast(cast(x, compute), kernel) for x in (lhs, rhs))
    config = precision_config(precision)
    if config and ctx.enable_xla and kernel in (tf.float32, tf.complex64):
        out = compat.xla_ops.xla_dot_v2(
            lhs, rhs, _dot_dimension_numbers(dimension_numbers), config, kernel
        )
    else:
        out = _contract(ctx, lhs, rhs, dimension_numbers)
    return cast(cast(out, compute), ctx.out)


def compute_dtype(lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> tf.DType:
    """The dtype to which XLA brings the operands of a contraction: the wider of theirs and `out`.

    JAX itself casts operands of different dtypes to the dtype of the result.
    """
    return dtypes.to_tf(out if lhs != rhs or _width(out) >= _width(lhs) else lhs)


def precision_config(precision: Any) -> bytes:
    """XLA's PrecisionConfig message for JAX's `precision`, empty for the default."""
    both = precision if isinstance(precision, tuple) else (precision, precision)
    if any(not isinstance(p, jax.lax.Precision) for p in both) or all(
        p == jax.lax.Precision.DEFAULT for p in both
    ):
        return b""
    values = [compat.xla_data.PrecisionConfig.Precision.Value(p.name) for p in both]
    return compat.xla_data.PrecisionConfig(operand_precision=values).SerializeToString()


def _width(dtype: np.dtype) -> tuple[int, int, bool]:
    """Orders dtypes as XLA does when it asks which of two is more precise."""
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating)
    kind = next(i for i, kind in enumerate(kinds) if jax.dtypes.issubdtype(dtype, kind))
    return kind, np.dtype(dtype).itemsize, dtype == jnp.bfloat16


def _dot_dimension_numbers(dimension_numbers: DimensionNumbers) -> bytes:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return compat.xla_data.DotDimensionNumbers(
        lhs_contracting_dimensions=lhs_contracting,
        rhs_contracting_dimensions=rhs_contracting,
        lhs_batch_dimensions=lhs_batch,
        rhs_batch_dimensions=rhs_batch,
    ).SerializeToString()


def _contract(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, dimension_numbers: DimensionNumbers
) -> tf.Tensor:
    """dot_general of operands of one dtype that has a MatMul kernel, in that dtype."""
    lhs_shape, rhs_shape = (aval.shape for aval in ctx.avals_in[:2])
    left, right = _sides(len(lhs_shape), len(rhs_shape), _hashable(dimension_numbers))
    if not left.contracting:
        return _outer_product(ctx, lhs, rhs, left, right)
    # A right side without batch dimensions broadcasts over the free dimensions of the left one.
    merge_left = bool(left.batch or left.contracting_first or not left.free)
    out = tf.matmul(
        _as_matrices(ctx, lhs, lhs_shape, left, merge_free=merge_left),
        _as_matrices(ctx, rhs, rhs_shape, right, merge_free=True),
        transpose_a=left.contracting_first,
        transpose_b=not right.contracting_first,
    )
    if len(right.free) == 1 and (len(left.free) == 1 or not merge_left):
        return out
    batch, left_free, _ = left.split(lhs_shape)
    return tf.reshape(out, ctx.shape(batch + left_free + right.split(rhs_shape)[1]))


def _as_matrices(
    ctx: Context, x: tf.Tensor, shape: Sequence[Any], side: _Side, *, merge_free: bool
) -> tf.Tensor:
    """An operand as a batch of matrices; unmerged free dimensions count as batch dimensions."""
    if side.permutation is not None:
        x = tf.transpose(x, side.permutation)
    batch, free, contracting = side.split(shape)
    if len(contracting) == 1 and (len(free) == 1 or not merge_free):
        return x
    if merge_free:
        free = [math.prod(free)]
    matrix = [math.prod(contracting), *free]
    return tf.reshape(x, ctx.shape(batch + (matrix if side.contracting_first else matrix[::-1])))


@dataclasses.dataclass(frozen=True)
class _Side:
    """How the dimensions of one operand read as a batch of matrices.

    Attributes:
      batch, free, contracting: the dimensions, each in the order of the result or of their pairs.
      contracting_first: whether the matrices are contracting x free, not free x contracting.
      permutation: brings the dimensions into that order; None if they are in it.
    """

    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracting: tuple[int, ...]
    contracting_first: bool
    permutation: tuple[int, ...] | None

    def split(self, shape: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The sizes of the batch, free and contracting dimensions."""
        batch, free, contracting = (
            [shape[d] for d in dims] for dims in (self.batch, self.free, self.contracting)
        )
        return batch, free, contracting


@functools.cache
def _sides(
    lhs_rank: int, rhs_rank: int, dimension_numbers: DimensionNumbers
) -> tuple[_Side, _Side]:
    """Both operands' sides, their contracting dimensions in the order that saves transposes."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    pairs = list(zip(lhs_contracting, rhs_contracting, strict=True))
    candidates = [
        (
            _side(lhs_rank, lhs_batch, tuple(p[0] for p in order), prefer_contracting_first=False),
            _side(rhs_rank, rhs_batch, tuple(p[1] for p in order), prefer_contracting_first=True),
        )
        for order in (sorted(pairs), sorted(pairs, key=lambda pair: pair[1]))
    ]
    return min(candidates, key=lambda sides: sum(s.permutation is not None for s in sides))


def _side(
    rank: int,
    batch: tuple[int, ...],
    contracting: tuple[int, ...],
    *,
    prefer_contracting_first: bool,
) -> _Side:
    """A side without a transpose if there is one, else one that keeps the last dimension last."""
    free = tuple(d for d in range(rank) if d not in batch and d not in contracting)
    orders = [(True, batch + contracting + free), (False, batch + free + contracting)]
    orders.sort(
        key=lambda order: (
            order[1] != tuple(range(rank)),
            order[1][-1:] != (rank - 1,),
            order[0] != prefer_contracting_first,
        )
    )
    contracting_first, order = orders[0]
    in_order = order == tuple(range(rank))
    return _Side(batch, free, contracting, contracting_first, None if in_order else order)


def _outer_product(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, left: _Side, right: _Side
) -> tf.Tensor:
    """dot_general without contracting dimensions: each element of one times each of the other."""
    batch, left_free, _ = left.split(ctx.avals_in[0].shape)
    _, right_free, _ = right.split(ctx.avals_in[1].shape)
    if left.permutation is not None:
        lhs = tf.transpose(lhs, left.permutation)
    if right.permutation is not None:
        rhs = tf.transpose(rhs, right.permutation)
    if right_free:
        lhs = tf.reshape(lhs, ctx.shape([*batch, *left_free, *[1] * len(right_free)]))
    if left_free and batch:
        rhs = tf.reshape(rhs, ctx.shape([*batch, *[1] * len(left_free), *right_free]))
    return lhs * rhs


def _hashable(dimension_numbers: DimensionNumbers) -> DimensionNumbers:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return (
        (tuple(lhs_contracting), tuple(rhs_contracting)),
        (tuple(lhs_batch), tuple(rhs_batch)),
    )
