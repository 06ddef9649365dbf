"""tf.math, one element at a time: arithmetic, comparisons, special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, special
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import OPERATORS, convert, has_dtype, listed, operands, require

JAX_MODE = False
if JAX_MODE:
    import jax

REAL_FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATS = REAL_FLOATS + COMPLEX
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
REALS = REAL_FLOATS + INTEGERS
NUMBERS = FLOATS + INTEGERS
BOOL = ("bool",)
ANY = (*NUMBERS, *BOOL, "string")


def like(result: Any, x: Any) -> Any:
    """The result in the dtype of an operand: NumPy and SciPy widen some."""
    return result if result.dtype == x.dtype else result.astype(x.dtype)


def widened(function: Callable, *arrays: Any) -> Any:
    """A function of float32 and float64 for the 16-bit floats too."""
    if arrays[0].dtype.itemsize > 2:
        return like(xp.asarray(function(*arrays)), arrays[0])
    return like(xp.asarray(function(*(a.astype(np.float32) for a in arrays))), arrays[0])


def _special(name: str) -> Callable:
    def call(*arrays: Any) -> Any:
        return widened(getattr(special, name), *arrays)

    return call


def rsqrt(x: Any) -> Any:
    return jax.lax.rsqrt(x) if JAX_MODE else 1 / xp.sqrt(x)


def sigmoid(x: Any) -> Any:
    if JAX_MODE:
        return jax.nn.sigmoid(x)
    if x.dtype.kind == "c":
        return 1 / (1 + xp.exp(-x))
    small = xp.exp(-xp.abs(x))
    return like(xp.where(x >= 0, 1 / (1 + small), small / (1 + small)), x)


def softplus(x: Any) -> Any:
    if JAX_MODE:
        return jax.nn.softplus(x)
    return xp.maximum(x, x.dtype.type(0)) + xp.log1p(xp.exp(-xp.abs(x)))


def sign(x: Any) -> Any:
    # TensorFlow's sign of a complex number is x / |x|, as that of NumPy 2 and JAX is.
    return xp.sign(x)


def tf_round(x: Any) -> Any:
    return x if x.dtype.kind in "iub" else xp.round(x)


def reciprocal(x: Any) -> Any:
    if x.dtype.kind in "iu":
        return xp.floor_divide(x.dtype.type(1), x)
    return like(1 / x, x)


def digamma(x: Any) -> Any:
    result = widened(special.digamma, x)
    return xp.where(x == 0, np.asarray(np.nan, x.dtype), result)  # TensorFlow's pole at 0 is NaN


def erfcinv(x: Any) -> Any:
    if JAX_MODE:
        return widened(lambda v: -special.ndtri(v / 2) * np.sqrt(0.5).astype(v.dtype), x)
    return widened(special.erfcinv, x)


# TensorFlow's names, the function, the dtypes it takes, TensorFlow's operation for messages.
_UNARY: list[tuple[str, Callable, tuple, str]] = [
    ("acos math.acos", xp.arccos, FLOATS, "Acos"),
    ("acosh math.acosh", xp.arccosh, FLOATS, "Acosh"),
    ("asin math.asin", xp.arcsin, FLOATS, "Asin"),
    ("asinh math.asinh", xp.arcsinh, FLOATS, "Asinh"),
    ("atan math.atan", xp.arctan, FLOATS, "Atan"),
    ("atanh math.atanh", xp.arctanh, FLOATS, "Atanh"),
    ("cos math.cos", xp.cos, FLOATS, "Cos"),
    ("cosh math.cosh", xp.cosh, FLOATS, "Cosh"),
    ("sin math.sin", xp.sin, FLOATS, "Sin"),
    ("sinh math.sinh", xp.sinh, FLOATS, "Sinh"),
    ("tan math.tan", xp.tan, FLOATS, "Tan"),
    ("tanh math.tanh nn.tanh", xp.tanh, FLOATS, "Tanh"),
    ("exp math.exp", xp.exp, FLOATS, "Exp"),
    ("math.expm1", xp.expm1, FLOATS, "Expm1"),
    ("math.log", xp.log, FLOATS, "Log"),
    ("math.log1p", xp.log1p, FLOATS, "Log1p"),
    ("sqrt math.sqrt", xp.sqrt, FLOATS, "Sqrt"),
    ("math.rsqrt", rsqrt, FLOATS, "Rsqrt"),
    ("sigmoid math.sigmoid nn.sigmoid", sigmoid, FLOATS, "Sigmoid"),
    ("square math.square", xp.square, NUMBERS, "Square"),
    ("negative math.negative", xp.negative, (*FLOATS, *SIGNED), "Neg"),
    ("sign math.sign", sign, (*FLOATS, *SIGNED), "Sign"),
    ("math.reciprocal", reciprocal, NUMBERS, "Reciprocal"),
    ("floor math.floor", xp.floor, REAL_FLOATS, "Floor"),
    ("math.ceil", xp.ceil, REAL_FLOATS, "Ceil"),
    ("math.rint", xp.rint, REAL_FLOATS, "Rint"),
    ("round math.round", tf_round, NUMBERS, "Round"),
    ("math.is_finite", xp.isfinite, REAL_FLOATS, "IsFinite"),
    ("math.is_inf", xp.isinf, REAL_FLOATS, "IsInf"),
    ("math.is_nan", xp.isnan, REAL_FLOATS, "IsNan"),
    ("math.erf", _special("erf"), REAL_FLOATS, "Erf"),
    ("math.erfc", _special("erfc"), REAL_FLOATS, "Erfc"),
    ("math.erfinv", _special("erfinv"), ("float32", "float64"), "Erfinv"),
    ("math.erfcinv", erfcinv, ("float32", "float64"), "Ndtri"),
    ("math.ndtri", _special("ndtri"), ("float32", "float64"), "Ndtri"),
    ("math.lgamma", _special("gammaln"), REAL_FLOATS, "Lgamma"),
    ("math.digamma", digamma, REAL_FLOATS, "Digamma"),
    ("math.bessel_i0", _special("i0"), REAL_FLOATS, "BesselI0"),
    ("math.bessel_i0e", _special("i0e"), REAL_FLOATS, "BesselI0e"),
    ("math.bessel_i1", _special("i1"), REAL_FLOATS, "BesselI1"),
    ("math.bessel_i1e", _special("i1e"), REAL_FLOATS, "BesselI1e"),
    ("bitwise.invert", xp.invert, INTEGERS, "Invert"),
]
# Of integers these are arithmetic of shapes.
_STATIC = ("square", "negative", "sign", "round", "bitwise.invert")


def _unary(names: str, function: Callable, allowed: tuple, op_name: str) -> None:
    first, *others = names.split()

    def call(x: Any, name: Any = None) -> Any:
        return function(require(op_name, convert(x), allowed))

    call.__name__ = call.__qualname__ = first.rpartition(".")[2]
    call.__doc__ = f"tf.{first}: elementwise, of {', '.join(allowed)}."
    op(first, *others, static=first in _STATIC)(call)


for _names, _function, _allowed, _op_name in _UNARY:
    _unary(_names, _function, _allowed, _op_name)


@op("abs", "math.abs", static=True)
def tf_abs(x: Any, name: Any = None) -> Any:
    """The absolute value; of a complex number its length, which is real."""
    return xp.abs(require("Abs", convert(x), (*FLOATS, *SIGNED)))


@op("math.softplus", "nn.softplus")
def tf_softplus(features: Any, name: Any = None) -> Any:
    """log(1 + exp(features)), for large features too."""
    return softplus(require("Softplus", convert(features), REAL_FLOATS))


@op("math.softsign", "nn.softsign")
def softsign(features: Any, name: Any = None) -> Any:
    x = require("Softsign", convert(features), REAL_FLOATS)
    return x / (1 + xp.abs(x))


@op("math.log_sigmoid")
def log_sigmoid(x: Any, name: Any = None) -> Any:
    return -softplus(-require("Softplus", convert(x), REAL_FLOATS))


# Two operands of one dtype.


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
    return xp.power(x, y)


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
_multiply_no_nan = where_zero(_y_zero)(lambda x, y: x * y)

_WRAPPING = (*REAL_FLOATS, *INTEGERS)
_BINARY: list[tuple[str, Callable, tuple, str]] = [
    ("add math.add", xp.add, NUMBERS, "AddV2"),
    ("subtract math.subtract", xp.subtract, NUMBERS, "Sub"),
    ("multiply math.multiply", xp.multiply, NUMBERS, "Mul"),
    ("maximum math.maximum", xp.maximum, REALS, "Maximum"),
    ("minimum math.minimum", xp.minimum, REALS, "Minimum"),
    ("math.floordiv", floor_divide, _WRAPPING, "FloorDiv"),
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
    ("bitwise.bitwise_and", xp.bitwise_and, INTEGERS, "BitwiseAnd"),
    ("bitwise.bitwise_or", xp.bitwise_or, INTEGERS, "BitwiseOr"),
    ("bitwise.bitwise_xor", xp.bitwise_xor, INTEGERS, "BitwiseXor"),
    ("bitwise.left_shift", xp.left_shift, INTEGERS, "LeftShift"),
    ("bitwise.right_shift", xp.right_shift, INTEGERS, "RightShift"),
    ("less math.less", xp.less, REALS, "Less"),
    ("less_equal math.less_equal", xp.less_equal, REALS, "LessEqual"),
    ("greater math.greater", xp.greater, REALS, "Greater"),
    ("greater_equal math.greater_equal", xp.greater_equal, REALS, "GreaterEqual"),
    ("equal math.equal", xp.equal, ANY, "Equal"),
    ("not_equal math.not_equal", xp.not_equal, ANY, "NotEqual"),
]
_NEVER_STATIC = ("math.xlogy", "math.xlog1py", "math.xdivy")


def binary(op_name: str, function: Callable, allowed: tuple, x: Any, y: Any) -> Any:
    """A function of two operands of one dtype that broadcast."""
    x, y = operands(op_name, x, y)
    require(op_name, x, allowed)
    broadcast_shapes(x.shape, y.shape, op_name)
    return function(x, y)


def _binary(names: str, function: Callable, allowed: tuple, op_name: str) -> None:
    first, *others = names.split()

    def call(x: Any, y: Any, name: Any = None) -> Any:
        return binary(op_name, function, allowed, x, y)

    call.__name__ = call.__qualname__ = first.rpartition(".")[2]
    call.__doc__ = f"tf.{first}: elementwise with broadcasting, of {', '.join(allowed)}."
    called = op(first, *others, static=first not in _NEVER_STATIC)(call)
    OPERATORS[call.__name__] = called


for _names, _function, _allowed, _op_name in _BINARY:
    _binary(_names, _function, _allowed, _op_name)


@op("atan2", "math.atan2")
def atan2(y: Any, x: Any, name: Any = None) -> Any:
    return binary("Atan2", xp.arctan2, REAL_FLOATS, y, x)


@op("math.igamma")
def igamma(a: Any, x: Any, name: Any = None) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return binary("Igamma", _special("gammainc"), REAL_FLOATS, a, x)


@op("math.igammac")
def igammac(a: Any, x: Any, name: Any = None) -> Any:
    """The regularized upper incomplete gamma function Q(a, x)."""
    return binary("Igammac", _special("gammaincc"), REAL_FLOATS, a, x)


@op("math.nextafter")
def nextafter(x1: Any, x2: Any, name: Any = None) -> Any:
    return binary("NextAfter", xp.nextafter, ("float32", "float64"), x1, x2)


@op("math.zeta")
def zeta(x: Any, q: Any, name: Any = None) -> Any:
    return binary("Zeta", _special("zeta"), ("float32", "float64"), x, q)


@op("math.polygamma")
def polygamma(a: Any, x: Any, name: Any = None) -> Any:
    """The a-th derivative of digamma; NaN where `a` is no whole number."""
    return binary("Polygamma", _polygamma, ("float32", "float64"), a, x)


def _polygamma(a: Any, x: Any) -> Any:
    whole = (a == xp.floor(a)) & (a >= 0)
    order = xp.where(whole, a, xp.ones_like(a)).astype(np.int32)
    # SciPy and JAX compute order 0 by another series than digamma, which is exact there.
    result = xp.where(order == 0, special.digamma(x), special.polygamma(order, x))
    return xp.where(whole, result, np.nan).astype(x.dtype)


@op("math.betainc")
def betainc(a: Any, b: Any, x: Any, name: Any = None) -> Any:
    a, b, x = operands("Betainc", a, b, x)
    require("Betainc", a, ("float32", "float64"))
    return widened(special.betainc, a, b, x)


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


# Booleans.


def _logical(names: str, function: Callable, op_name: str, default_name: Any = None) -> Callable:
    first, *others = names.split()

    def call(x: Any, y: Any, name: Any = default_name) -> Any:
        x, y = _booleans(op_name, x), _booleans(op_name, y)
        broadcast_shapes(x.shape, y.shape, op_name)
        return function(x, y)

    call.__name__ = call.__qualname__ = first.rpartition(".")[2]
    return op(first, *others, static=True)(call)


def _booleans(op_name: str, x: Any) -> Any:
    if not has_dtype(x):
        return convert(x, dtype=np.bool_)
    x = convert(x)
    if x.dtype != np.bool_:
        raise invalid_argument(
            f"cannot compute {op_name} as input #0(zero-based) was expected to be a bool tensor"
            f" but is a {dtypes.dtype_of(x).name} tensor [Op:{op_name}]"
        )
    return x


logical_and = _logical("logical_and math.logical_and", xp.logical_and, "LogicalAnd")
logical_or = _logical("logical_or math.logical_or", xp.logical_or, "LogicalOr")
logical_xor = _logical("math.logical_xor", xp.logical_xor, "LogicalXor", "LogicalXor")


@op("logical_not", "math.logical_not", static=True)
def logical_not(x: Any, name: Any = None) -> Any:
    return xp.logical_not(_booleans("LogicalNot", x))


# Complex numbers.


@op("complex", "dtypes.complex")
def tf_complex(real: Any, imag: Any, name: Any = None) -> Any:
    """complex64 of float32 parts, complex128 of float64 parts.

    Raises:
      TypeError: the parts have other dtypes, or two different ones.
    """
    real = convert(real, hint=np.float32)
    imag = convert(imag, hint=real.dtype)
    of = {("float32", "float32"): np.complex64, ("float64", "float64"): np.complex128}
    dtype = of.get((real.dtype.name, imag.dtype.name))
    if dtype is None:
        raise TypeError(
            "The `real` and `imag` components have incorrect types:"
            f" {real.dtype.name} {imag.dtype.name}. They must be consistent, and one of"
            " float32, float64."
        )
    broadcast_shapes(real.shape, imag.shape, "Complex")
    return (
        (real + imag * np.array(1j, dtype)).astype(dtype) if JAX_MODE else _parts(real, imag, dtype)
    )


def _parts(real: Any, imag: Any, dtype: Any) -> Any:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    result.real, result.imag = real, imag
    return result


@op("math.real")
def real(input: Any, name: Any = None) -> Any:
    x = convert(input)
    return xp.real(x) if x.dtype.kind == "c" else x


@op("math.imag")
def imag(input: Any, name: Any = None) -> Any:
    x = convert(input)
    return xp.imag(x) if x.dtype.kind == "c" else xp.zeros_like(x)


@op("math.angle")
def angle(input: Any, name: Any = None) -> Any:
    x = convert(input)
    if x.dtype.kind == "c":
        return xp.angle(x)
    return xp.where(x < 0, np.asarray(np.pi, x.dtype), xp.zeros_like(x))


@op("math.conj", static=True)
def conj(x: Any, name: Any = None) -> Any:
    x = require("Conj", convert(x), NUMBERS)
    return xp.conj(x) if x.dtype.kind == "c" else x


# Conversions.


@op("cast", "dtypes.cast", static=True)
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """x in another dtype: floats to integers toward zero, complex numbers to their real part."""
    wanted = dtypes.numpy_dtype(dtype)
    x = convert(x)
    if x.dtype == wanted:
        return x
    if x.dtype.kind == "O" or wanted.kind == "O":
        raise UnimplementedCast(x, wanted)
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = xp.real(x) if wanted.kind != "b" else x
    if wanted.kind in "iu" and x.dtype.kind not in "iub":
        return _float_to_integer(x, wanted)
    return x.astype(wanted)


def UnimplementedCast(x: Any, wanted: np.dtype) -> Exception:
    """The error of a cast from or to strings."""
    from tf_substrates.numpy.errors import UnimplementedError

    names = dtypes.dtype_of(x).name, dtypes.as_dtype(wanted).name
    return UnimplementedError(
        None, None, f"Cast {names[0]} to {names[1]} is not supported [Op:Cast]"
    )


def _float_to_integer(x: Any, wanted: np.dtype) -> Any:
    """As TensorFlow's CPU kernel: what int32 or int64 does not hold is its minimum."""
    if JAX_MODE:
        return x.astype(wanted)
    if wanted == np.dtype(np.uint64):
        return x.astype(wanted)
    wide: Any = np.dtype(np.int64 if wanted.itemsize == 8 or wanted == np.uint32 else np.int32)
    low, high = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    inside = (x >= low) & (x < high)
    return np.where(inside, np.where(inside, x, 0).astype(wide), np.iinfo(wide).min).astype(wanted)


