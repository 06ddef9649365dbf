"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ..., and what JAX builds
on them in jax.scipy.special.

TensorFlow's CPU kernels (Eigen's, from Cephes), the XLA inside TensorFlow and the XLA of JAX
evaluate different formulas, or the same ones in another order. So each function is asked region by
region, and each region has the tolerance that its conditioning calls for: near a root the error is
measured at the size of the terms that cancel (scale "array"), in a tail it is what exp(-x**2) makes
of the rounding of x**2, and JAX is as far from the exact value there as TensorFlow is.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from harnesses.harness import (
    FLOAT4,
    FLOAT8,
    FLOATS,
    Arg,
    Fill,
    Integers,
    Uniform,
    Values,
    define,
    edge_values,
)

WIDE = tuple(dtype for dtype in FLOATS if dtype.itemsize >= 4)
FLOAT8_E4M3FN = tuple(dtype for dtype in FLOAT8 if dtype.name == "float8_e4m3fn")


def ulps(float32: int, float64: int) -> dict[str, int]:
    """Narrower floats are computed in float32 and rounded: at most one apart, float8 nothing."""
    return {"bfloat16": 1, "float16": 1, "float32": float32, "float64": float64}


def powers(low: float, high: float, dtype, sign: int = 1) -> Arg:
    """Numbers of all magnitudes from 10**low to 10**high."""
    return Values(sign * np.logspace(low, high, 40), dtype)


def pairs(left, right, dtype) -> list[Values]:
    """Each number of `left` with each of `right`."""
    grid = np.meshgrid(np.array(left, float), np.array(right, float), indexing="ij")
    return [Values(values.ravel(), dtype) for values in grid]


def edges(dtype, *, subnormals: bool = True) -> Values:
    values = edge_values(dtype)
    if not subnormals:
        tiny = float(jnp.finfo(dtype).tiny)
        wide = np.abs(values.astype(np.float64))
        values = values[(wide == 0) | ~(wide < tiny)]
    return Values(values, dtype)


# Functions of one argument. A region: its name, bounds, tolerance, and what is special about it.

EXACT = ulps(0, 0)
ROOTS = {"scale": "array"}

UNARY = {
    "erf": (lax.erf, (-4, 4), ulps(8, 4)),
    "erfc": (lax.erfc, (-4, 4), ulps(8, 16)),
    "erf_inv": (lax.erf_inv, (-0.99, 0.99), ulps(4, 24)),
    "lgamma": (lax.lgamma, (2.5, 30), ulps(8, 8)),
    "digamma": (lax.digamma, (2, 30), ulps(16, 16)),
    "bessel_i0e": (lax.bessel_i0e, (-20, 20), ulps(8, 8)),
    "bessel_i1e": (lax.bessel_i1e, (-20, 20), ulps(12, 8)),
}
REGIONS = {
    "erf": [("beyond", (4, 30), EXACT, {})],
    "erfc": [("tail", (4, 9), ulps(64, 64), {})],
    "erf_inv": [("outside", (1.01, 3), EXACT, {})],
    "lgamma": [
        ("near_zero", (0.001, 0.5), ulps(20, 20), {}),
        ("roots", (0.8, 2.3), ulps(8, 8), ROOTS),
        ("negative", (-20, -0.05), ulps(8, 8), ROOTS),
    ],
    "digamma": [
        ("near_zero", (0.001, 0.5), ulps(12, 16), {}),
        ("root", (0.8, 2), ulps(8, 8), ROOTS),
        ("negative", (-20, -0.05), ulps(8, 8), ROOTS),
    ],
    "bessel_i0e": [],
    "bessel_i1e": [],
}
TINY = {
    "erf": ulps(4, 4),
    "erfc": ulps(2, 2),
    "erf_inv": ulps(4, 4),
    "lgamma": ulps(8, 4),
    "digamma": ulps(4, 4),
    "bessel_i0e": ulps(6, 8),
    "bessel_i1e": ulps(6, 8),
}
HUGE = {"lgamma": ulps(4, 4), "digamma": ulps(2, 4), "bessel_i0e": ulps(6, 4)}
HUGE["bessel_i1e"] = ulps(6, 4)

