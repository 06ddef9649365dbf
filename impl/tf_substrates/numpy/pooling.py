"""tf.nn: pooling, the largest or the mean of each window of an image."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.dtypes import as_dtype
from tf_substrates.numpy.errors import UnimplementedError, invalid_argument
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS, REALS
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.tensors import convert, require
from tf_substrates.numpy.windows import Layout, pads, windows

JAX_MODE = False
if JAX_MODE:
    import jax

# By the kind, and by whether there are three axes of space.
_OP_NAMES = {
    ("max", False): "MaxPool",
    ("avg", False): "AvgPool",
    ("max", True): "MaxPool3D",
    ("avg", True): "AvgPool3D",
}
_ALLOWED = {
    "MaxPool": REALS,
    "AvgPool": REAL_FLOATS,
    "MaxPool3D": ("bfloat16", "float16", "float32"),
    "AvgPool3D": REAL_FLOATS,
}

# The sizes, strides and dilations of a window.
Window = tuple[Sequence[int], Sequence[int], Sequence[int]]


def _largest(x: Any, window: Window, around: Sequence[tuple[int, int]]) -> Any:
    """The largest of each window of `[batch, space, channels]`; padding is less than all."""
    lowest = np.asarray(as_dtype(x.dtype).min, x.dtype)
    # JAX has no derivative of the largest of a window with holes.
    if JAX_MODE and max(window[2]) == 1:
        # -inf is what JAX knows the derivative of.
        start = lowest if x.dtype.kind in "iu" else np.asarray(-np.inf, x.dtype)
        return _reduced(x, start, jax.lax.max, window, around)
    return functools.reduce(xp.maximum, windows(x, *window, around, lowest))


def _summed(x: Any, window: Window, around: Sequence[tuple[int, int]]) -> Any:
    if JAX_MODE:
        return _reduced(x, np.zeros((), x.dtype), jax.lax.add, window, around)
    return functools.reduce(np.add, windows(x, *window, around, 0))


def _reduced(
    x: Any, start: Any, combine: Callable, window: Window, around: Sequence[tuple[int, int]]
) -> Any:
    """Each window combined by JAX's own op."""
    sizes, strides, dilations = ((1, *numbers, 1) for numbers in window)
    padding = [(0, 0), *around, (0, 0)]
    return jax.lax.reduce_window(
        x, start, combine, sizes, strides, padding, window_dilation=dilations
    )


