"""tf.nn: convolutions over one to three axes of space, transposed, depthwise and separable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.tensors import convert, listed, require, static_shape, static_value
from tf_substrates.numpy.windows import Layout, pads, windows

JAX_MODE = False
if JAX_MODE:
    import jax

_OP_NAMES = {1: "Conv2D", 2: "Conv2D", 3: "Conv3D"}


def _convolved(
    x: Any,
    kernel: Any,
    strides: Sequence[int],
    around: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    groups: int = 1,
) -> Any:
    """`[batch, space, channels]` convolved with `[space, channels of a group, channels]`."""
    if JAX_MODE:
        letters = "DHW"[-len(strides) :]
        numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
        return jax.lax.conv_general_dilated(
            x,
            kernel,
            strides,
            around,
            rhs_dilation=dilations,
            dimension_numbers=numbers,
            feature_group_count=groups,
        )
    *sizes, depth, features = kernel.shape
    wide = np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype
    parts = windows(x, sizes, strides, dilations, around, 0)
    matrices = kernel.astype(wide).reshape(-1, depth, groups, features // groups)
    shape = (*parts[0].shape[:-1], groups, features // groups)
    total = np.zeros(shape, wide)
    for part, matrix in zip(parts, matrices, strict=True):
        grouped = part.astype(wide).reshape(*part.shape[:-1], groups, depth)
        total += np.einsum("...gi,igo->...go", grouped, matrix, optimize=True)
    return total.reshape(*shape[:-2], features).astype(x.dtype)


def _convolution(
    spatial: int,
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Any:
    layout = Layout.of(_OP_NAMES[spatial], spatial, data_format)
    x, kernel = listed(layout.op_name, (input, filters))
    allowed = (*REAL_FLOATS, "int32") if spatial < 3 else REAL_FLOATS
    require(layout.op_name, x, allowed)
    steps, holes = layout.numbers(strides, "strides"), layout.numbers(dilations, "dilations")
    around = layout.padding(padding)
    _check_ranks(layout, x, kernel)
    x = layout.channels_last(x)
    groups = _groups(layout.op_name, x.shape[-1], kernel.shape)
    lengths = x.shape[-spatial - 1 : -1]
    around = pads(lengths, kernel.shape[:spatial], steps, holes, around, layout.op_name)
    batch = x.shape[: -spatial - 1]
    flat = x.reshape((math.prod(batch), *x.shape[-spatial - 1 :]))
    result = _convolved(flat, kernel, steps, around, holes, groups)
    return layout.as_given(result.reshape((*batch, *result.shape[1:])))


def _check_ranks(layout: Layout, x: Any, kernel: Any) -> None:
    rank = layout.spatial + 2
    if len(kernel.shape) != rank:
        raise invalid_argument(
            f"filter must be {rank}-dimensional: {list(kernel.shape)} [Op:{layout.op_name}]"
        )
    if len(x.shape) < rank:
        raise invalid_argument(
            f"input must be {rank}-dimensional{list(x.shape)} [Op:{layout.op_name}]"
        )


def _groups(op_name: str, channels: int, kernel: Sequence[int]) -> int:
    """As many groups as the channels of the input are multiples of those of the kernel."""
    depth, features = kernel[-2:]
    if depth == 0 or channels % depth:
        raise invalid_argument(
            f"input depth must be evenly divisible by filter depth: {channels} vs {depth}"
            f" [Op:{op_name}]"
        )
    groups = channels // depth
    if groups and features % groups:
        raise invalid_argument(
            f"output depth must be evenly divisible by number of groups: {features} vs {groups}"
            f" [Op:{op_name}]"
        )
    return max(groups, 1)


@op("nn.conv1d")
def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: Any = "NWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The convolution of `[..., width, channels]` with `[width, channels, features]`.

    Args:
      input: the signals; more than one leading axis is a batch of more axes.
      filters: the kernel. Where the channels are a multiple of the kernel's they are groups.
      stride: a number, or a list of 1 or 3.
      padding: "SAME" or "VALID", or a list of three pairs.
      data_format: "NWC", or "NCW" where the channels come before the width.
      dilations: a number, or a list of 1 or 3.

    Raises:
      ValueError: the strides, the dilations or the padding are of another length.
      tf.errors.InvalidArgumentError: the shapes do not go together.
    """
    return _convolution(1, input, filters, stride, padding, data_format, dilations)