@op("saturate_cast", "dtypes.saturate_cast")
def saturate_cast(value: Any, dtype: Any, name: Any = None) -> Any:
    """x in another dtype, clipped to its limits first."""
    wanted = dtypes.as_dtype(dtype)
    x = convert(value)
    if dtypes.dtype_of(x) == wanted or wanted.is_complex:
        return cast(x, wanted)
    if x.dtype.kind == "c":
        x = xp.real(x)
    here = dtypes.dtype_of(x)
    low, high = max(here.min, wanted.min), min(here.max, wanted.max)
    if here.is_floating:
        # The largest value of x's dtype that the other holds.
        high = _floor_to(high, x.dtype)
        low = -_floor_to(-low, x.dtype)
    return cast(xp.clip(x, np.asarray(low, x.dtype), np.asarray(high, x.dtype)), wanted)


def _floor_to(limit: Any, dtype: np.dtype) -> Any:
    rounded = np.asarray(limit, dtype)
    if float(rounded) > float(limit):
        rounded = np.nextafter(rounded, np.asarray(0, dtype))
    return rounded


@op("bitcast", static=False)
def bitcast(input: Any, type: Any, name: Any = None) -> Any:
    """The same bits as another dtype; of another width they make or take a last dimension."""
    x, wanted = convert(input), dtypes.numpy_dtype(type)
    if JAX_MODE:
        return jax.lax.bitcast_convert_type(xp.asarray(x), wanted)
    ratio = x.dtype.itemsize / wanted.itemsize
    if ratio < 1 and (not x.shape or x.shape[-1] * ratio != 1):
        raise invalid_argument(
            f"Cannot bitcast from {x.dtype.name} to {wanted.name}: the last dimension of"
            f" {list(x.shape)} must be {int(1 / ratio)} [Op:Bitcast]"
        )
    contiguous = np.ascontiguousarray(x).reshape(x.shape)
    if ratio == 1:
        return contiguous.view(wanted)
    if ratio > 1:
        return contiguous[..., None].view(wanted)
    return contiguous.view(wanted)[..., 0]


