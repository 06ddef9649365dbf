"""Reads known values from a graph: the value of a constant, or a number that fills a tensor.

A filled tensor has a known value only if its shape is known. If a dimension is open, the number is
still known, and an op that this number makes an identity is left out.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable

import numpy as np

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context, op_type_of
from jax2tf._src.ops.grappler import is_constant
from jax2tf._src.tracing.large_constants import SMALL_CONSTANT_SIZE
from jax2tf._src.util.tensors import Operation, Tensor
from jax2tf._src.util.typing import Param, Shape

# Ops that graphs apply to constants: jnp.remainder replaces a divisor 0 by 1.
_KNOWN: dict[str, Callable[..., np.ndarray]] = {"Equal": np.equal, "SelectV2": np.where}


def known_value(x: Tensor) -> np.ndarray | None:
    """The value of x if x is a constant of a graph; None for eager tensors.

    Eager tensors occur in graphs too: tape.jacobian traces the gradient of an eager program.
    """
    if not ops.is_symbolic_tensor(x):
        return None
    op = x.op
    if op in _SMALL_CONSTANTS:
        return _SMALL_CONSTANTS[op]
    # tf.get_static_value is slow if it finds no value.
    if op.inputs and not is_constant(x):
        return None
    value: np.ndarray | None = ops.get_static_value(x)
    if value is not None:
        if op.type == "Const" and value.size <= SMALL_CONSTANT_SIZE:
            _SMALL_CONSTANTS[op] = value
        return value
    if op.type not in _KNOWN:
        return None
    operands = [known_value(operand) for operand in op.inputs]
    if any(operand is None for operand in operands):
        return None
    return _KNOWN[op.type](*operands)


# A cache, because TensorFlow parses a constant's value each time.
_SMALL_CONSTANTS: weakref.WeakKeyDictionary[Operation, np.ndarray] = weakref.WeakKeyDictionary()


def is_all(x: Tensor, number: float) -> bool:
    """Whether x is a constant of a graph whose elements all equal `number`."""
    value = known_value(x)
    return value is not None and bool(value.size) and bool((value == number).all())


def is_zero(x: Tensor) -> bool:
    """Whether x is a constant of a graph that is 0 or False; -0.0 does not count."""
    value = known_value(x)
    return value is not None and not any(value.tobytes())


# Ops whose result holds only elements of one operand, with the index of that operand.
_REPEATS = {
    **dict.fromkeys(("BroadcastTo", "ExpandDims", "Identity", "Reshape", "ReverseV2"), 0),
    **dict.fromkeys(("Slice", "Squeeze", "StridedSlice", "Tile", "Transpose"), 0),
    "Fill": 1,
}
_LIKE = {"OnesLike": 1, "ZerosLike": 0}


def known_number(x: Tensor) -> np.ndarray | None:
    """The number that all elements of a graph's tensor equal, in its dtype; else None."""
    if ops.executing_eagerly():
        return None
    while op_type_of(x) in _REPEATS:
        x = x.op.inputs[_REPEATS[op_type_of(x)]]
    if op_type_of(x) in _LIKE:
        return np.asarray(_LIKE[op_type_of(x)], x.dtype.as_numpy_dtype)
    value = known_value(x)
    if value is None or not value.size:
        return None
    first: np.ndarray = value.reshape(-1)[0]
    # The bits are compared: -0 differs from 0, and NaN equals NaN.
    return first if value.tobytes() == first.tobytes() * value.size else None


def is_number(x: Tensor, number: Number) -> bool:
    """Whether all elements of a graph's tensor are known to equal `number`; -0.0 is not 0.0."""
    known = known_number(x)
    if known is None:
        return False
    dtype = known.dtype
    return known.tobytes() == np.asarray(number(dtype), dtype).tobytes()


# A function from a dtype to a number of that dtype.
Number = Callable[[np.dtype], object]
Rule = Callable[..., Tensor]


def without(second: Number, first: Number | None = None) -> Callable[[Rule], Rule]:
    """Decorates a binary rule: it returns one operand if the other is known to change nothing.

    Args:
      second: the neutral number as the second operand.
      first: the neutral number as the first operand; None if there is none.
    """

    return functools.partial(_without, second, first)


def _without(second: Number, first: Number | None, rule: Rule) -> Rule:
    @functools.wraps(rule)
    def shorter(ctx: Context, x: Tensor, y: Tensor, **params: Param) -> Tensor:
        shape = ctx.avals_out[0].shape
        if not (ops.executing_eagerly() or x.dtype.is_complex) and x.dtype == ctx.out:
            for kept, other, number in ((x, y, second), (y, x, first)):
                if number is not None and _is_whole(kept, shape) and is_number(other, number):
                    return kept
        return rule(ctx, x, y, **params)

    return shorter


def zero(dtype: np.dtype) -> object:
    """0, not -0: x - 0 is x, also where x is -0."""
    return 0


def negative_zero(dtype: np.dtype) -> object:
    """-0.0 for floats, 0 for integers: 0.0 + -0.0 is 0.0, but -0.0 + 0.0 is not -0.0."""
    return 0 if np.issubdtype(dtype, np.integer) else -0.0


def one(dtype: np.dtype) -> object:
    """1."""
    return 1


def repeated(ctx: Context, x: Tensor, shape: Shape) -> Tensor:
    """Broadcasts `x` to a shape."""
    return x if _is_whole(x, shape) else ops.broadcast_to(x, ctx.shape(shape))


def _is_whole(x: Tensor, shape: Shape) -> bool:
    sizes = x.shape.as_list()
    return len(sizes) == len(shape) and all(
        old != 1 or new == 1 for old, new in zip(sizes, shape, strict=True)
    )
