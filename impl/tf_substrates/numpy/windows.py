"""How a window slides over the axes of space: sizes, strides, dilations, padding, the channels."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import UnimplementedError, invalid_argument
from tf_substrates.numpy.tensors import static_value

_NAMES = {1: "W", 2: "HW", 3: "DHW"}


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where an operand `[batch, ..., space, channels]` has its channels.

    Attributes:
      op_name: TensorFlow's operation, which errors name.
      spatial: how many axes of space there are.
      channels_first: whether the channels are the second axis, and not the last.
    """

    op_name: str
    spatial: int
    channels_first: bool

    @classmethod
    def of(cls, op_name: str, spatial: int, data_format: str | None) -> Layout:
        """The layout that `data_format` ("NHWC", "NCHW" and the like) names.

        Raises:
          tf.errors.InvalidArgumentError: it is no layout of so many axes.
        """
        last, first = f"N{_NAMES[spatial]}C", f"NC{_NAMES[spatial]}"
        if data_format not in (None, last, first):
            raise invalid_argument(
                f"Value for attr 'data_format' of \"{data_format}\" is not in the list of allowed"
                f' values: "{last}", "{first}" [Op:{op_name}]'
            )
        return cls(op_name, spatial, data_format == first)

    def numbers(self, value: Any, what: str) -> tuple[int, ...]:
        """A number for each axis of space, given as one, as one for each, or for all four axes.

        Raises:
          ValueError: there are too many or too few numbers.
          UnimplementedError: the axes of the batch or of the channels have another than 1.
        """
        if value is None:
            return (1,) * self.spatial
        given = [int(n) for n in np.ravel(static_value(value, what))]
        if len(given) == 1:
            return tuple(given * self.spatial)
        if len(given) == self.spatial:
            return tuple(given)
        if len(given) != self.spatial + 2:
            raise ValueError(
                f"{what} should be of length 1, {self.spatial} or {self.spatial + 2}."
                f" Received: {what}={given} of length {len(given)}"
            )
        batch, channels, space = self._apart(given)
        if batch != 1 or channels != 1:
            raise UnimplementedError(
                None,
                None,
                f"Current implementation does not yet support {what} in the batch and depth"
                f" dimensions. [Op:{self.op_name}]",
            )
        return tuple(space)

    def padding(self, value: Any) -> str | list[tuple[int, int]]:
        """ "SAME" or "VALID", or the pairs of the axes of space of a list for all axes.

        Raises:
          ValueError: the list has not a pair for each axis.
          tf.errors.InvalidArgumentError: it is another word.
        """
        if isinstance(value, (str, bytes)):
            word = value.decode() if isinstance(value, bytes) else value
            if word == "EXPLICIT":
                raise ValueError(
                    "'EXPLICIT' is not a valid value for `padding`. To use explicit padding,"
                    " `padding` must be a list."
                )
            if word not in ("SAME", "VALID"):
                raise invalid_argument(
                    f"Value for attr 'padding' of \"{word}\" is not in the list of allowed values:"
                    f' "SAME", "VALID", "EXPLICIT" [Op:{self.op_name}]'
                )
            return word
        pairs = [tuple(int(n) for n in static_value(pair, "padding")) for pair in value]
        if len(pairs) != self.spatial + 2:
            raise ValueError(
                f"When padding is a list, it must be of size {self.spatial + 2}. Received:"
                f" padding={[list(pair) for pair in pairs]} of size {len(pairs)}"
            )
        return self._apart(pairs)[2]

    def _apart(self, values: list) -> tuple[Any, Any, list]:
        if self.channels_first:
            return values[0], values[1], values[2:]
        return values[0], values[-1], values[1:-1]

    def channels_last(self, x: Any) -> Any:
        """The operand with its channels as the last axis."""
        return xp.moveaxis(x, -self.spatial - 1, -1) if self.channels_first else x

    def as_given(self, x: Any) -> Any:
        """A result with channels as the last axis, with the channels where the layout has them."""
        return xp.moveaxis(x, -1, -self.spatial - 1) if self.channels_first else x

    def size_of(self, lengths: Sequence[int]) -> tuple[list[int], int]:
        """The lengths of the axes of space, and the number of channels, of a whole shape."""
        _, channels, space = self._apart(list(lengths))
        return space, channels


def pads(
    lengths: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str | list[tuple[int, int]],
    op_name: str,
) -> list[tuple[int, int]]:
    """How much there is of padding before and after each axis.

    Raises:
      tf.errors.InvalidArgumentError: a stride is not positive, or no window fits.
    """
    if min(strides, default=1) < 1:
        raise invalid_argument(f"Stride must be > 0, but got {min(strides)} [Op:{op_name}]")
    if min(dilations, default=1) < 1:
        raise invalid_argument(f"Dilations must be > 0, but got {min(dilations)} [Op:{op_name}]")
    result = []
    for axis, (length, size, stride, dilation) in enumerate(
        zip(lengths, sizes, strides, dilations, strict=True)
    ):
        span = (size - 1) * dilation + 1
        if padding == "SAME":
            missing = max((-(-length // stride) - 1) * stride + span - length, 0)
            before, after = missing // 2, missing - missing // 2
        else:
            before, after = (0, 0) if isinstance(padding, str) else padding[axis]
        count = (length + before + after - span) // stride + 1
        if count < 0:
            raise invalid_argument(
                f"Computed output size would be negative: {count} [input_size: {length},"
                f" effective_filter_size: {span}, stride: {stride}] [Op:{op_name}]"
            )
        result.append((before, after))
    return result


def windows(
    x: Any,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    around: Sequence[tuple[int, int]],
    fill: Any,
) -> list:
    """For each place of a window, the element there of all windows.

    Args:
      x: `[batch, space, channels]`.
      sizes, strides, dilations: of the window, for each axis of space.
      around: the padding of each axis of space, less than 0 where it is cut.
      fill: the value of the padding.

    Returns:
      As many arrays `[batch, windows, channels]` as a window has places, the last axis of space
      the fastest.
    """
    cut = [
        slice(max(0, -low), n - max(0, -high))
        for n, (low, high) in zip(x.shape[1:-1], around, strict=True)
    ]
    widths = [(0, 0), *((max(0, low), max(0, high)) for low, high in around), (0, 0)]
    x = xp.pad(x[(slice(None), *cut)], widths, constant_values=fill)
    counts = [
        max(0, (n - (size - 1) * dilation - 1) // stride + 1)
        for n, size, stride, dilation in zip(x.shape[1:-1], sizes, strides, dilations, strict=True)
    ]
    return [
        x[
            (
                slice(None),
                *(
                    slice(at * dilation, at * dilation + count * stride, stride)
                    if count
                    else slice(0, 0)
                    for at, dilation, count, stride in zip(
                        place, dilations, counts, strides, strict=True
                    )
                ),
            )
        ]
        for place in itertools.product(*map(range, sizes))
    ]