# The operators of tensors that are not functions of tf.math themselves.


def _boolean_or_bitwise(logical: Callable, bitwise: Callable, op_name: str) -> Callable:
    def call(x: Any, y: Any) -> Any:
        if (x if has_dtype(x) else y).dtype == np.bool_:
            return logical(x, y)
        return binary(op_name, bitwise, INTEGERS, x, y)

    return call


def _wrapped(function: Callable) -> Callable:
    from tf_substrates.numpy.tensors import wrap

    return lambda *args: wrap(function(*args))


def _equals(x: Any, y: Any, differ: bool) -> Any:
    if y is None:
        return differ
    x, y = operands("NotEqual" if differ else "Equal", x, y)
    try:
        broadcast_shapes(x.shape, y.shape, "Equal")
    except Exception:
        return np.asarray(differ)
    return xp.not_equal(x, y) if differ else xp.equal(x, y)


OPERATORS["truediv"] = truediv
OPERATORS["pow"] = tf_pow
OPERATORS["abs"] = tf_abs
OPERATORS["and"] = _wrapped(_boolean_or_bitwise(logical_and, xp.bitwise_and, "BitwiseAnd"))
OPERATORS["or"] = _wrapped(_boolean_or_bitwise(logical_or, xp.bitwise_or, "BitwiseOr"))
OPERATORS["xor"] = _wrapped(_boolean_or_bitwise(logical_xor, xp.bitwise_xor, "BitwiseXor"))
OPERATORS["negative"] = _wrapped(
    lambda x: xp.negative(require("Neg", convert(x), (*FLOATS, *SIGNED)))
)
OPERATORS["invert"] = _wrapped(
    lambda x: xp.invert(require("Invert", convert(x), (*INTEGERS, *BOOL)))
)
OPERATORS["tensor_equals"] = _wrapped(lambda x, y: _equals(x, y, differ=False))
OPERATORS["tensor_not_equals"] = _wrapped(lambda x, y: _equals(x, y, differ=True))


@export("math.is_non_decreasing")
def is_non_decreasing(x: Any, name: Any = None) -> Any:
    """Whether no element of x, flattened, is less than the one before it."""
    return _increasing(x, xp.less_equal)


@export("math.is_strictly_increasing")
def is_strictly_increasing(x: Any, name: Any = None) -> Any:
    """Whether every element of x, flattened, is more than the one before it."""
    return _increasing(x, xp.less)


def _increasing(x: Any, ordered: Callable) -> Any:
    from tf_substrates.numpy.tensors import wrap

    flat = require("Less", convert(x), REALS).reshape(-1)
    return wrap(xp.all(ordered(flat[:-1], flat[1:])))
