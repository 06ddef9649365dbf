"""Convolutions: conv_general_dilated.

Operands are transposed to the layout of TensorFlow's CPU kernels (N...C, with a ...IO filter), and
the first op is taken that fits:

1. Conv2D (for one and two spatial dimensions), DepthwiseConv2dNative, Conv3D;
2. Conv2DBackpropInput and Conv3DBackpropInputV2 for a dilated input (a transposed convolution);
3. XlaConvV2, if XLA ops are allowed; otherwise the convolution is rewritten until 1. fits, or
   becomes a matrix product of all patches of the input.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import jax
import numpy as np
from jax import lax

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.casts import cast
from jax2tf._src.lowering.emit.compute_dtypes import MULTIPLIED, carrier_of
from jax2tf._src.lowering.emit.convolution_ops import (
    CONV2D_DTYPES,
    FLOATS,
    Conv,
    all_ones,
    conv2d,
    conv3d,
    conv_backprop_input,
    in_groups,
    is_transposed_conv,
    with_dilated_kernel,
    with_padding,
    xla_conv,
)
from jax2tf._src.lowering.emit.convolution_patches import (
    product_of_patches,
    products_of_patches_by_groups,
)
from jax2tf._src.lowering.emit.precision import compute_dtype, precision_of_convolution
from jax2tf._src.lowering.registry import register
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim, Shape


@register("conv_general_dilated")
def _conv_general_dilated(
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: jax.lax.ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: lax.PrecisionLike,
    preferred_element_type: np.dtype | None,
) -> Tensor:
    # The result's dtype is preferred_element_type.
    lhs_aval, rhs_aval = ctx.avals_in
    (out_aval,) = ctx.avals_out
    lhs_order = _features_last(dimension_numbers.lhs_spec)
    rhs_order = (*dimension_numbers.rhs_spec[2:], *dimension_numbers.rhs_spec[1::-1])
    out_order = _features_last(dimension_numbers.out_spec)
    conv = Conv(
        lhs_shape=tuple(lhs_aval.shape[d] for d in lhs_order),
        rhs_shape=tuple(rhs_aval.shape[d] for d in rhs_order),
        out_shape=tuple(out_aval.shape[d] for d in out_order),
        strides=tuple(window_strides),
        padding=tuple((low, high) for low, high in padding),
        lhs_dilation=tuple(lhs_dilation),
        rhs_dilation=tuple(rhs_dilation),
        feature_groups=feature_group_count,
        batch_groups=batch_group_count,
        precision=precision_of_convolution(precision) if ctx.wants("XlaConvV2") else b"",
    )
    if _has_zero(conv.out_shape) or _has_zero(conv.lhs_shape) or _has_zero(conv.rhs_shape):
        return ctx.zeros(out_aval)
    compute = compute_dtype(lhs.dtype, rhs.dtype, ctx.out)
    convolve = _complex if compute.is_complex else _real
    wanted, conv = conv.out_shape, _with_a_window(conv)
    out = convolve(ctx, _transposed(lhs, lhs_order), _transposed(rhs, rhs_order), conv, compute)
    if conv.out_shape != wanted:
        out = ops.slice(out, [0] * len(wanted), ctx.shape(wanted))
    return _transposed(cast(out, ctx.out), _inverse(out_order))


def _with_a_window(conv: Conv) -> Conv:
    """Pads the convolution until at least one window fits.

    If none fits, JAX's result is empty, and TensorFlow's ops refuse the input.
    """
    padding, out_shape = list(conv.padding), list(conv.out_shape)
    for i, window in enumerate(conv.window):
        # max_dim returns a size that is known to be at least one unchanged.
        out_shape[i + 1] = jax.core.max_dim(conv.out_shape[i + 1], 1)
        if out_shape[i + 1] != conv.out_shape[i + 1]:
            low, high = conv.padding[i]
            given = (conv.lhs_shape[i + 1] - 1) * conv.lhs_dilation[i] + 1 + low + high
            padding[i] = (low, high + jax.core.max_dim(window - given, 0))
    return dataclasses.replace(conv, padding=tuple(padding), out_shape=tuple(out_shape))


def _complex(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv, compute: DType) -> Tensor:
    """Gauss's product of three real convolutions, summed in JAX's order."""
    a, b, c, d = ops.real(lhs), ops.imag(lhs), ops.real(rhs), ops.imag(rhs)
    k1 = _real(ctx, a + b, c, conv, compute.real_dtype)
    k2 = _real(ctx, a, d - c, conv, compute.real_dtype)
    k3 = _real(ctx, b, c + d, conv, compute.real_dtype)
    return ops.complex(k1 - k3, k1 + k2)


def _real(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv, compute: DType) -> Tensor:
    kernel = carrier_of(MULTIPLIED, compute)
    lhs, rhs = (cast(cast(x, compute), kernel) for x in (lhs, rhs))
    exact = ctx.wants("XlaConvV2") and conv.precision and conv.rank and kernel == dtypes.float32
    out = xla_conv(ctx, lhs, rhs, conv) if exact else _convolve(ctx, lhs, rhs, conv)
    return cast(out, compute)


def _convolve(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Convolves by the first op that fits, in the dtype of the operands."""
    if not dims.is_static((conv.batch_groups,)):  # no op takes their number as a tensor
        lhs, rhs, conv = _batch_groups_as_features(ctx, lhs, rhs, conv)
    if ctx.has(Quirk.NO_OPEN_NUMBER_OF_GROUPS) and _has_open_groups(conv):
        return _rewritten(ctx, lhs, rhs, conv)
    plain = all_ones(conv.lhs_dilation) and conv.batch_groups == 1
    plainer = plain and all_ones(conv.rhs_dilation) and conv.feature_groups == 1
    if plain and 1 <= conv.rank <= 2 and lhs.dtype in CONV2D_DTYPES:
        apart = ctx.has(Quirk.NO_CONVOLUTION_IN_GROUPS) and dims.is_static((conv.feature_groups,))
        if apart and in_groups(conv, lhs.dtype):
            return _convolved_by_groups(ctx, lhs, rhs, conv)
        is_dilated = not (all_ones(conv.strides) or all_ones(conv.rhs_dilation))
        if is_dilated and ctx.has(Quirk.NO_STRIDES_OF_DILATED):
            rhs, conv = with_dilated_kernel(ctx, rhs, conv)
        return conv2d(ctx, lhs, rhs, conv)
    if plainer and conv.rank == 3 and lhs.dtype in FLOATS:
        return conv3d(ctx, lhs, rhs, conv)
    if is_transposed_conv(conv) and lhs.dtype in FLOATS:
        return conv_backprop_input(ctx, lhs, rhs, conv)
    if ctx.wants("XlaConvV2") and conv.rank > 0:
        return xla_conv(ctx, lhs, rhs, conv)
    return _rewritten(ctx, lhs, rhs, conv)


