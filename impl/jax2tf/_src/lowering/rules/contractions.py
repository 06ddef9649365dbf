"""Contractions: dot_general, ragged_dot_general, scaled_dot and scaled_matmul.

A contraction is one MatMul or BatchMatMulV2; see emit/contractions.py for the layout. If JAX asks
for a precision that MatMul cannot express, it is an XlaDotV2.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import compat, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import MULTIPLIED, carrier_of
from jax2tf._src.lowering.emit.contractions import DimensionNumbers, contract
from jax2tf._src.lowering.emit.float_bits import with_fewer_bits
from jax2tf._src.lowering.emit.known_values import is_number, known_value, zero
from jax2tf._src.lowering.emit.precision import compute_dtype, precision_config
from jax2tf._src.lowering.registry import register
from jax2tf._src.tracing import jaxprs
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Param, Shape

# The dtypes of operands and result for a DotAlgorithmPreset, as in JAX. If the kernel does not
# implement the algorithm, it computes more precisely.
_ALGORITHM_DTYPES = {
    "F16_F16_F16": (dtypes.float16, dtypes.float16),
    "F16_F16_F32": (dtypes.float16, dtypes.float32),
    "BF16_BF16_BF16": (dtypes.bfloat16, dtypes.bfloat16),
    "BF16_BF16_F32": (dtypes.bfloat16, dtypes.float32),
    "BF16_BF16_F32_X3": (dtypes.float32, dtypes.float32),
    "BF16_BF16_F32_X6": (dtypes.float32, dtypes.float32),
    "BF16_BF16_F32_X9": (dtypes.float32, dtypes.float32),
    "TF32_TF32_F32": (dtypes.float32, dtypes.float32),
    "TF32_TF32_F32_X3": (dtypes.float32, dtypes.float32),
    "F32_F32_F32": (dtypes.float32, dtypes.float32),
    "F64_F64_F64": (dtypes.float64, dtypes.float64),
}


@register("dot_general")
def _dot_general(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    *,
    dimension_numbers: DimensionNumbers,
    precision: lax.PrecisionLike,
    preferred_element_type: np.dtype | None,
) -> Tensor:
    del preferred_element_type  # The result's aval has it.
    lhs_shape, rhs_shape = (aval.shape for aval in ctx.avals_in)
    return _dot(ctx, lhs, rhs, lhs_shape, rhs_shape, dimension_numbers, precision)


def _dot(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    lhs_shape: Shape,
    rhs_shape: Shape,
    dimension_numbers: DimensionNumbers,
    precision: lax.PrecisionLike = None,
) -> Tensor:
    """dot_general in dtype `ctx.out` of operands with JAX's shapes `lhs_shape` and `rhs_shape`."""
    if precision is jax.lax.DotAlgorithmPreset.DEFAULT:  # It means the same as None.
        precision = None
    algorithm = isinstance(precision, jax.lax.DotAlgorithmPreset | jax.lax.DotAlgorithm)
    if any(lhs_shape[d] == 0 for d in dimension_numbers[0][0]):
        # For a sum of no products, an engine returns uninitialised memory.
        return ctx.zeros(ctx.avals_out[0])
    if _is_of_zeros(lhs, rhs) or _is_of_zeros(rhs, lhs):
        return ctx.zeros(ctx.avals_out[0])
    if algorithm:
        operand, compute = _algorithm_dtypes(ctx, precision)
        # XLA itself splits float32 into bfloat16s.
        if (operand, lhs.dtype, rhs.dtype) != (dtypes.bfloat16, dtypes.float32, dtypes.float32):
            lhs, rhs = cast(lhs, operand), cast(rhs, operand)
    else:
        compute = compute_dtype(lhs.dtype, rhs.dtype, ctx.out)
    config = precision_config(precision) if ctx.wants("XlaDotV2") else b""
    kernel = carrier_of(MULTIPLIED, compute)
    if not (algorithm and config):
        # Two casts: XLA first rounds the operands to `compute`.
        lhs, rhs = (cast(cast(x, compute), kernel) for x in (lhs, rhs))
    if config and (algorithm or kernel in (dtypes.float32, dtypes.complex64)):
        numbers = _dot_dimension_numbers(dimension_numbers)
        out = ops.xla.xla_dot_v2(lhs, rhs, numbers, config, kernel)
    else:
        out = contract(ctx, lhs, rhs, lhs_shape, rhs_shape, dimension_numbers)
    return cast(cast(out, compute), ctx.out)