@op("nn.conv2d")
def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The convolution of `[..., rows, columns, channels]` with a kernel of one axis less.

    Args, errors: as of tf.nn.conv1d, with lists of 1, 2 or 4 and four pairs.
    """
    return _convolution(2, input, filters, strides, padding, data_format, dilations)


@op("nn.conv3d")
def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NDHWC",
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The convolution of `[batch, depth, rows, columns, channels]`.

    Args, errors: as of tf.nn.conv1d, with lists of 5.
    """
    if not isinstance(strides, (list, tuple)):
        raise TypeError(f"Expected list for 'strides' argument to 'conv3d' Op, not {strides}.")
    return _convolution(3, input, filters, strides, padding, data_format, dilations)


def _spatial(filters: Any) -> int:
    """How many axes of space a kernel has."""
    spatial = len(np.shape(filters)) - 2
    if spatial not in (1, 2, 3):
        raise ValueError(f"`num_spatial_dims` must be 1, 2, or 3. Received: {spatial}.")
    return spatial


@op("nn.convolution")
def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The convolution over as many axes of space as the kernel has.

    Raises:
      ValueError: strides and dilations are both more than 1.
    """
    spatial = _spatial(filters)
    layout = Layout.of(_OP_NAMES[spatial], spatial, data_format)
    steps, holes = layout.numbers(strides, "strides"), layout.numbers(dilations, "dilations")
    _refuse_both(steps, holes)
    return _convolution(spatial, input, filters, list(steps), padding, data_format, list(holes))


def _refuse_both(strides: Sequence[int], dilations: Sequence[int]) -> None:
    if max(strides) > 1 and max(dilations) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received:"
            f" strides={list(strides)} and dilation_rate={list(dilations)}"
        )


@op("nn.atrous_conv2d")
def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: Any = None) -> Any:
    """tf.nn.conv2d with `rate` as its dilation, and stride 1."""
    return _convolution(2, value, filters, 1, padding, None, rate)


@op("nn.depthwise_conv2d")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """Each channel convolved with kernels of its own, `[rows, columns, channels, multiplier]`.

    Raises:
      TypeError: the strides are no list of four.
      tf.errors.InvalidArgumentError: the kernel has other channels than the input.
    """
    if not isinstance(strides, (list, tuple)):
        raise TypeError(
            f"Expected list for 'strides' argument to 'depthwise_conv2d_native' Op, not {strides}."
        )
    layout = Layout.of("DepthwiseConv2dNative", 2, data_format)
    x, kernel = listed(layout.op_name, (input, filter))
    require(layout.op_name, x, REAL_FLOATS)
    _check_ranks(layout, x, kernel)
    rows, columns, channels, multiplier = kernel.shape
    if layout.size_of(x.shape)[1] != channels:
        raise invalid_argument(
            "input depth must be evenly divisible by filter depth:"
            f" {layout.size_of(x.shape)[1]} vs {channels} [Op:{layout.op_name}]"
        )
    kernel = kernel.reshape((rows, columns, 1, channels * multiplier))
    return _convolution(2, x, kernel, strides, padding, data_format, dilations)


@op("nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """tf.nn.depthwise_conv2d, then a convolution `[1, 1, channels, features]`."""
    deep = convert(
        depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    )
    kernel = listed("Conv2D", (deep, pointwise_filter))[1]
    channels = Layout.of("Conv2D", 2, data_format).size_of(deep.shape)[1]
    if tuple(kernel.shape[:2]) != (1, 1) or kernel.shape[2] != channels:
        raise invalid_argument(
            f"input depth must be evenly divisible by filter depth: {channels} vs"
            f" {kernel.shape[2]} [Op:Conv2D]"
        )
    return _convolution(2, deep, kernel, 1, "VALID", data_format, None)


# Transposed convolutions: the derivative of a convolution by its input.


def _transposed(
    spatial: int,
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Any:
    layout = Layout.of(f"{_OP_NAMES[spatial]}BackpropInput", spatial, data_format)
    x, kernel = listed(layout.op_name, (input, filters))
    require(layout.op_name, x, REAL_FLOATS)
    steps, holes = layout.numbers(strides, "strides"), layout.numbers(dilations, "dilations")
    around = layout.padding(padding)
    _check_ranks(layout, x, kernel)
    x = layout.channels_last(x)
    lengths, features = _output_size(layout, x, kernel, output_shape)
    sizes = kernel.shape[:spatial]
    around = pads(lengths, sizes, steps, holes, around, layout.op_name)
    _check_sizes(layout, x, kernel, lengths, features, sizes, steps, holes, around)
    apart = _with_zeros_between(x, steps)
    spans = [(size - 1) * hole + 1 for size, hole in zip(sizes, holes, strict=True)]
    outside = [
        (span - 1 - before, out - length + before)
        for span, (before, _), out, length in zip(
            spans, around, lengths, apart.shape[1:-1], strict=True
        )
    ]
    flipped = xp.flip(kernel, tuple(range(spatial))).swapaxes(-1, -2)
    return layout.as_given(_convolved(apart, flipped, (1,) * spatial, outside, holes))


def _output_size(
    layout: Layout, x: Any, kernel: Any, output_shape: Any
) -> tuple[Sequence[int], int]:
    shape = static_shape(output_shape)
    if len(shape) == layout.spatial:
        return shape, kernel.shape[-2]
    if len(shape) != layout.spatial + 2:
        raise ValueError(
            f"`output_shape` must be of length {layout.spatial} or {layout.spatial + 2}."
            f" Received: {list(shape)}"
        )
    if shape[0] != x.shape[0]:
        raise invalid_argument(
            f"Conv2DBackpropInput: input and out_backprop must have the same batch size. Input"
            f" batch: {shape[0]}, outbackprop batch: {x.shape[0]}, batch_dim: 0"
        )
    return layout.size_of(shape)


def _check_sizes(
    layout: Layout,
    x: Any,
    kernel: Any,
    lengths: Sequence[int],
    features: int,
    sizes: Sequence[int],
    steps: Sequence[int],
    holes: Sequence[int],
    around: Sequence[tuple[int, int]],
) -> None:
    if features != kernel.shape[-2] or x.shape[-1] != kernel.shape[-1]:
        raise invalid_argument(
            f"{layout.op_name}: filter {list(kernel.shape)} does not take {features} channels to"
            f" {x.shape[-1]}: it is [space, channels of the output, channels of the input]"
        )
    for axis, (out, size, step, hole, (before, after)) in enumerate(
        zip(lengths, sizes, steps, holes, around, strict=True)
    ):
        expected = (out + before + after - (size - 1) * hole - 1) // step + 1
        if x.shape[axis + 1] != expected:
            raise invalid_argument(
                f"{layout.op_name}: Size of out_backprop doesn't match computed: actual ="
                f" {x.shape[axis + 1]}, computed = {expected} spatial_dim: {axis + 1} input: {out}"
                f" filter: {size} output: {x.shape[axis + 1]} stride: {step} dilation: {hole}"
            )


def _with_zeros_between(x: Any, strides: Sequence[int]) -> Any:
    """`stride - 1` zeros between neighbours of each axis of space."""
    for axis, stride in enumerate(strides, start=1):
        if stride == 1 or not x.shape[axis]:
            continue
        widths = [(0, 0)] * (len(x.shape) + 1)
        widths[axis + 1] = (0, stride - 1)
        spread = xp.pad(xp.expand_dims(x, axis + 1), widths)
        length = x.shape[axis] * stride
        spread = spread.reshape((*x.shape[:axis], length, *x.shape[axis + 1 :]))
        x = spread[(slice(None),) * axis + (slice(0, length - stride + 1),)]
    return x


def _transposed_op(spatial: int) -> None:
    data_format_default = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[spatial]

    def call(
        input: Any,
        filters: Any,
        output_shape: Any,
        strides: Any,
        padding: Any = "SAME",
        data_format: Any = data_format_default,
        dilations: Any = None,
        name: Any = None,
    ) -> Any:
        return _transposed(
            spatial, input, filters, output_shape, strides, padding, data_format, dilations
        )

    named(
        call,
        f"conv{spatial}d_transpose",
        f"""The derivative of tf.nn.conv{spatial}d by its input, of which `input` is the cotangent.

        Args:
          input: `[batch, space, channels]`.
          filters: `[space, channels of the output, channels of the input]`.
          output_shape: of the whole result, or of its {spatial} axes of space.

        Raises:
          tf.errors.InvalidArgumentError: a convolution of `output_shape` gives another shape.
        """,
    )
    op(f"nn.conv{spatial}d_transpose")(call)


for _number in (1, 2, 3):
    _transposed_op(_number)


@op("nn.conv_transpose")
def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The transposed convolution over as many axes of space as the kernel has."""
    spatial = _spatial(filters)
    return _transposed(
        spatial, input, filters, output_shape, strides, padding, data_format, dilations
    )


@op("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: Any, padding: Any, name: Any = None
) -> Any:
    """The transposed convolution of tf.nn.atrous_conv2d."""
    holes = int(static_value(rate, "rate"))
    return _transposed(2, value, filters, output_shape, 1, padding, None, holes)
