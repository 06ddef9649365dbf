"""Convolutions: conv_general_dilated.

Operands are brought to the layout that TensorFlow's CPU kernels have (N...C, with a ...IO filter),
and one op is chosen, the first that fits:

1. Conv2D (for one and two spatial dimensions), DepthwiseConv2dNative, Conv3D;
2. Conv2DBackpropInput and Conv3DBackpropInputV2 where the input is dilated: a transposed
   convolution;
3. XlaConvV2, where XLA ops may be used; otherwise the convolution is rewritten until 1. fits, or
   becomes one matrix product of all the input's patches.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import tensorflow as tf

from jax2tf import compat, dims
from jax2tf.lowering.arrays import flipped, padded
from jax2tf.lowering.contractions import KERNEL_DTYPES, compute_dtype, precision_config
from jax2tf.lowering.conversions import cast
from jax2tf.lowering.rules import Context, register

_CONV2D_DTYPES = (tf.float32, tf.float64, tf.bfloat16, tf.int32)
_FLOATS = _CONV2D_DTYPES[:-1]


@dataclasses.dataclass(frozen=True)
class _Conv:
    """A convolution of `lhs` (batch, spatial..., features) with `rhs` (spatial..., in, out).

    Attributes:
      lhs_shape, rhs_shape, out_shape: in that layout; dimensions may be symbolic.
      strides, lhs_dilation, rhs_dilation: one int for each spatial dimension.
      padding: (low, high) for each spatial dimension; negative cuts off.
      feature_groups, batch_groups: at most one of them is more than 1; either may be symbolic
        (vmap over filters makes as many groups as the batch has elements).
    """

    lhs_shape: tuple[Any, ...]
    rhs_shape: tuple[Any, ...]
    out_shape: tuple[Any, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Any, Any], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    feature_groups: Any
    batch_groups: Any
    precision: bytes

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    @property
    def window(self) -> list[Any]:
        """The filter's spatial extent, dilation included."""
        return [
            (k - 1) * d + 1
            for k, d in zip(self.rhs_shape[: self.rank], self.rhs_dilation, strict=True)
        ]


