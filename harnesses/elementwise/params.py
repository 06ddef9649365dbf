"""What params and dtypes of the other operand change; and polynomials."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.elementwise import family
from harnesses.elementwise.arguments import ANY_NUMBER, carried, complex_pairs, real_pairs, small
from harnesses.elementwise.asking import ULPS
from harnesses.harness import COMPLEX, FLOATS, INTEGERS, INTS, Normal, Values, define, is_complex


@family.builder
def powers_by_exponents_of_another_dtype() -> None:
    """Powers of real and complex bases by exponents of an integer dtype."""
    for dtype in FLOATS + COMPLEX[:1]:
        for exponent in INTEGERS if dtype == np.float32 else INTS[2:3]:
            exponents = np.array([-3, -1, 0, 1, 2, 3, 10])
            bases = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
            if exponent.kind == "u":
                exponents = exponents[2:]
            if is_complex(dtype):
                bases = bases[2:6]
            bases, exponents = (a.ravel() for a in np.meshgrid(bases, exponents))
            define(
                "pow",
                f"by_{exponent.name}",
                lax.pow,
                [Values(bases.astype(dtype), dtype), Values(exponents, exponent)],
                dtype=dtype,
                params={"exponent": exponent.name},
            )


@family.builder
def products_of_another_dtype() -> None:
    """Products whose `out_dtype` is not the dtype of the operands."""
    for old, new in (
        *(("bfloat16", "float32"), ("float32", "bfloat16"), ("float16", "float32")),
        *(("int8", "int32"), ("int32", "int8"), ("uint8", "int16"), ("int8", "float32")),
        *(("float32", "complex64"), ("float8_e4m3fn", "bfloat16"), ("float8_e5m2", "float32")),
    ):
        define(
            "mul",
            f"gives_{new}",
            functools.partial(lax.mul, out_dtype=np.dtype(new)),
            real_pairs(np.dtype(old)),
            dtype=old,
            params={"out_dtype": new},
        )


@family.builder
def exponentials_of_stated_accuracy() -> None:
    """Exponentials of the highest accuracy and within a tolerance."""
    for accuracy, case in {
        lax.AccuracyMode.HIGHEST: "highest",
        lax.Tolerance(atol=0, rtol=0, ulps=2): "tolerance",
    }.items():
        define(
            "exp",
            f"accuracy_{case}",
            functools.partial(lax.exp, accuracy=accuracy),
            [Normal((3, 4), "float32")],
            dtype="float32",
            params={"accuracy": case},
        )


@family.builder
def angles_of_complex_numbers() -> None:
    """atan2 of complex numbers."""
    for dtype in COMPLEX:
        args = complex_pairs(dtype)[""]
        define("atan2", "", lax.atan2, args, dtype=dtype, scale="array")


@family.builder
def subnormal_arguments() -> None:
    """atan2 and pow of subnormal numbers."""
    # Where a subnormal argument is flushed to zero, these see a zero.
    for dtype in FLOATS[2:]:
        tiny = float(jnp.finfo(dtype).smallest_normal) / 4
        # Repeated, because the last elements may go another way than whole vectors.
        left = Values([0.0, -0.0, tiny, -tiny, 1.0, tiny], dtype, (24,))
        right = Values([tiny, -tiny, 1.0, 2.0, tiny, tiny], dtype, (24,))
        define("atan2", "subnormal", lax.atan2, [left, right], dtype=dtype)
        define("pow", "subnormal", lax.pow, [left, right], dtype=dtype)


@family.builder
def polynomials() -> None:
    """Polynomials of several degrees."""
    # Sums of many terms cancel, so errors are measured against the largest result.
    for dtype in ANY_NUMBER:
        for degree in (0, 1, 4, 12):
            if degree != 4 and dtype.name not in ("float32", "int32"):
                continue
            define(
                "polynomial",
                f"degree_{degree}",
                carried(dtype, lambda x, *coefficients: lax.polynomial(x, coefficients)),
                [small((6,), dtype), *(small((), dtype) for _ in range(degree + 1))],
                dtype=dtype,
                ulps=ULPS["polynomial"].get(dtype.name),
                scale="array",
                params={"degree": degree},
                jax_versions=">=0.12",
            )


@family.builder
def polynomials_of_broadcast_coefficients() -> None:
    """Polynomials whose coefficients have fewer elements than x."""
    define(
        "polynomial",
        "coefficients_broadcast",
        lambda x, *coefficients: lax.polynomial(x, coefficients, unroll=1),
        [Normal((3, 4), "float32"), Normal((3, 1), "float32"), Normal((1, 4), "float32")],
        dtype="float32",
        scale="array",
        params={"unroll": 1},
        jax_versions=">=0.12",
    )


@family.builder
def polynomials_at_edges() -> None:
    """Polynomials of which one of x and the coefficients at a time is not finite, or zero."""
    for dtype in FLOATS[2:]:
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -1.5])
        numbers = np.full((4, 4 * edges.size), 0.5)
        for row in range(4):
            numbers[row, row * edges.size : (row + 1) * edges.size] = edges
        define(
            "polynomial",
            "edges",
            lambda x, *coefficients: lax.polynomial(x, coefficients),
            [Values(row, dtype) for row in numbers],
            dtype=dtype,
            scale="array",
            jax_versions=">=0.12",
        )
