"""What params and dtypes of the other operand change; and polynomials."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.elementwise.arguments import ANY_NUMBER, carried, complex_pairs, real_pairs, small
from harnesses.elementwise.asking import ULPS
from harnesses.harness import COMPLEX, FLOATS, INTEGERS, INTS, Normal, Values, define, is_complex

# Exponents of other dtypes than the base's.

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

for dtype in COMPLEX:
    args = complex_pairs(dtype)[""]
    define("atan2", "", lax.atan2, args, dtype=dtype, scale="array")

# Where a subnormal argument is flushed to zero, these see a zero.
for dtype in FLOATS[2:]:
    tiny = float(jnp.finfo(dtype).smallest_normal) / 4
    # Repeated, because the last elements may go another way than whole vectors.
    left = Values([0.0, -0.0, tiny, -tiny, 1.0, tiny], dtype, (24,))
    right = Values([tiny, -tiny, 1.0, 2.0, tiny, tiny], dtype, (24,))
    define("atan2", "subnormal", lax.atan2, [left, right], dtype=dtype)
    define("pow", "subnormal", lax.pow, [left, right], dtype=dtype)


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
# One of x and the coefficients is not finite, or zero, at a time.
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
