"""Functions of two operands of one dtype: sums, products, quotients, powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math import derivatives
from tf_substrates.numpy.math.dtype_groups import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL_FLOATS,
    REALS,
    like,
)
from tf_substrates.numpy.math.registering import Row, binary, register_binary
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, has_dtype, listed, require


def floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
        return xp.floor_divide(x, y)
    return xp.floor(x / y)


def floor_mod(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return xp.mod(x, y)


def truncate_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
        return like((x - xp.fmod(x, y)) // y, x)
    return x / y


def truncate_mod(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return xp.fmod(x, y)


def _refuse_zero(y: Any) -> None:
    # On JAX a traced divisor is not known, and XLA's quotient by zero is -1.
    if isinstance(y, np.ndarray) and not np.all(y):
        raise invalid_argument("Integer division by zero")


def power(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu" and isinstance(y, np.ndarray) and np.any(y < 0):
        raise invalid_argument("Integers to negative integer powers are not allowed [Op:Pow]")
    return derivatives.power(x, y)


def squared_difference(x: Any, y: Any) -> Any:
    difference = x - y
    return xp.conj(difference) * difference if x.dtype.kind == "c" else difference * difference


def where_zero(zero: Callable[[Any, Any], Any]) -> Callable:
    """`f(x, y)`, but 0 where `zero(x, y)` even if f is not finite there, and so its derivatives."""

    def decorate(function: Callable) -> Callable:
        def call(x: Any, y: Any) -> Any:
            x, y = xp.broadcast_arrays(x, y)
            at_zero = zero(x, y)
            safe = xp.where(at_zero, xp.ones_like(y), y)
            return xp.where(at_zero, xp.zeros_like(x), function(x, safe))

        return call

    return decorate


def _x_zero(x: Any, y: Any) -> Any:
    return x == 0


def _y_zero(x: Any, y: Any) -> Any:
    return y == 0


_xlogy = where_zero(_x_zero)(lambda x, y: x * xp.log(y))
_xlog1py = where_zero(_x_zero)(lambda x, y: x * xp.log1p(y))
_xdivy = where_zero(_x_zero)(lambda x, y: x / y)
_divide_no_nan = where_zero(_y_zero)(lambda x, y: x / y)


# The derivative in y is x where y is 0 too, and 0 where nothing comes from upstream.
_multiply_no_nan = derivatives.with_tangent(
    where_zero(_y_zero)(lambda x, y: x * y),
    lambda x, y, dx, dy: xp.where(y == 0, 0, dx * y) + derivatives.product_of_tangent(dy, x),
)
_WRAPPING = (*REAL_FLOATS, *INTEGERS)
_BINARY: list[Row] = [
    ("add math.add", xp.add, NUMBERS, "AddV2"),
    ("subtract math.subtract", xp.subtract, NUMBERS, "Sub"),
    ("multiply math.multiply", xp.multiply, NUMBERS, "Mul"),
    ("maximum math.maximum", derivatives.maximum, REALS, "Maximum"),
    ("minimum math.minimum", derivatives.minimum, REALS, "Minimum"),
    ("math.floordiv compat.v1.floor_div", floor_divide, _WRAPPING, "FloorDiv"),
    ("math.floormod math.mod", floor_mod, _WRAPPING, "FloorMod"),
    ("truncatediv", truncate_divide, NUMBERS, "TruncateDiv"),
    ("truncatemod", truncate_mod, _WRAPPING, "TruncateMod"),
    ("realdiv", lambda x, y: like(x / y, x), NUMBERS, "RealDiv"),
    (
        "math.squared_difference",
        squared_difference,
        (*FLOATS, "int32", "int64"),
        "SquaredDifference",
    ),
    ("math.xlogy", _xlogy, FLOATS, "Xlogy"),
    ("math.xlog1py", _xlog1py, FLOATS, "Xlog1py"),
    ("math.xdivy", _xdivy, FLOATS, "Xdivy"),
    ("math.multiply_no_nan", _multiply_no_nan, FLOATS, "MulNoNan"),
]
_NEVER_STATIC = ("math.xlogy", "math.xlog1py", "math.xdivy")
register_binary(_BINARY, never_static=_NEVER_STATIC)


@op("atan2", "math.atan2")
def atan2(y: Any, x: Any, name: Any = None) -> Any:
    return binary("Atan2", xp.arctan2, REAL_FLOATS, y, x)


@op("math.nextafter")
def nextafter(x1: Any, x2: Any, name: Any = None) -> Any:
    return binary("NextAfter", xp.nextafter, ("float32", "float64"), x1, x2)


@op("pow", "math.pow", static=True)
def tf_pow(x: Any, y: Any, name: Any = None) -> Any:
    """x to the power of y. The first operand sets the dtype.

    Raises:
      TypeError: y is a Python number that x's dtype does not take.
    """
    x = convert(x, hint=y.dtype if has_dtype(y) and not has_dtype(x) else None)
    y = convert(y, dtype=x.dtype) if not has_dtype(y) else y
    return binary("Pow", power, (*FLOATS, *INTEGERS), x, y)


_TRUE_QUOTIENT = {
    name: "float32" if name in ("int8", "int16", "uint8", "uint16") else "float64"
    for name in INTEGERS
}


@op("truediv", "math.truediv", static=True)
def truediv(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient; that of 32-bit and 64-bit integers is float64, of smaller ones float32.

    Raises:
      TypeError: x and y have different dtypes.
    """
    x = convert(x, hint=y.dtype if has_dtype(y) and not has_dtype(x) else None)
    y = convert(y, hint=x.dtype)
    if x.dtype != y.dtype:
        raise TypeError(
            "`x` and `y` must have the same dtype, got"
            f" {dtypes.dtype_of(x)!r} != {dtypes.dtype_of(y)!r}."
        )
    wider = _TRUE_QUOTIENT.get(dtypes.dtype_of(x).name)
    if wider is not None:
        x, y = (array.astype(dtypes.numpy_dtype(wider)) for array in (x, y))
    return binary("RealDiv", lambda a, b: like(a / b, a), FLOATS, x, y)


