"""The primitives of one and two arguments, each over its dtypes."""

import functools
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import primitives

from harnesses.elementwise import family
from harnesses.elementwise.arguments import ANALYTIC, ANY_NUMBER, COMPARABLE, REAL_FLOATS, WHOLE
from harnesses.elementwise.asking import ULPS, binary, unary
from harnesses.harness import BOOL, COMPLEX, FLOATS, INTS, Values, define

NEAR_ZERO = np.outer([1, -1], np.geomspace(1e-4, 0.3, 12))


@family.builder
def absolute_values_signs_and_squares() -> None:
    """abs, neg, sign and square."""
    unary("abs", lax.abs, ANALYTIC + INTS)
    unary("neg", lax.neg, ANY_NUMBER)
    unary("sign", lax.sign, ANY_NUMBER)
    unary("square", lax.square, ANY_NUMBER)


@family.builder
def rounding_and_finiteness() -> None:
    """floor, ceil and is_finite, and each method of round."""
    for primitive, function in {
        "floor": lax.floor,
        "ceil": lax.ceil,
        "is_finite": lax.is_finite,
    }.items():
        unary(primitive, function, REAL_FLOATS)
    for method in lax.RoundingMethod:
        unary(
            "round",
            functools.partial(lax.round, rounding_method=method),
            REAL_FLOATS,
            method.name.lower(),
            params={"rounding_method": method.name},
        )


@family.builder
def analytic_functions() -> None:
    """Exponentials, logarithms, roots, and trigonometric and hyperbolic functions."""
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1"),
        *("log", "log1p", "log2", "logistic", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh"),
    ):
        # JAX takes half a minute to compile asinh of any float8.
        dtypes = FLOATS + COMPLEX if name == "asinh" else ANALYTIC
        versions = ">=0.11" if name == "log2" else None
        unary(name, lambda x, name=name: getattr(lax, name)(x), dtypes, jax_versions=versions)


@family.builder
def analytic_functions_near_zero() -> None:
    """Functions that are near their argument where it is near zero."""
    # 1 + x, and differences of exponentials, lose most of the argument there.
    for name in ("asin", "asinh", "atan", "atanh", "expm1", "log1p", "sinh", "tan", "tanh"):
        for dtype in FLOATS if name in ("expm1", "log1p") else FLOATS[2:3]:
            define(
                name,
                "near_zero",
                getattr(lax, name),
                [Values(NEAR_ZERO, dtype)],
                dtype=dtype,
                ulps=ULPS.get(name, {}).get(dtype.name),
            )


@family.builder
def functions_of_two_zeros() -> None:
    """Functions of 0.0 and -0.0, beside one: no number here is flushed to zero."""
    for name in (
        *("acos", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "exp", "exp2"),
        *("expm1", "floor", "log", "log1p", "logistic", "neg", "round", "rsqrt", "sign", "sin"),
        *("sinh", "sqrt", "square", "tan", "tanh"),
    ):
        for dtype in (np.dtype(np.float32), np.dtype(np.float16)):
            define(
                name,
                "two_zeros",
                getattr(lax, name),
                [Values([0.0, -0.0, 1.0], dtype)],
                dtype=dtype,
                ulps=ULPS.get(name, {}).get(dtype.name),
            )


@family.builder
def cube_roots_and_one_minus_squares() -> None:
    """cbrt and one_minus_square."""
    unary("cbrt", lax.cbrt, REAL_FLOATS)
    unary("one_minus_square", lambda x: lax.one_minus_square(x), ANY_NUMBER, jax_versions=">=0.11")


