"""Convolutions as one TensorFlow op; the operands are in the layout of that op."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import jax

from jax2tf._src import compat, dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.arrays import flipped
from jax2tf._src.lowering.emit.padding import padded
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Dim

CONV2D_DTYPES = (dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.int32)
FLOATS = CONV2D_DTYPES[:-1]


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution of `lhs` (batch, spatial..., features) with `rhs` (spatial..., in, out).

    Attributes:
      lhs_shape, rhs_shape, out_shape: in that layout; dimensions may be symbolic.
      strides, lhs_dilation, rhs_dilation: one int for each spatial dimension.
      padding: (low, high) for each spatial dimension; negative cuts off.
      feature_groups, batch_groups: at most one of them is more than 1; either may be symbolic
        (vmap over filters makes as many groups as the batch has elements).
    """

    lhs_shape: tuple[Dim, ...]
    rhs_shape: tuple[Dim, ...]
    out_shape: tuple[Dim, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    feature_groups: Dim
    batch_groups: Dim
    precision: bytes

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    @property
    def window(self) -> list[Dim]:
        """The filter's spatial extent, dilation included."""
        return [
            (k - 1) * d + 1
            for k, d in zip(self.rhs_shape[: self.rank], self.rhs_dilation, strict=True)
        ]


def conv2d(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Conv2D or DepthwiseConv2dNative, for one and two spatial dimensions."""
    if conv.rank == 1:
        out = conv2d(ctx, lhs[:, None], rhs[None], _with_leading_dimension(conv))
        return ops.squeeze(out, [1])
    if _loses_the_window(ctx, conv):
        return _strided_afterwards(conv2d, ctx, lhs, rhs, conv)
    depthwise = _is_depthwise(conv, lhs.dtype)
    explicit = not (depthwise and ctx.has(Quirk.NO_PADDINGS_IN_NUMBERS))
    lhs, padding = _settled_padding(ctx, lhs, conv, explicit=explicit)
    if not depthwise:
        return ops.conv2d(lhs, rhs, conv.strides, padding, dilations=conv.rhs_dilation)
    height, width, _, features = conv.rhs_shape
    multiplier = features // conv.feature_groups
    if multiplier == 1:
        rhs = ops.transpose(rhs, (0, 1, 3, 2))
    else:
        rhs = ctx.reshaped(rhs, (height, width, conv.feature_groups, multiplier))
    return ops.raw.DepthwiseConv2dNative(
        input=lhs,
        filter=rhs,
        strides=(1, *conv.strides, 1),
        padding=padding if isinstance(padding, str) else "EXPLICIT",
        explicit_paddings=[] if isinstance(padding, str) else list(itertools.chain(*padding)),
    )


def _loses_the_window(ctx: Context, conv: Conv) -> bool:
    """Whether oneDNN may read outside the single window along the last axis."""
    *others, last = conv.out_shape[1:-1]
    return (
        ctx.has(Quirk.ONE_WINDOW_OF_ONE_FEATURE)
        and conv.rhs_shape[-2] == 1
        and conv.strides[-1] > 1
        and all_ones(conv.strides[:-1])
        and any(size != 1 for size in others)
        and (last == 1 or not dims.is_static((last,)))
    )


def _strided_afterwards(
    op: Callable[[Context, Tensor, Tensor, Conv], Tensor],
    ctx: Context,
    lhs: Tensor,
    rhs: Tensor,
    conv: Conv,
) -> Tensor:
    """Convolves without strides, and then takes every n-th element."""
    (low, high), window = conv.padding[-1], conv.window[-1]
    size = (conv.lhs_shape[-2] - 1) * conv.lhs_dilation[-1] + 1 + low + high - window + 1
    shape = (*conv.out_shape[:-2], size, conv.out_shape[-1])
    ones = (1,) * conv.rank
    out = op(ctx, lhs, rhs, dataclasses.replace(conv, strides=ones, out_shape=shape))
    return ops.strided_slice(out, [0] * (conv.rank + 2), ctx.shape(shape), (1, *conv.strides, 1))


def in_groups(conv: Conv, dtype: DType) -> bool:
    """Whether `conv2d` emits a Conv2D with grouped features."""
    planar = _with_leading_dimension(conv) if conv.rank == 1 else conv
    return conv.feature_groups != 1 and not _is_depthwise(planar, dtype)


def _is_depthwise(conv: Conv, dtype: DType) -> bool:
    return (
        conv.feature_groups == conv.lhs_shape[-1]
        and conv.feature_groups != 1
        and conv.strides[0] == conv.strides[1]
        and all_ones(conv.rhs_dilation)
        and dtype in FLOATS
    )


def conv3d(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Conv3D: three spatial dimensions, no dilation and no groups."""
    if _loses_the_window(ctx, conv):
        return _strided_afterwards(conv3d, ctx, lhs, rhs, conv)
    lhs, padding = _settled_padding(ctx, lhs, conv, explicit=False)
    return ops.conv3d(lhs, rhs, (1, *conv.strides, 1), padding)


def _settled_padding(
    ctx: Context, lhs: Tensor, conv: Conv, *, explicit: bool
) -> tuple[Tensor, Dim]:
    """`lhs` and the padding for a TensorFlow op: a name, or numbers if `explicit` allows them.

    If the op cannot express the padding, `lhs` is padded here.
    """
    if not any(itertools.chain(*conv.padding)):
        return lhs, "VALID"
    spatial = conv.lhs_shape[1:-1]
    same = tuple(jax.lax.padtype_to_pads(spatial, conv.window, conv.strides, "SAME"))
    if same == conv.padding:
        return lhs, "SAME"
    if explicit and all(dims.is_static(pads) and min(pads) >= 0 for pads in conv.padding):
        return lhs, [[0, 0], *map(list, conv.padding), [0, 0]]
    return with_padding(ctx, lhs, conv), "VALID"


def with_padding(ctx: Context, lhs: Tensor, conv: Conv) -> Tensor:
    """Dilates and pads `lhs`."""
    return padded(
        ctx,
        lhs,
        ops.zeros([], lhs.dtype),
        conv.lhs_shape,
        [0, *(low for low, _ in conv.padding), 0],
        [0, *(high for _, high in conv.padding), 0],
        [0, *(d - 1 for d in conv.lhs_dilation), 0],
    )


def with_dilated_kernel(ctx: Context, rhs: Tensor, conv: Conv) -> tuple[Tensor, Conv]:
    """Replaces the kernel's dilation by zeros in the kernel."""
    edges, gaps = [0] * (conv.rank + 2), [*(d - 1 for d in conv.rhs_dilation), 0, 0]
    zero = ops.zeros([], rhs.dtype)
    rhs = padded(ctx, rhs, zero, conv.rhs_shape, edges, edges, gaps)
    shape = (*conv.window, *conv.rhs_shape[conv.rank :])
    return rhs, dataclasses.replace(conv, rhs_shape=shape, rhs_dilation=(1,) * conv.rank)


def is_transposed_conv(conv: Conv) -> bool:
    """Whether this is the input gradient of a convolution with stride `lhs_dilation`."""
    return (
        1 <= conv.rank <= 3
        and conv.feature_groups == conv.batch_groups == 1
        and all_ones(conv.strides)
        and all_ones(conv.rhs_dilation)
        and all(
            dims.is_static((low, high, window)) and low < window and high - (window - 1) < dilation
            for (low, high), window, dilation in zip(
                conv.padding, conv.window, conv.lhs_dilation, strict=True
            )
        )
    )


def conv_backprop_input(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """A transposed convolution; the op's padding cuts the edges off the full result."""
    if conv.rank == 1:
        lhs, rhs, conv = lhs[:, None], rhs[None], _with_leading_dimension(conv)
        return ops.squeeze(conv_backprop_input(ctx, lhs, rhs, conv), [1])
    rank = conv.rank
    spatial = conv.out_shape[1:-1]
    taken = [
        (window - 1 - low, max(window - 1 - high, 0))
        for (low, high), window in zip(conv.padding, conv.window, strict=True)
    ]
    # The op flips the filter and takes the filter of the forward convolution.
    rhs = flipped(rhs, range(rank), at_once=not ctx.has(Quirk.ONE_REVERSE_AT_A_TIME))
    rhs = ops.transpose(rhs, (*range(rank), rank + 1, rank))
    strides = (1, *conv.lhs_dilation, 1)
    padding = _backprop_padding(conv, taken)
    if rank == 2 and not (padding == "EXPLICIT" and ctx.has(Quirk.NO_PADDINGS_IN_NUMBERS)):
        return ops.raw.Conv2DBackpropInput(
            input_sizes=ctx.shape(conv.out_shape),
            filter=rhs,
            out_backprop=lhs,
            strides=strides,
            padding=padding,
            explicit_paddings=[0, 0, *itertools.chain(*taken), 0, 0]
            if padding == "EXPLICIT"
            else [],
        )
    transpose = ops.conv2d_transpose if rank == 2 else ops.conv3d_transpose
    if padding != "EXPLICIT":
        return transpose(lhs, rhs, ctx.shape(conv.out_shape), strides, padding)
    # Conv3DBackpropInput takes no explicit padding; some targets lack it in two dimensions too.
    full = [
        (n - 1) * d + window
        for n, d, window in zip(conv.lhs_shape[1:-1], conv.lhs_dilation, conv.window, strict=True)
    ]
    shape = (conv.out_shape[0], *full, conv.out_shape[-1])
    out = transpose(lhs, rhs, ctx.shape(shape), strides, "VALID")
    low = [0, *(-low for low, _ in taken), 0]
    high = [d + a - n for d, a, n in zip(spatial, (a for a, _ in taken), full, strict=True)]
    no_gaps = [0] * (rank + 2)
    return padded(ctx, out, ops.zeros([], out.dtype), shape, low, [0, *high, 0], no_gaps)


def _backprop_padding(conv: Conv, taken: Sequence[tuple[int, int]]) -> str:
    """SAME or VALID if that padding gives the sizes of `lhs` and `taken`, else EXPLICIT."""
    spatial = conv.out_shape[1:-1]
    if not any(itertools.chain(*taken)):
        return "VALID"
    if not dims.is_static((*spatial, *conv.lhs_shape[1:-1])):
        return "EXPLICIT"
    same = jax.lax.padtype_to_pads(spatial, conv.window, conv.lhs_dilation, "SAME")
    sizes = [math.ceil(n / d) for n, d in zip(spatial, conv.lhs_dilation, strict=True)]
    is_same = sizes == list(conv.lhs_shape[1:-1]) and [a for a, _ in same] == [a for a, _ in taken]
    return "SAME" if is_same else "EXPLICIT"


def xla_conv(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Every conv_general_dilated as XlaConvV2, in the dtype of the operands."""
    spatial = range(conv.rank)
    numbers = compat.xla.xla_data.ConvolutionDimensionNumbers(
        input_batch_dimension=0,
        input_feature_dimension=conv.rank + 1,
        input_spatial_dimensions=[d + 1 for d in spatial],
        kernel_input_feature_dimension=conv.rank,
        kernel_output_feature_dimension=conv.rank + 1,
        kernel_spatial_dimensions=list(spatial),
        output_batch_dimension=0,
        output_feature_dimension=conv.rank + 1,
        output_spatial_dimensions=[d + 1 for d in spatial],
    )
    return ops.xla.xla_conv_v2(
        lhs,
        rhs,
        window_strides=conv.strides,
        padding=ops.stack([ctx.shape(edges) for edges in conv.padding]),
        lhs_dilation=conv.lhs_dilation,
        rhs_dilation=conv.rhs_dilation,
        feature_group_count=ctx.dim(conv.feature_groups),
        batch_group_count=conv.batch_groups,
        dimension_numbers=numbers.SerializeToString(),
        precision_config=conv.precision,
        preferred_element_type=lhs.dtype,
    )


def _with_leading_dimension(conv: Conv) -> Conv:
    """The same convolution with an additional first spatial dimension of size 1."""
    return dataclasses.replace(
        conv,
        lhs_shape=(conv.lhs_shape[0], 1, *conv.lhs_shape[1:]),
        rhs_shape=(1, *conv.rhs_shape),
        out_shape=(conv.out_shape[0], 1, *conv.out_shape[1:]),
        strides=(1, *conv.strides),
        padding=((0, 0), *conv.padding),
        lhs_dilation=(1, *conv.lhs_dilation),
        rhs_dilation=(1, *conv.rhs_dilation),
    )


def all_ones(values: Sequence[int]) -> bool:
    """Whether all strides, or all dilations, are 1."""
    return all(value == 1 for value in values)
