"""Functions of each element, and reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jax2tf._src.graph.ops.arrays import zeros_like
from jax2tf._src.graph.ops.operands import as_tensor, integers
from jax2tf._src.graph.symbols import Symbol, raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import PyTree


def _unary(op: str, operand: str = "x") -> Callable[[PyTree], Symbol]:
    return lambda x: getattr(raw, op)(**{operand: as_tensor(x, None)})


def _binary(op: str) -> Callable[[PyTree, PyTree], Symbol]:
    return lambda x, y: getattr(raw, op)(x=as_tensor(x, y), y=as_tensor(y, x))


def _reduction(op: str) -> Callable[..., Symbol]:
    def reduce(x: PyTree, axis: PyTree = None, keepdims: bool = False) -> Symbol:
        x = as_tensor(x, None)
        axes = np.arange(x.shape.rank, dtype=np.int32) if axis is None else axis
        return getattr(raw, op)(input=x, axis=integers(axes), keep_dims=keepdims)

    return reduce


# Elementwise.
cos = _unary("Cos")
cosh = _unary("Cosh")
erf = _unary("Erf")
exp = _unary("Exp")
floor = _unary("Floor")
is_finite = _unary("IsFinite")
is_inf = _unary("IsInf")
is_nan = _unary("IsNan")
log = _unary("Log")
reciprocal = _unary("Reciprocal")
sin = _unary("Sin")
sinh = _unary("Sinh")
sqrt = _unary("Sqrt")
square = _unary("Square")
tanh = _unary("Tanh")
identity = _unary("Identity", "input")
elu = _unary("Elu", "features")
relu = _unary("Relu", "features")
relu6 = _unary("Relu6", "features")

add = _binary("AddV2")
bitwise_and = _binary("BitwiseAnd")
bitwise_or = _binary("BitwiseOr")
bitwise_xor = _binary("BitwiseXor")
equal = _binary("Equal")
left_shift = _binary("LeftShift")
less = _binary("Less")
_less_equal = _binary("LessEqual")
logical_and = _binary("LogicalAnd")
logical_or = _binary("LogicalOr")
maximum = _binary("Maximum")
minimum = _binary("Minimum")
not_equal = _binary("NotEqual")
pow = _binary("Pow")
right_shift = _binary("RightShift")
squared_difference = _binary("SquaredDifference")

reduce_all = _reduction("All")
reduce_any = _reduction("Any")
reduce_max = _reduction("Max")
reduce_min = _reduction("Min")
reduce_prod = _reduction("Prod")
reduce_sum = _reduction("Sum")


def greater(x: PyTree, y: PyTree) -> Symbol:
    """x > y, made as y < x."""
    return less(y, x)


def greater_equal(x: PyTree, y: PyTree) -> Symbol:
    """x >= y, made as y <= x."""
    return _less_equal(y, x)


def abs(x: PyTree) -> Symbol:
    """The absolute value."""
    x = as_tensor(x, None)
    if x.dtype.is_complex:
        return raw.ComplexAbs(x=x, Tout=x.dtype.real_dtype)
    return raw.Abs(x=x)


def sign(x: PyTree) -> Symbol:
    """The sign of real numbers."""
    return raw.Sign(x=x)


def atan2(y: PyTree, x: PyTree) -> Symbol:
    """The angle of (x, y)."""
    return raw.Atan2(y=as_tensor(y, x), x=as_tensor(x, y))


def cast(x: PyTree, dtype: PyTree) -> Symbol:
    """The numbers in another dtype; the tensor itself if it has that dtype."""
    to = dtypes.named(dtype)
    x = as_tensor(x, None)
    return x if x.dtype == to else raw.Cast(x=x, DstT=to)


def bitcast(input: PyTree, type: PyTree) -> Symbol:
    """The same bits as another dtype."""
    return raw.Bitcast(input=as_tensor(input, None), type=type)


def complex(real: PyTree, imag: PyTree) -> Symbol:
    """Complex numbers of their parts."""
    a, b = as_tensor(real, imag), as_tensor(imag, real)
    is_wide = a.dtype.size == 8
    return raw.Complex(real=a, imag=b, Tout=np.complex128 if is_wide else np.complex64)


def real(input: PyTree) -> Symbol:
    """The real part; a real tensor itself."""
    x = as_tensor(input, None)
    return raw.Real(input=x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else x


def imag(input: PyTree) -> Symbol:
    """The imaginary part, zeros of a real tensor."""
    x = as_tensor(input, None)
    return raw.Imag(input=x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else zeros_like(x)


def conj(x: PyTree) -> Symbol:
    """The conjugate; a real tensor itself."""
    return raw.Conj(input=x) if x.dtype.is_complex else x


def where(condition: PyTree, x: PyTree = None, y: PyTree = None) -> Symbol:
    """`x` where the condition is true, else `y`; without them the places where it is true."""
    if x is None:
        return raw.Where(condition=condition)
    return raw.SelectV2(condition=as_tensor(condition, None), t=as_tensor(x, y), e=as_tensor(y, x))
