"""Fuses factors, biases, activations and paddings into the ops beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jax2tf._src.export.tflite.model import Op, Subgraph, Value
from jax2tf._src.export.tflite.uses import Uses
from jax2tf._src.export.windows import same_padding
from jax2tf._src.util.typing import PyTree

# The axis of the weights along which each index has a result of its own.
_AXES: Mapping[str, int] = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}

_CONVOLUTIONS = _AXES.keys() - {"FULLY_CONNECTED"}

# The numbers of the schema for activations.
_ACTIVATIONS: Mapping[str, int] = {"RELU": 1, "RELU6": 3}
_ACTIVATED = frozenset({*_AXES, "ADD", "SUB", "MUL", "DIV"})

_SAME, _VALID = 0, 1


def fuse(graph: Subgraph) -> None:
    """Fuses in place."""
    uses = Uses(graph)
    for op in graph.ops:
        if op.code in _AXES:
            while _fuse_constant(uses, op):
                pass
        if op.code == "FULLY_CONNECTED":
            _fuse_factor(uses, op)
        if op.code in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            _fuse_padding(op)
        if op.code in _ACTIVATED:
            _fuse_activation(uses, op)
    uses.without_unread()


def _is_plain(op: Op) -> bool:
    return not op.options.get("fusedActivationFunction")


def _fuse_constant(uses: Uses, op: Op) -> bool:
    """Fuses the sum, difference or product with a known number for each channel, if it is next."""
    (result,) = op.results
    reader = uses.only_reader(result)
    if reader is None or reader.code not in ("ADD", "SUB", "MUL") or not _is_plain(reader):
        return False
    first, second = reader.operands
    other = second if first is result else first
    weights = op.operands[1]
    if reader.code == "SUB" and other is first:
        return False
    if other is None or weights is None or weights.array is None or not _is_plain(op):
        return False
    channels = weights.array.shape[_AXES[op.code]]
    numbers = _for_each(other, result, channels)
    if numbers is None or reader.results[0].shape != result.shape:
        return False
    given = op.operands[2] if len(op.operands) > 2 else None
    bias = np.zeros(channels, np.float32) if given is None else given.array
    if bias is None:
        return False
    if reader.code == "MUL":
        if not _can_scale(uses, op, weights, numbers):
            return False
        shape = [1] * weights.array.ndim
        shape[_AXES[op.code]] = channels
        uses.put(op, 1, _constant(weights, weights.array * numbers.reshape(shape)))
        bias = bias * numbers
    else:
        bias = bias + numbers if reader.code == "ADD" else bias - numbers
    op.operands = [op.operands[0], op.operands[1], _constant(weights, bias)]
    uses.absorb(reader, result)
    return True


def _fuse_factor(uses: Uses, op: Op) -> None:
    """Fuses the product with a known number for each column, if it makes the rows."""
    rows, weights = op.operands[0], op.operands[1]
    product = None if rows is None else rows.op
    if product is None or product.code != "MUL" or not _is_plain(product) or weights is None:
        return
    x, factor = product.operands
    if x is not None and x.array is not None:
        x, factor = factor, x
    if x is None or factor is None or uses.only_reader(product.results[0]) is not op:
        return
    if weights.array is None or x.shape != product.results[0].shape:
        return
    numbers = _for_each(factor, product.results[0], weights.array.shape[1])
    if numbers is not None and _can_scale(uses, op, weights, numbers):
        uses.put(op, 1, _constant(weights, weights.array * numbers))
        uses.absorb(product, x)


def _can_scale(uses: Uses, op: Op, weights: Value, numbers: np.ndarray) -> bool:
    """Whether the weights of an op may be multiplied: they are finite, and not those of others.

    Otherwise they would be stored twice, as a table that is looked up too. Convolutions that share
    weights have a factor each, which is that of a norm.
    """
    array = weights.array
    assert array is not None
    if not (np.isfinite(numbers).all() and np.isfinite(array).all()):
        return False
    return not any(
        x.shape == array.shape and np.array_equal(x.array, array)
        for x, ops in uses.constants()
        if x.array is not None and not all(o is op or o.code in _CONVOLUTIONS for o in ops)
    )


def _for_each(x: Value, result: Value, channels: int) -> np.ndarray | None:
    """The number of a constant for each channel; None if it differs along other dimensions."""
    array = x.array
    if array is None or array.dtype != np.float32 or result.shape is None:
        return None
    is_last = array.size == 1 or (array.ndim > 0 and array.size == array.shape[-1] == channels)
    if not is_last or array.ndim > len(result.shape):
        return None
    numbers: np.ndarray = np.broadcast_to(array.reshape(-1), (channels,))
    return numbers


def _constant(like: Value, array: np.ndarray) -> Value:
    return Value(f"{like.name}/fused", array.dtype, array.shape, array)


def _fuse_activation(uses: Uses, op: Op) -> None:
    (result,) = op.results
    reader = uses.only_reader(result)
    if reader is None or result.dtype != np.float32 or not _is_plain(op):
        return
    number = _ACTIVATIONS.get(reader.code)
    if number is not None:
        op.options["fusedActivationFunction"] = number
        uses.absorb(reader, result)


def _fuse_padding(op: Op) -> None:
    """Leaves out a PAD of zeros before a convolution whose padding SAME adds as many."""
    image, weights = op.operands[0], op.operands[1]
    pad = None if image is None else image.op
    if pad is None or pad.code != "PAD" or op.options["padding"] != _VALID or weights is None:
        return
    source, paddings = pad.operands
    if source is None or paddings is None or paddings.array is None or weights.shape is None:
        return
    added = paddings.array.tolist()
    if added[0] != [0, 0] or added[3] != [0, 0] or source.shape is None:
        return
    for i, axis in ((1, "H"), (2, "W")):
        options = {name: op.options[f"{name}{axis}{end}"] for name, end in _STEPS}
        window: PyTree = weights.shape[i]
        extent = (window - 1) * options["dilation"] + 1
        if same_padding(source.shape[i], extent, options["stride"]) != tuple(added[i]):
            return
    op.operands[0] = source
    op.options["padding"] = _SAME


_STEPS = (("stride", ""), ("dilation", "Factor"))