for primitive, (function, bounds, tolerance) in UNARY.items():
    for dtype in (*FLOATS, *FLOAT8, *FLOAT4):
        define(
            primitive,
            "",
            function,
            [Uniform((7, 9), dtype, *bounds)],
            dtype=dtype,
            ulps=tolerance,
        )
    for dtype in (*FLOATS, *(() if primitive in ("erfc", "bessel_i1e") else FLOAT8)):
        define(
            primitive,
            "edges",
            function,
            [edges(dtype, subnormals=primitive != "lgamma")],
            dtype=dtype,
            ulps=UNARY[primitive][2],
        )
    for case, (low, high), tolerance, options in REGIONS[primitive]:
        for dtype in FLOATS:
            define(
                primitive,
                case,
                function,
                [Uniform((64,), dtype, low, high)],
                dtype=dtype,
                ulps=tolerance,
                **options,
            )
    for dtype in WIDE:
        define(
            primitive,
            "tiny",
            function,
            [powers(-30, -2, dtype)],
            dtype=dtype,
            ulps=TINY[primitive],
        )
    for dtype in WIDE if primitive in HUGE else ():
        define(
            primitive, "huge", function, [powers(1.5, 30, dtype)], dtype=dtype, ulps=HUGE[primitive]
        )
    for case, shape in (("scalar", ()), ("empty", (0, 3))):
        define(
            primitive,
            case,
            function,
            [Fill(shape, np.float32, 0.75)],
            dtype=np.float32,
            ulps=UNARY[primitive][2],
        )

for dtype in FLOATS:
    poles = [0.0, -0.0, *range(-30, 0)]
    for primitive in ("lgamma", "digamma"):
        define(
            primitive,
            "poles",
            UNARY[primitive][0],
            [Values(poles, dtype)],
            dtype=dtype,
            ulps=EXACT,
        )
    define(
        "lgamma",
        "subnormal",
        lax.lgamma,
        [Values(jnp.finfo(dtype).smallest_subnormal * np.array([1, -1, 2, 3]), dtype)],
        dtype=dtype,
        ulps=ulps(4, 4),
    )

for dtype in WIDE:
    define(
        "erf_inv",
        "near_one",
        lax.erf_inv,
        [Values(1 - np.logspace(-6, -2, 40), dtype)],
        dtype=dtype,
        ulps=ulps(8, 8),
    )

# Functions of two and three arguments.

LIMITS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0]