def _has_open_groups(conv: Conv) -> bool:
    """Whether the number of groups is dynamic, while the size of the filter is static."""
    filter_size = conv.rhs_shape[: conv.rank]
    return not dims.is_static((conv.feature_groups,)) and dims.is_static(filter_size)


def _rewritten(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Rewrites the convolution by one step towards standard ops, and continues from there."""
    if conv.batch_groups != 1:
        return _convolve(ctx, *_batch_groups_as_features(ctx, lhs, rhs, conv))
    if any(itertools.chain(*conv.padding)) or not all_ones(conv.lhs_dilation):
        lhs = with_padding(ctx, lhs, conv)
        spatial = [
            (n - 1) * d + 1 + low + high
            for n, d, (low, high) in zip(
                conv.lhs_shape[1:-1], conv.lhs_dilation, conv.padding, strict=True
            )
        ]
        conv = dataclasses.replace(
            conv,
            lhs_shape=(conv.lhs_shape[0], *spatial, conv.lhs_shape[-1]),
            padding=((0, 0),) * conv.rank,
            lhs_dilation=(1,) * conv.rank,
        )
        return _convolve(ctx, lhs, rhs, conv)
    if conv.feature_groups == 1:
        return ops.matmul(lhs, rhs) if conv.rank == 0 else product_of_patches(ctx, lhs, rhs, conv)
    if conv.rank > 0 and dims.is_static((conv.feature_groups,)):
        return _convolved_by_groups(ctx, lhs, rhs, conv)
    return products_of_patches_by_groups(ctx, lhs, rhs, conv)


def _batch_groups_as_features(
    ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv
) -> tuple[Tensor, Tensor, Conv]:
    """The same convolution, with the batch groups of `lhs` as groups of features."""
    groups, (batch, *spatial, features) = conv.batch_groups, conv.lhs_shape
    lhs = ctx.reshaped(lhs, (groups, batch // groups, *spatial, features))
    lhs = ops.transpose(lhs, (*range(1, conv.rank + 2), 0, conv.rank + 2))
    shape = (batch // groups, *spatial, groups * features)
    lhs = ctx.reshaped(lhs, shape)
    return (
        lhs,
        rhs,
        dataclasses.replace(conv, lhs_shape=shape, feature_groups=groups, batch_groups=1),
    )


def _convolved_by_groups(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    groups = conv.feature_groups
    one = dataclasses.replace(
        conv,
        lhs_shape=(*conv.lhs_shape[:-1], conv.lhs_shape[-1] // groups),
        rhs_shape=(*conv.rhs_shape[:-1], conv.rhs_shape[-1] // groups),
        out_shape=(*conv.out_shape[:-1], conv.out_shape[-1] // groups),
        feature_groups=1,
    )
    parts = zip(ops.split(lhs, groups, -1), ops.split(rhs, groups, -1), strict=True)
    return ops.concat([_convolve(ctx, a, b, one) for a, b in parts], -1)


def _features_last(spec: Sequence[int]) -> tuple[int, ...]:
    """Reorders (batch, features, spatial...) to (batch, spatial..., features)."""
    return (spec[0], *spec[2:], spec[1])


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


def _transposed(x: Tensor, order: tuple[int, ...]) -> Tensor:
    return x if order == tuple(range(len(order))) else ops.transpose(x, order)


def _has_zero(shape: Shape) -> bool:
    return any(dims.is_static((d,)) and d == 0 for d in shape)