def _is_of_zeros(x: Tensor, y: Tensor) -> bool:
    """Whether x, and its product with y, are known to be zero: 0 * inf is not."""
    if not is_number(x, zero):
        return False
    if y.dtype.is_integer:
        return True
    value = known_value(y)
    return value is not None and bool(np.isfinite(value.astype(np.complex128)).all())


def _algorithm_dtypes(ctx: Context, algorithm: Param) -> tuple[DType, DType]:
    known = _ALGORITHM_DTYPES.get(getattr(algorithm, "name", ""))
    if known is None:
        raise ctx.unsupported(
            "TensorFlow has no such algorithm for a matrix product",
            "use one of the other presets of jax.lax.DotAlgorithmPreset",
            precision=algorithm,
        )
    return known


def _dot_dimension_numbers(dimension_numbers: DimensionNumbers) -> bytes:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return compat.xla.xla_data.DotDimensionNumbers(
        lhs_contracting_dimensions=lhs_contracting,
        rhs_contracting_dimensions=rhs_contracting,
        lhs_batch_dimensions=lhs_batch,
        rhs_batch_dimensions=rhs_batch,
    ).SerializeToString()


@register("ragged_dot_general")
def _ragged_dot_general(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    group_sizes: Tensor,
    *,
    ragged_dot_dimension_numbers: jax.lax.RaggedDotDimensionNumbers,
    precision: lax.PrecisionLike,
    preferred_element_type: np.dtype | None,
) -> Tensor:
    """As JAX does it except on TPUs: dot_general over the groups, with zeros for other groups."""
    del preferred_element_type  # The result's aval has it.
    lhs_shape, rhs_shape, sizes_shape = (aval.shape for aval in ctx.avals_in)
    numbers = ragged_dot_dimension_numbers
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    groups = sizes_shape[-1]
    if ragged in lhs_batch:
        dimension_numbers = numbers.dot_dimension_numbers
    elif ragged in lhs_contracting:
        at = lhs_contracting.index(ragged)
        outer = (*lhs_batch, *lhs_contracting[:at])
        lhs = _masked(ctx, lhs, lhs_shape, group_sizes, outer, ragged)
        outer = (*rhs_batch, *rhs_contracting[:at])
        rhs = _masked(ctx, rhs, rhs_shape, group_sizes, outer, rhs_contracting[at])
        lhs_shape, rhs_shape = (groups, *lhs_shape), (groups, *rhs_shape)
        dimension_numbers = (
            (_shifted(lhs_contracting), _shifted(rhs_contracting)),
            ((0, *_shifted(lhs_batch)), (0, *_shifted(rhs_batch))),
        )
    else:
        fixed = (*lhs_batch, *lhs_contracting)
        outer = (*lhs_batch, *(d for d in range(ragged) if d not in fixed))
        lhs = _masked(ctx, lhs, lhs_shape, group_sizes, outer, ragged)
        lhs_shape = (groups, *lhs_shape)
        dimension_numbers = (
            ((0, *_shifted(lhs_contracting)), (*numbers.rhs_group_dimensions, *rhs_contracting)),
            (_shifted(lhs_batch), rhs_batch),
        )
    kernel = carrier_of(MULTIPLIED, lhs.dtype)
    if kernel.is_integer and not ctx.takes("MatMul", kernel.name):
        # The target decomposes a dot_general of integers; trace one for it.
        return _dot_of_jax(ctx, lhs, rhs, lhs_shape, rhs_shape, dimension_numbers)
    return _dot(ctx, lhs, rhs, lhs_shape, rhs_shape, dimension_numbers, precision)


def _dot_of_jax(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    lhs_shape: Shape,
    rhs_shape: Shape,
    dimension_numbers: DimensionNumbers,
) -> Tensor:
    (out,) = ctx.avals_out
    lhs_aval, rhs_aval = ctx.avals_in[:2]

    def make() -> jex_core.ClosedJaxpr:
        dot = functools.partial(
            jax.lax.dot_general,
            dimension_numbers=dimension_numbers,
            preferred_element_type=out.dtype,
        )
        specs = [
            jax.ShapeDtypeStruct(lhs_shape, lhs_aval.dtype),
            jax.ShapeDtypeStruct(rhs_shape, rhs_aval.dtype),
        ]
        return jaxprs.traced(dot, specs)

    (product,) = ctx.inline(ctx.traced("dot_general", make), lhs, rhs)
    return product