def _mean(x: Any, window: Window, around: Sequence[tuple[int, int]]) -> Any:
    """The mean of each window of `[batch, space, channels]`, of what is no padding alone."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    inside = xp.ones((1, *x.shape[1:-1], 1), wide.dtype)
    return (_summed(wide, window, around) / _summed(inside, window, around)).astype(x.dtype)


_KINDS = {"max": _largest, "avg": _mean}


def _pooled(
    kind: str,
    spatial: int,
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any = None,
) -> Any:
    layout = Layout.of(_OP_NAMES[kind, spatial == 3], spatial, data_format)
    x = require(layout.op_name, convert(input), _ALLOWED[layout.op_name])
    if len(x.shape) != spatial + 2:
        raise invalid_argument(
            f"Input must be {spatial + 2}-dimensional: {list(x.shape)} [Op:{layout.op_name}]"
        )
    if not isinstance(padding, (str, bytes)) and (kind, spatial) not in (("max", 1), ("max", 2)):
        raise TypeError(f"Expected string for argument 'padding' not {padding}.")
    deep = _across_channels(layout, x, ksize, strides) if (kind, spatial) == ("max", 2) else None
    if deep is not None:
        return deep
    window = (
        layout.numbers(ksize, "ksize"),
        layout.numbers(strides, "strides"),
        layout.numbers(dilations, "dilations"),
    )
    _check_window(layout, window[0], around := layout.padding(padding))
    x = layout.channels_last(x)
    around = pads(x.shape[1:-1], *window, around, layout.op_name)
    return layout.as_given(_KINDS[kind](x, window, around))


def _check_window(
    layout: Layout, sizes: Sequence[int], padding: str | list[tuple[int, int]]
) -> None:
    if min(sizes) < 1:
        raise invalid_argument(
            "Sliding window ksize must be positive. The specified or inferred ksize is:"
            f" {list(sizes)} [Op:{layout.op_name}]"
        )
    if isinstance(padding, str):
        return
    for size, pair in zip(sizes, padding, strict=True):
        if max(pair) >= size:
            raise invalid_argument(
                f"Padding {max(pair)} needs to be smaller than the window size {size}"
                f" [Op:{layout.op_name}]"
            )


def _across_channels(layout: Layout, x: Any, ksize: Any, strides: Any) -> Any:
    """The largest of each so many channels, where the window is one pixel; otherwise None."""
    given = [int(n) for n in np.ravel(ksize)]
    if len(given) != 4 or given[1 if layout.channels_first else -1] == 1:
        return None
    channels = given[-1]
    if layout.channels_first or given[:-1] != [1, 1, 1]:
        raise UnimplementedError(
            None,
            None,
            "MaxPooling supports exactly one of pooling across depth or pooling across"
            f" width/height. [Op:{layout.op_name}]",
        )
    if [int(n) for n in np.ravel(strides)] != given or x.shape[-1] % channels:
        raise UnimplementedError(
            None,
            None,
            "Depthwise max pooling requires the depth window to equal the depth stride, and the"
            f" depth to be a multiple of it. [Op:{layout.op_name}]",
        )
    return xp.max(x.reshape((*x.shape[:-1], x.shape[-1] // channels, channels)), axis=-1)


_TEXTS = {"max": "The largest element", "avg": "The mean"}
_FORMATS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def _pooling_op(kind: str, spatial: int) -> None:
    default_format = _FORMATS[spatial]

    def call(
        input: Any,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: Any = default_format,
        name: Any = None,
    ) -> Any:
        return _pooled(kind, spatial, input, ksize, strides, padding, data_format)

    named(
        call,
        f"{kind}_pool{spatial}d",
        f"""{_TEXTS[kind]} of each window of `{default_format}`; padding does not count.

        Args:
          input: of {spatial + 2} axes.
          ksize: the window: a number, a list of 1, {spatial} or {spatial + 2}.
          strides: from window to window, likewise.
          padding: "SAME" or "VALID", and for the largest of at most two axes a list of pairs too.
          data_format: "{default_format}", or the channels as the second axis.

        Raises:
          ValueError: a list is of another length.
          tf.errors.InvalidArgumentError: the rank, the window or the padding does not fit.
        """,
    )
    op(f"nn.{kind}_pool{spatial}d")(call)


def _pooling_of_any_rank(kind: str) -> None:
    def call(
        input: Any,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: Any = None,
        name: Any = None,
    ) -> Any:
        x = convert(input)
        spatial = len(data_format or x.shape) - 2
        if spatial not in (1, 2, 3):
            raise ValueError(
                f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={tuple(x.shape)} of"
                f" rank {len(x.shape)}"
            )
        return _pooled(kind, spatial, x, ksize, strides, padding, data_format)

    named(
        call,
        f"{kind}_pool",
        f"{_TEXTS[kind]} of each window, over as many axes of space as the input has.",
    )
    op(f"nn.{kind}_pool")(call)


for _kind in _TEXTS:
    _pooling_of_any_rank(_kind)
    for _number in _FORMATS:
        _pooling_op(_kind, _number)


@op("nn.pool")
def pool(
    input: Any,
    window_shape: Any,
    pooling_type: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = None,
    name: Any = None,
) -> Any:
    """The largest ("MAX") or the mean ("AVG") of windows, which may have holes.

    Raises:
      ValueError: another type, strides and dilations together, or dilations with "SAME".
    """
    window = [int(n) for n in np.ravel(window_shape)]
    kind = str(pooling_type).lower()
    if kind not in _TEXTS:
        raise ValueError(f"{len(window)}-D {pooling_type} pooling is not supported.")
    layout = Layout.of("Pool", len(window), data_format)
    steps, holes = layout.numbers(strides, "strides"), layout.numbers(dilations, "dilations")
    if math.prod(holes) > 1 and math.prod(steps) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received:"
            f" strides={list(steps)} and dilation_rate={list(holes)}"
        )
    if math.prod(holes) > 1 and padding == "SAME":
        raise ValueError(
            "pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. Received:"
            f" padding=SAME and dilation_rate={list(holes)}"
        )
    return _pooled(kind, len(window), input, window, list(steps), padding, data_format, list(holes))