for dtype in FLOATS:
    for case, orders, points, tolerance, options in (
        ("", [1, 2, 3, 4, 5], np.linspace(0.1, 12, 12), ulps(24, 24), {}),
        ("order_zero", [0], np.linspace(0.1, 12, 25), ulps(8, 8), ROOTS),
        ("high_order", [10, 15, 20], np.linspace(2, 12, 9), ulps(256, 256), {}),
        ("negative", [0, 1, 2, 3], np.linspace(-3.3, -0.2, 11), ulps(16, 16), ROOTS),
        ("poles", [0, 1, 2, 3], [0.0, -0.0, -1, -2, -3, -7], EXACT, {}),
        ("fractional_order", [0.5, 1.5, 2.25], [0.5, 1, 2, 3], EXACT, {}),
        ("negative_order", [-1, -2, -0.5], [0.5, 1, 2, 3], EXACT, {}),
        ("limits", LIMITS, LIMITS, ulps(24, 24), {}),
    ):
        if case == "high_order" and dtype.name == "float16":
            continue  # All results overflow float16.
        args = pairs(orders, points, dtype)
        define("polygamma", case, lax.polygamma, args, dtype=dtype, ulps=tolerance, **options)

    for case, orders, points, tolerance in (
        ("", np.linspace(1.1, 10, 10), np.linspace(0.1, 20, 10), ulps(8, 4)),
        ("riemann", np.linspace(1.1, 20, 30), [1], ulps(4, 4)),
        ("large_offset", np.linspace(1.1, 5, 5), [30, 100, 1e3, 1e4], ulps(4, 4)),
        ("high_order", np.linspace(12, 60, 9), np.linspace(0.5, 3, 6), ulps(6, 4)),
        ("negative_offset", [2, 3, 4], np.linspace(-4.2, -0.3, 12), ulps(8, 4)),
        ("poles", [-2, -1, 0, 0.5, 1, 2, 2.5, 3, 4], [0.0, -0.0, -1, -2, -7, -np.inf], EXACT),
        ("below_one", np.linspace(-3, 0.9, 9), np.linspace(0.5, 5, 5), EXACT),
        ("limits", LIMITS, LIMITS, ulps(4, 4)),
    ):
        args = pairs(orders, points, dtype)
        define("zeta", case, lax.zeta, args, dtype=dtype, ulps=tolerance)

    for primitive, function, factor in (
        ("igamma", lax.igamma, 1),
        ("igammac", lax.igammac, 2),
        ("igamma_grad_a", lax.igamma_grad_a, 2),
    ):
        for case, a, x, tolerance in (
            ("", np.linspace(0.1, 3, 8), np.linspace(0.05, 6, 8), ulps(32 * factor, 64 * factor)),
            ("middle", np.linspace(3, 20, 6), np.linspace(2, 30, 8), ulps(256, 512)),
            ("small_shape", [1e-4, 1e-3, 0.01], np.logspace(-3, 0.5, 8), ulps(64, 64)),
            ("limits", LIMITS, LIMITS, ulps(64, 64)),
        ):
            args = pairs(a, x, dtype)
            define(primitive, case, function, args, dtype=dtype, ulps=tolerance)

    for case, bounds, tolerance in (
        ("", (0.1, 3), ulps(64, 64)),
        ("middle", (3, 20), ulps(256, 512)),
    ):
        args = [Uniform((60,), dtype, *bounds), Uniform((60,), dtype, *bounds)]
        define(
            "regularized_incomplete_beta",
            case,
            lax.betainc,
            [*args, Uniform((60,), dtype, 0.02, 0.98)],
            dtype=dtype,
            ulps=tolerance,
        )
    limits = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 0.5, 2.0])
    points = np.array([np.nan, np.inf, 0.0, -0.0, -0.5, 0.25, 1.0, 1.5])
    define(
        "regularized_incomplete_beta",
        "limits",
        lax.betainc,
        [Values(grid.ravel(), dtype) for grid in np.meshgrid(limits, limits, points)],
        dtype=dtype,
        ulps=ulps(64, 64),
    )

    define(
        "random_gamma_grad",
        "",
        lax.random_gamma_grad,
        pairs([0.3, 0.8, 1.5, 4.0], [0.1, 0.5, 1.0, 2.0, 5.0], dtype),
        dtype=dtype,
        ulps=ulps(64, 64),
    )

# JAX iterates in float8 itself here, where it computes in float32 elsewhere.
for dtype in FLOAT8_E4M3FN:
    a, x = pairs([0.5, 1, 2], [0.25, 0.5, 1, 2], dtype)
    for primitive, function in (
        ("igamma", lax.igamma),
        ("igammac", lax.igammac),
        ("igamma_grad_a", lax.igamma_grad_a),
    ):
        define(primitive, "", function, [a, x], dtype=dtype, ulps=0)
    define(
        "regularized_incomplete_beta",
        "",
        lax.betainc,
        [a, a, Values([0.125, 0.25, 0.5, 0.75], dtype, a.shape)],
        dtype=dtype,
        ulps=0,
    )

define(
    "zeta",
    "order_of_thousands",
    lax.zeta,
    pairs([4e3, 6e3], [1, 2], np.float32),
    dtype=np.float32,
    ulps=EXACT,
)