@op("divide", "math.divide", static=True)
def divide(x: Any, y: Any, name: Any = None) -> Any:
    """x / y as Python's operator divides tensors."""
    return truediv(x, y)


@op("math.divide_no_nan")
def divide_no_nan(x: Any, y: Any, name: Any = None) -> Any:
    """x / y, but 0 where y is 0."""
    return binary("DivNoNan", _divide_no_nan, FLOATS, x, y)


@op("math.reciprocal_no_nan")
def reciprocal_no_nan(x: Any, name: Any = None) -> Any:
    x = require("DivNoNan", convert(x), FLOATS)
    return _divide_no_nan(xp.ones_like(x), x)


@op("math.scalar_mul", "scalar_mul")
def scalar_mul(scalar: Any, x: Any, name: Any = None) -> Any:
    """x times a scalar of its dtype.

    Raises:
      ValueError: `scalar` is no scalar.
    """
    x = convert(x)
    scalar = convert(scalar, dtype=x.dtype)
    if scalar.shape:
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    return scalar * x


@op("math.add_n", "add_n", static=True)
def add_n(inputs: Any, name: Any = None) -> Any:
    """The sum of tensors of one shape and dtype.

    Raises:
      ValueError: there are none.
      tf.errors.InvalidArgumentError: they differ in shape or dtype.
    """
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    if not inputs:
        raise ValueError("Inputs must be an iterable of at least one Tensor/IndexedSlices")
    first, *others = listed("AddN", inputs)
    total = first
    for other in others:
        if other.shape != first.shape:
            raise invalid_argument(
                f"Inputs to operation AddN must have the same size and shape. Input 0:"
                f" {list(first.shape)} != input: {list(other.shape)} [Op:AddN]"
            )
        total = total + other
    return total


@op("math.accumulate_n")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: Any = None) -> Any:
    return add_n(inputs)