@register("conv_general_dilated")
def _conv_general_dilated(
    ctx: Context,
    lhs: tf.Tensor,
    rhs: tf.Tensor,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: jax.lax.ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> tf.Tensor:
    # preferred_element_type is the result's dtype.
    lhs_aval, rhs_aval = ctx.avals_in
    (out_aval,) = ctx.avals_out
    lhs_order = _features_last(dimension_numbers.lhs_spec)
    rhs_order = (*dimension_numbers.rhs_spec[2:], *dimension_numbers.rhs_spec[1::-1])
    out_order = _features_last(dimension_numbers.out_spec)
    conv = _Conv(
        lhs_shape=tuple(lhs_aval.shape[d] for d in lhs_order),
        rhs_shape=tuple(rhs_aval.shape[d] for d in rhs_order),
        out_shape=tuple(out_aval.shape[d] for d in out_order),
        strides=tuple(window_strides),
        padding=tuple((low, high) for low, high in padding),
        lhs_dilation=tuple(lhs_dilation),
        rhs_dilation=tuple(rhs_dilation),
        feature_groups=feature_group_count,
        batch_groups=batch_group_count,
        precision=precision_config(precision),
    )
    if _has_zero(conv.out_shape) or _has_zero(conv.lhs_shape) or _has_zero(conv.rhs_shape):
        # tf.zeros has no float8.
        return cast(tf.zeros(ctx.shape(out_aval.shape), tf.int8), ctx.out)
    compute = compute_dtype(lhs.dtype, rhs.dtype, ctx.out)
    convolve = _complex if compute.is_complex else _real
    wanted, conv = conv.out_shape, _with_a_window(conv)
    out = convolve(ctx, _transposed(lhs, lhs_order), _transposed(rhs, rhs_order), conv, compute)
    if conv.out_shape != wanted:
        out = tf.slice(out, [0] * len(wanted), ctx.shape(wanted))
    return _transposed(cast(out, ctx.out), _inverse(out_order))


def _with_a_window(conv: _Conv) -> _Conv:
    """The convolution with padding until at least one window fits, where none may fit.

    JAX's result is empty then; TensorFlow's ops refuse such an input.
    """
    padding, out_shape = list(conv.padding), list(conv.out_shape)
    for i, window in enumerate(conv.window):
        # JAX gives back what it knows to be at least one.
        out_shape[i + 1] = jax.core.max_dim(conv.out_shape[i + 1], 1)
        if out_shape[i + 1] != conv.out_shape[i + 1]:
            low, high = conv.padding[i]
            given = (conv.lhs_shape[i + 1] - 1) * conv.lhs_dilation[i] + 1 + low + high
            padding[i] = (low, high + jax.core.max_dim(window - given, 0))
    return dataclasses.replace(conv, padding=tuple(padding), out_shape=tuple(out_shape))


def _complex(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv, compute: tf.DType
) -> tf.Tensor:
    """Gauss's product of three real convolutions, added up as JAX does."""
    a, b, c, d = tf.math.real(lhs), tf.math.imag(lhs), tf.math.real(rhs), tf.math.imag(rhs)
    k1 = _real(ctx, a + b, c, conv, compute.real_dtype)
    k2 = _real(ctx, a, d - c, conv, compute.real_dtype)
    k3 = _real(ctx, b, c + d, conv, compute.real_dtype)
    return tf.complex(k1 - k3, k1 + k2)


def _real(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv, compute: tf.DType
) -> tf.Tensor:
    kernel = KERNEL_DTYPES.get(compute, compute)
    lhs, rhs = (cast(cast(x, compute), kernel) for x in (lhs, rhs))
    exact = ctx.enable_xla and conv.precision and conv.rank and kernel == tf.float32
    out = _xla_conv(ctx, lhs, rhs, conv) if exact else _convolve(ctx, lhs, rhs, conv)
    return cast(out, compute)


def _convolve(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    """The convolution by the first op that fits, in the dtype of the operands."""
    if not dims.is_static((conv.batch_groups,)):  # no op takes their number as a tensor
        lhs, rhs, conv = _batch_groups_as_features(ctx, lhs, rhs, conv)
    plain = _all_ones(conv.lhs_dilation) and conv.batch_groups == 1
    plainer = plain and _all_ones(conv.rhs_dilation) and conv.feature_groups == 1
    if plain and 1 <= conv.rank <= 2 and lhs.dtype in _CONV2D_DTYPES:
        return _conv2d(ctx, lhs, rhs, conv)
    if plainer and conv.rank == 3 and lhs.dtype in _FLOATS:
        return _conv3d(ctx, lhs, rhs, conv)
    if _is_transposed_conv(conv) and lhs.dtype in _FLOATS:
        return _conv_backprop_input(ctx, lhs, rhs, conv)
    if ctx.enable_xla and conv.rank > 0:
        return _xla_conv(ctx, lhs, rhs, conv)
    return _rewritten(ctx, lhs, rhs, conv)


def _conv2d(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    if conv.rank == 1:
        out = _conv2d(ctx, lhs[:, None], rhs[None], _with_leading_dimension(conv))
        return tf.squeeze(out, [1])
    lhs, padding = _settled_padding(ctx, lhs, conv, explicit=True)
    depthwise = (
        conv.feature_groups == conv.lhs_shape[-1]
        and conv.feature_groups != 1
        and conv.strides[0] == conv.strides[1]
        and _all_ones(conv.rhs_dilation)
        and lhs.dtype in _FLOATS
    )
    if not depthwise:
        return tf.nn.conv2d(lhs, rhs, conv.strides, padding, dilations=conv.rhs_dilation)
    height, width, _, features = conv.rhs_shape
    multiplier = features // conv.feature_groups
    if multiplier == 1:
        rhs = tf.transpose(rhs, (0, 1, 3, 2))
    else:
        rhs = tf.reshape(rhs, ctx.shape((height, width, conv.feature_groups, multiplier)))
    return tf.raw_ops.DepthwiseConv2dNative(
        input=lhs,
        filter=rhs,
        strides=(1, *conv.strides, 1),
        padding=padding if isinstance(padding, str) else "EXPLICIT",
        explicit_paddings=[] if isinstance(padding, str) else list(itertools.chain(*padding)),
    )


def _conv3d(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    lhs, padding = _settled_padding(ctx, lhs, conv, explicit=False)
    return tf.nn.conv3d(lhs, rhs, (1, *conv.strides, 1), padding)


def _settled_padding(
    ctx: Context, lhs: tf.Tensor, conv: _Conv, *, explicit: bool
) -> tuple[tf.Tensor, Any]:
    """`lhs` and the padding that a TensorFlow op is told: a name, or `explicit` numbers.

    What the op cannot be told is done to `lhs` beforehand.
    """
    if not any(itertools.chain(*conv.padding)):
        return lhs, "VALID"
    spatial = conv.lhs_shape[1:-1]
    if tuple(jax.lax.padtype_to_pads(spatial, conv.window, conv.strides, "SAME")) == conv.padding:
        return lhs, "SAME"
    if explicit and all(dims.is_static(pads) and min(pads) >= 0 for pads in conv.padding):
        return lhs, [[0, 0], *map(list, conv.padding), [0, 0]]
    return _with_padding(ctx, lhs, conv), "VALID"


def _with_padding(ctx: Context, lhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    """`lhs` dilated and padded."""
    return padded(
        ctx,
        lhs,
        tf.zeros([], lhs.dtype),
        conv.lhs_shape,
        [0, *(low for low, _ in conv.padding), 0],
        [0, *(high for _, high in conv.padding), 0],
        [0, *(d - 1 for d in conv.lhs_dilation), 0],
    )


def _is_transposed_conv(conv: _Conv) -> bool:
    """Whether the convolution is the gradient, by its input, of one with stride `lhs_dilation`."""
    return (
        1 <= conv.rank <= 3
        and conv.feature_groups == conv.batch_groups == 1
        and _all_ones(conv.strides)
        and _all_ones(conv.rhs_dilation)
        and all(
            dims.is_static((low, high, window)) and low < window and high - (window - 1) < dilation
            for (low, high), window, dilation in zip(
                conv.padding, conv.window, conv.lhs_dilation, strict=True
            )
        )
    )


def _conv_backprop_input(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    """A transposed convolution; the op's own padding takes away from a full window's overlap."""
    if conv.rank == 1:
        lhs, rhs, conv = lhs[:, None], rhs[None], _with_leading_dimension(conv)
        return tf.squeeze(_conv_backprop_input(ctx, lhs, rhs, conv), [1])
    rank = conv.rank
    spatial = conv.out_shape[1:-1]
    taken = [
        (window - 1 - low, max(window - 1 - high, 0))
        for (low, high), window in zip(conv.padding, conv.window, strict=True)
    ]
    # The op flips the filter, and reads it as that of the convolution whose gradient it is.
    rhs = flipped(rhs, range(rank), at_once=ctx.enable_xla)
    rhs = tf.transpose(rhs, (*range(rank), rank + 1, rank))
    strides = (1, *conv.lhs_dilation, 1)
    padding = _backprop_padding(conv, taken)
    if rank == 2 and (ctx.enable_xla or padding != "EXPLICIT"):
        return tf.raw_ops.Conv2DBackpropInput(
            input_sizes=ctx.shape(conv.out_shape),
            filter=rhs,
            out_backprop=lhs,
            strides=strides,
            padding=padding,
            explicit_paddings=[0, 0, *itertools.chain(*taken), 0, 0]
            if padding == "EXPLICIT"
            else [],
        )
    transpose = tf.nn.conv2d_transpose if rank == 2 else tf.nn.conv3d_transpose
    if padding != "EXPLICIT":
        return transpose(lhs, rhs, ctx.shape(conv.out_shape), strides, padding)
    # The op in three dimensions takes no such padding, nor does that in two outside TensorFlow.
    full = [
        (n - 1) * d + window
        for n, d, window in zip(conv.lhs_shape[1:-1], conv.lhs_dilation, conv.window, strict=True)
    ]
    shape = (conv.out_shape[0], *full, conv.out_shape[-1])
    out = transpose(lhs, rhs, ctx.shape(shape), strides, "VALID")
    low = [0, *(-low for low, _ in taken), 0]
    high = [d + a - n for d, a, n in zip(spatial, (a for a, _ in taken), full, strict=True)]
    no_gaps = [0] * (rank + 2)
    return padded(ctx, out, tf.zeros([], out.dtype), shape, low, [0, *high, 0], no_gaps)


def _backprop_padding(conv: _Conv, taken: Sequence[tuple[int, int]]) -> str:
    """SAME or VALID, if the convolution with that padding has `lhs` as its output and `taken`."""
    spatial = conv.out_shape[1:-1]
    if not any(itertools.chain(*taken)):
        return "VALID"
    if not dims.is_static((*spatial, *conv.lhs_shape[1:-1])):
        return "EXPLICIT"
    same = jax.lax.padtype_to_pads(spatial, conv.window, conv.lhs_dilation, "SAME")
    sizes = [math.ceil(n / d) for n, d in zip(spatial, conv.lhs_dilation, strict=True)]
    is_same = sizes == list(conv.lhs_shape[1:-1]) and [a for a, _ in same] == [a for a, _ in taken]
    return "SAME" if is_same else "EXPLICIT"


def _xla_conv(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    spatial = range(conv.rank)
    numbers = compat.xla_data.ConvolutionDimensionNumbers(
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
    return compat.xla_ops.xla_conv_v2(
        lhs,
        rhs,
        window_strides=conv.strides,
        padding=tf.stack([ctx.shape(edges) for edges in conv.padding]),
        lhs_dilation=conv.lhs_dilation,
        rhs_dilation=conv.rhs_dilation,
        feature_group_count=ctx.dim(conv.feature_groups),
        batch_group_count=conv.batch_groups,
        dimension_numbers=numbers.SerializeToString(),
        precision_config=conv.precision,
        preferred_element_type=lhs.dtype,
    )


def _rewritten(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    """One step towards a convolution that standard ops have, and on from there."""
    if conv.batch_groups != 1:
        return _convolve(ctx, *_batch_groups_as_features(ctx, lhs, rhs, conv))
    if any(itertools.chain(*conv.padding)) or not _all_ones(conv.lhs_dilation):
        lhs = _with_padding(ctx, lhs, conv)
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
        return tf.matmul(lhs, rhs) if conv.rank == 0 else _product_of_patches(ctx, lhs, rhs, conv)
    if conv.rank > 0 and dims.is_static((conv.feature_groups,)):
        return _convolved_by_groups(ctx, lhs, rhs, conv)
    return _products_of_patches_by_groups(ctx, lhs, rhs, conv)


def _batch_groups_as_features(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv
) -> tuple[tf.Tensor, tf.Tensor, _Conv]:
    """The same convolution with the groups of `lhs` side by side as features."""
    groups, (batch, *spatial, features) = conv.batch_groups, conv.lhs_shape
    lhs = tf.reshape(lhs, ctx.shape((groups, batch // groups, *spatial, features)))
    lhs = tf.transpose(lhs, (*range(1, conv.rank + 2), 0, conv.rank + 2))
    shape = (batch // groups, *spatial, groups * features)
    lhs = tf.reshape(lhs, ctx.shape(shape))
    return (
        lhs,
        rhs,
        dataclasses.replace(conv, lhs_shape=shape, feature_groups=groups, batch_groups=1),
    )


def _convolved_by_groups(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    groups = conv.feature_groups
    one = dataclasses.replace(
        conv,
        lhs_shape=(*conv.lhs_shape[:-1], conv.lhs_shape[-1] // groups),
        rhs_shape=(*conv.rhs_shape[:-1], conv.rhs_shape[-1] // groups),
        out_shape=(*conv.out_shape[:-1], conv.out_shape[-1] // groups),
        feature_groups=1,
    )
    parts = zip(tf.split(lhs, groups, -1), tf.split(rhs, groups, -1), strict=True)
    return tf.concat([_convolve(ctx, a, b, one) for a, b in parts], -1)


def _product_of_patches(ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv) -> tf.Tensor:
    """One matrix product: the inputs of each position of the filter, side by side, with `rhs`."""
    *positions, features_in, features_out = conv.rhs_shape
    matrix = tf.reshape(rhs, ctx.shape((math.prod(positions) * features_in, features_out)))
    return tf.matmul(tf.concat(_patches(ctx, lhs, conv), -1), matrix)


def _products_of_patches_by_groups(
    ctx: Context, lhs: tf.Tensor, rhs: tf.Tensor, conv: _Conv
) -> tf.Tensor:
    """As `_product_of_patches`, one product for each group, in one batched op."""
    groups = conv.feature_groups
    *positions, features_in, features_out = conv.rhs_shape
    n_positions, features_out = math.prod(positions), features_out // groups
    n_outputs = math.prod(conv.out_shape[:-1])
    matrices = tf.reshape(rhs, ctx.shape((n_positions, features_in, groups, features_out)))
    matrices = tf.reshape(
        tf.transpose(matrices, (2, 0, 1, 3)),
        ctx.shape((groups, n_positions * features_in, features_out)),
    )
    patches = [
        tf.reshape(patch, ctx.shape((n_outputs, groups, features_in)))
        for patch in _patches(ctx, lhs, conv)
    ]
    rows = tf.transpose(tf.concat(patches, -1), (1, 0, 2))
    out = tf.transpose(tf.matmul(rows, matrices), (1, 0, 2))
    return tf.reshape(out, ctx.shape(conv.out_shape))


def _patches(ctx: Context, lhs: tf.Tensor, conv: _Conv) -> list[tf.Tensor]:
    """What each position of the filter sees, one element for each output."""
    if conv.rank == 0:
        return [lhs]
    spatial = conv.out_shape[1:-1]
    patches = []
    for position in itertools.product(*(range(k) for k in conv.rhs_shape[: conv.rank])):
        begin = [p * d for p, d in zip(position, conv.rhs_dilation, strict=True)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, spatial, conv.strides, strict=True)]
        patches.append(
            tf.strided_slice(
                lhs,
                (0, *begin, 0),
                ctx.shape((conv.lhs_shape[0], *end, conv.lhs_shape[-1])),
                (1, *conv.strides, 1),
            )
        )
    return patches


def _with_leading_dimension(conv: _Conv) -> _Conv:
    """The same convolution with one more spatial dimension, of size 1."""
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


def _features_last(spec: Sequence[int]) -> tuple[int, ...]:
    """(batch, features, spatial...) as (batch, spatial..., features)."""
    return (spec[0], *spec[2:], spec[1])


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


def _transposed(x: tf.Tensor, order: tuple[int, ...]) -> tf.Tensor:
    return x if order == tuple(range(len(order))) else tf.transpose(x, order)


def _all_ones(values: Sequence[int]) -> bool:
    return all(value == 1 for value in values)


def _has_zero(shape: Sequence[Any]) -> bool:
    return any(dims.is_static((d,)) and d == 0 for d in shape)
