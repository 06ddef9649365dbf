"""Functions of one operand: powers, exponentials, trigonometry, rounding."""

from __future__ import annotations

from typing import Any

import numpy as xp

from tf_substrates.numpy.math import derivatives
from tf_substrates.numpy.math.dtype_groups import FLOATS, NUMBERS, REAL_FLOATS, SIGNED, like
from tf_substrates.numpy.math.registering import Row, register_unary
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, require

JAX_MODE = False
if JAX_MODE:
    import jax


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


def _sign_tangent(x: Any, dx: Any) -> Any:
    """Along the circle of numbers of size 1; JAX 0.10 has 0 of complex numbers too."""
    if x.dtype.kind != "c":
        return xp.zeros_like(dx)
    is_zero = x == 0
    found = xp.sign(x)
    along = dx - found * xp.real(xp.conj(found) * dx)
    size = xp.abs(xp.where(is_zero, xp.ones_like(x), x))
    return xp.where(is_zero, xp.zeros_like(dx), along / size)


# TensorFlow's sign of a complex number is x / |x|, as that of NumPy 2 and JAX is.
sign = derivatives.with_tangent(xp.sign, _sign_tangent)


def tf_round(x: Any) -> Any:
    return x if x.dtype.kind in "iub" else xp.round(x)


_UNARY: list[Row] = [
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
    ("sqrt math.sqrt", derivatives.sqrt, FLOATS, "Sqrt"),
    ("math.rsqrt", derivatives.rsqrt, FLOATS, "Rsqrt"),
    ("sigmoid math.sigmoid nn.sigmoid", sigmoid, FLOATS, "Sigmoid"),
    ("square math.square", xp.square, NUMBERS, "Square"),
    ("negative math.negative", xp.negative, (*FLOATS, *SIGNED), "Neg"),
    ("sign math.sign", sign, (*FLOATS, *SIGNED), "Sign"),
    ("math.reciprocal", derivatives.reciprocal, NUMBERS, "Reciprocal"),
    ("floor math.floor", xp.floor, REAL_FLOATS, "Floor"),
    ("math.ceil", xp.ceil, REAL_FLOATS, "Ceil"),
    ("math.rint", xp.rint, REAL_FLOATS, "Rint"),
    ("round math.round", tf_round, NUMBERS, "Round"),
    ("math.is_finite", xp.isfinite, REAL_FLOATS, "IsFinite"),
    ("math.is_inf", xp.isinf, REAL_FLOATS, "IsInf"),
    ("math.is_nan", xp.isnan, REAL_FLOATS, "IsNan"),
]


# Of integers these are arithmetic of shapes.
_STATIC = ("square", "negative", "sign", "round")
register_unary(_UNARY, static=_STATIC)


@op("abs", "math.abs", static=True)
def tf_abs(x: Any, name: Any = None) -> Any:
    """The absolute value; of a complex number its length, which is real."""
    return derivatives.absolute(require("Abs", convert(x), (*FLOATS, *SIGNED)))


@op("math.softplus", "nn.softplus")
def tf_softplus(features: Any, name: Any = None) -> Any:
    """log(1 + exp(features)), for large features too."""
    return softplus(require("Softplus", convert(features), REAL_FLOATS))


@op("math.softsign", "nn.softsign")
def softsign(features: Any, name: Any = None) -> Any:
    return derivatives.softsign(require("Softsign", convert(features), REAL_FLOATS))


@op("math.log_sigmoid")
def log_sigmoid(x: Any, name: Any = None) -> Any:
    return -softplus(-require("Softplus", convert(x), REAL_FLOATS))