@family.builder
def integer_powers() -> None:
    """integer_pow: four exponents of every dtype, the others of one dtype of each kind."""
    for exponent in (-3, -2, -1, 0, 1, 2, 3, 4, 7, 10):
        dtypes = ANALYTIC if exponent < 0 else ANY_NUMBER
        if exponent not in (-2, 2, 3, 7):
            dtypes = tuple(
                np.dtype(d) for d in ("float32", "bfloat16", "int32", "uint8", "complex64")
            )
            dtypes = tuple(d for d in dtypes if exponent >= 0 or (d.kind != "i" and d.kind != "u"))
        unary(
            "integer_pow",
            functools.partial(lax.integer_pow, y=exponent),
            dtypes,
            f"minus_{-exponent}" if exponent < 0 else str(exponent),
            params={"y": exponent},
        )


@family.builder
def bits_of_integers() -> None:
    """not, population_count and clz, and the upper halves of products (mulhi)."""
    unary("not", lax.bitwise_not, WHOLE + BOOL)
    binary("mulhi", lax.mulhi, WHOLE)
    unary("population_count", lax.population_count, WHOLE)
    unary("clz", lax.clz, WHOLE)


@family.builder
def arithmetic_of_two_numbers() -> None:
    """Sums, products, quotients, extrema, angles and powers of two numbers."""
    binary("add", lax.add, ANY_NUMBER)
    binary("sub", lax.sub, ANY_NUMBER)
    binary("mul", lax.mul, ANY_NUMBER)
    binary("div", lax.div, ANY_NUMBER)
    binary("rem", lax.rem, REAL_FLOATS + WHOLE)
    # Of zeros of two signs, TensorFlow's kernels may take either.
    binary("max", lax.max, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
    binary("min", lax.min, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
    binary("atan2", lax.atan2, REAL_FLOATS)
    binary("pow", lax.pow, ANALYTIC)
    binary("nextafter", lax.nextafter, REAL_FLOATS)


@family.builder
def comparisons() -> None:
    """Comparisons, and those in a total order of floats."""
    binary("eq", lax.eq, COMPARABLE + COMPLEX)
    binary("ne", lax.ne, COMPARABLE + COMPLEX)
    for name in ("ge", "gt", "le", "lt"):
        binary(name, getattr(lax, name), COMPARABLE)
    for name in ("eq_to", "le_to", "lt_to"):
        others = COMPLEX if name == "eq_to" else ()
        binary(name, getattr(primitives, f"{name}_p").bind, (*COMPARABLE, *others))


@family.builder
def logic_and_shifts() -> None:
    """and, or, xor and the shifts."""
    for name in ("and", "or", "xor"):
        binary(name, getattr(lax, f"bitwise_{name}"), WHOLE + BOOL)
    for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
        binary(name, getattr(lax, name), WHOLE)


@family.builder
def complex_numbers_of_two_parts() -> None:
    """complex, of a real and an imaginary part."""
    binary("complex", lax.complex, FLOATS[2:])


@family.builder
def sums_of_cotangents() -> None:
    """add_any: the sum of the cotangents of an operand that is used twice."""
    binary("add_any", lambda x, y: jax.vjp(lambda z: (z, z), x)[1]((x, y))[0], FLOATS + COMPLEX)


@family.builder
def parts_of_complex_numbers() -> None:
    """Each half of a complex number, and what a real number becomes."""
    for name in ("real", "imag", "conj"):
        unary(name, getattr(lax, name), COMPLEX + (FLOATS[2:] if name == "conj" else ()))
    unary("conj", primitives.conj_p.bind, COMPLEX, "fewest_params")


def _clamped(x: Any, y: Any) -> Any:
    return lax.clamp(y, x, y[::-1]), lax.clamp(x, y, x[::-1])


def _clamped_by_scalars(x: Any) -> Any:
    zero, one = (lax.full((), bound, x.dtype) for bound in (0, 1))
    return lax.clamp(zero, x, one), lax.clamp(one, x, zero)


@family.builder
def clamps() -> None:
    """Bounds of the operand's shape, crossed ones too; scalar ones; NaN in any place."""
    binary("clamp", _clamped, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
    unary("clamp", _clamped_by_scalars, ANY_NUMBER + BOOL, "scalar_bounds", tags=("any_zero_sign",))