def _masked(
    ctx: Context,
    x: Tensor,
    shape: Shape,
    group_sizes: Tensor,
    outer: Sequence[int],
    ragged: int,
) -> Tensor:
    """Repeats `x` for each group along a new first dimension, with zeros outside of the group.

    Args:
      group_sizes: the number of elements of dimension `ragged` in each group; one list of sizes, or
        one for each index into the dimensions `outer`.
    """
    kernel = carrier_of(MULTIPLIED, x.dtype)
    wide = (
        dtypes.int64
        if group_sizes.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64)
        else dtypes.int32
    )
    sizes = ops.cast(group_sizes, wide)
    # Form: last_axis_by_number.
    ends = ops.cumsum(sizes, sizes.shape.rank - 1)[..., None]
    positions = ops.range(ctx.dim(shape[ragged]), dtype=wide)
    inside = (ends - sizes[..., None] <= positions) & (positions < ends)
    # The mask has the dimensions outer, group, ragged; it is aligned with x.
    places = [*(d + 1 for d in outer), 0, ragged + 1]
    if group_sizes.shape.rank == 1:
        places = places[-2:]
    inside = ops.transpose(inside, sorted(range(len(places)), key=places.__getitem__))
    for d in range(len(shape) + 1):
        if d not in places:
            inside = ops.expand_dims(inside, d)
    zero = ops.zeros([], kernel)
    return cast(ops.where(inside, cast(x, kernel)[None], zero), x.dtype)


def _shifted(dimensions: Sequence[int]) -> tuple[int, ...]:
    """The indices of dimensions after a new first dimension was added."""
    return tuple(d + 1 for d in dimensions)


@register("scaled_dot")
def _scaled_dot(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    lhs_scale: Tensor,
    rhs_scale: Tensor,
    *,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: np.dtype | None = None,
) -> Tensor:
    """(lhs * lhs_scale) @ (rhs * rhs_scale), scaled in bfloat16; each scale applies to a block."""
    del preferred_element_type  # The result's aval has it.
    lhs_shape, rhs_shape, *scale_shapes = (aval.shape for aval in ctx.avals_in)
    lhs = _scaled(ctx, lhs, lhs_shape, lhs_scale, scale_shapes[0])
    rhs = _scaled(ctx, rhs, rhs_shape, rhs_scale, scale_shapes[1])
    return _dot(ctx, lhs, rhs, lhs_shape, rhs_shape, dimension_numbers)


@register("scaled_matmul_wrapper")
def _scaled_matmul(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    lhs_scale: Tensor,
    rhs_scale: Tensor,
    *,
    preferred_element_type: np.dtype | None,
) -> list[Tensor]:
    """Like scaled_dot of [b, m, k] and [b, n, k], but scaled in the dtype of the result."""
    del preferred_element_type  # The result's aval has it.
    lhs_shape, rhs_shape, *scale_shapes = (aval.shape for aval in ctx.avals_in)
    lhs = _repeated(ctx, cast(lhs_scale, ctx.out), lhs_shape, scale_shapes[0]) * cast(lhs, ctx.out)
    rhs = _repeated(ctx, cast(rhs_scale, ctx.out), rhs_shape, scale_shapes[1]) * cast(rhs, ctx.out)
    return [_dot(ctx, lhs, rhs, lhs_shape, rhs_shape, (((2,), (2,)), ((0,), (0,))))]


def _scaled(ctx: Context, x: Tensor, shape: Shape, scale: Tensor, scale_shape: Shape) -> Tensor:
    scale = _repeated(ctx, cast(scale, dtypes.bfloat16), shape, scale_shape)
    # XLA may drop a rounding between two casts, so an explicit op rounds.
    product = ops.cast(cast(x, dtypes.bfloat16), dtypes.float32) * ops.cast(scale, dtypes.float32)
    round_to = (
        ops.xla.xla_reduce_precision
        if ctx.wants("XlaReducePrecision")
        else functools.partial(with_fewer_bits, ctx)
    )
    return ops.cast(round_to(product, exponent_bits=8, mantissa_bits=7), dtypes.bfloat16)


def _repeated(ctx: Context, scale: Tensor, shape: Shape, scale_shape: Shape) -> Tensor:
    """Repeats the scale of each block for its elements."""
    for d, (size, blocks) in enumerate(zip(shape, scale_shape, strict=True)):
        if size != blocks:
            scale = ops.repeat(scale, ctx.dim(size // blocks), axis=d)
    return scale
