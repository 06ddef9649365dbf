"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ..., and what JAX builds
on them in jax.scipy.special.

TensorFlow's CPU kernels (Eigen's, from Cephes), the XLA inside TensorFlow and the XLA of JAX
evaluate different formulas, or the same ones in another order. So each function is asked region by
region, and each region has the tolerance that its conditioning calls for: near a root the error is
measured at the size of the terms that cancel (scale "array"), in a tail it is what exp(-x**2) makes
of the rounding of x**2, and JAX is as far from the exact value there as TensorFlow is.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from harnesses.harness import (
    FLOAT4,
    FLOAT8,
    FLOATS,
    Arg,
    Family,
    Fill,
    Integers,
    Uniform,
    Values,
    define,
    edge_values,
)

family = Family("special")

WIDE = tuple(dtype for dtype in FLOATS if dtype.itemsize >= 4)


def ulps(float32: int, float64: int, narrow: int = 1) -> dict[str, int]:
    """Primitives compute narrower floats in float32 and round: at most one apart, float8 nothing.

    Functions of several primitives round after each of them, where XLA may skip it.
    """
    return {"bfloat16": narrow, "float16": narrow, "float32": float32, "float64": float64}


def powers(low: float, high: float, dtype, sign: int = 1) -> Arg:
    """Numbers of all magnitudes from 10**low to 10**high."""
    return Values(sign * np.logspace(low, high, 40), dtype)


def pairs(left, right, dtype) -> list[Values]:
    """Each number of `left` with each of `right`."""
    grid = np.meshgrid(np.array(left, float), np.array(right, float), indexing="ij")
    return [Values(values.ravel(), dtype) for values in grid]


def edges(primitive: str, dtype) -> Values:
    """The edge values of `dtype`; those near roots and the subnormal ones where they have cases."""
    values = edge_values(dtype)
    magnitude = np.abs(values.astype(np.float64))
    if primitive in ("lgamma", "digamma"):
        values = values[~((magnitude >= 0.5) & (magnitude <= 2.5))]
    if primitive == "lgamma":
        magnitude = np.abs(values.astype(np.float64))
        values = values[(magnitude == 0) | ~(magnitude < float(jnp.finfo(dtype).tiny))]
    return Values(values, dtype)


# Functions of one argument. A region: its name, bounds, tolerance, and what is special about it.

EXACT = ulps(0, 0)
ROOTS = {"scale": "array"}

UNARY = {
    "erf": (lax.erf, (-4, 4), ulps(8, 4)),
    "erfc": (lax.erfc, (-4, 4), ulps(12, 16)),
    "erf_inv": (lax.erf_inv, (-0.99, 0.99), ulps(4, 24)),
    "lgamma": (lax.lgamma, (2.5, 30), ulps(12, 12)),
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
        ("roots", (0.5, 4), ulps(24, 24), ROOTS),
        ("negative", (-20, -0.05), ulps(8, 8), ROOTS),
    ],
    "digamma": [
        ("near_zero", (0.001, 0.5), ulps(12, 16), {}),
        ("root", (0.3, 4), ulps(8, 8), ROOTS),
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


@family.builder
def functions_of_one_argument() -> None:
    """Functions of one argument, region by region."""
    for primitive in UNARY:
        _usual_numbers_and_edges(primitive)
        _regions(primitive)
        _scalar_and_empty(primitive)


def _usual_numbers_and_edges(primitive: str) -> None:
    function, bounds, tolerance = UNARY[primitive]
    # No kernel of TensorFlow's reads a float4; to see it once is enough.
    for dtype in (*FLOATS, *FLOAT8, *(FLOAT4 if primitive == "erf" else ())):
        args = [Uniform((7, 9), dtype, *bounds)]
        define(primitive, "", function, args, dtype=dtype, ulps=tolerance)
    for dtype in (*FLOATS, *(() if primitive in ("erfc", "bessel_i1e") else FLOAT8)):
        args = [edges(primitive, dtype)]
        define(primitive, "edges", function, args, dtype=dtype, ulps=tolerance)


def _regions(primitive: str) -> None:
    function = UNARY[primitive][0]
    for case, (low, high), tolerance, options in REGIONS[primitive]:
        for dtype in FLOATS:
            args = [Uniform((64,), dtype, low, high)]
            define(primitive, case, function, args, dtype=dtype, ulps=tolerance, **options)
    for dtype in WIDE:
        args = [powers(-30, -2, dtype)]
        define(primitive, "tiny", function, args, dtype=dtype, ulps=TINY[primitive])
    for dtype in WIDE if primitive in HUGE else ():
        args = [powers(1.5, 30, dtype)]
        define(primitive, "huge", function, args, dtype=dtype, ulps=HUGE[primitive])


def _scalar_and_empty(primitive: str) -> None:
    function, _, tolerance = UNARY[primitive]
    for case, shape in (("scalar", ()), ("empty", (0, 3))):
        args = [Fill(shape, np.float32, 0.75)]
        define(primitive, case, function, args, dtype=np.float32, ulps=tolerance)


@family.builder
def poles() -> None:
    """The poles of lgamma and digamma."""
    for dtype in FLOATS:
        numbers = [0.0, -0.0, *range(-30, 0)]
        for primitive in ("lgamma", "digamma"):
            define(
                primitive,
                "poles",
                UNARY[primitive][0],
                [Values(numbers, dtype)],
                dtype=dtype,
                ulps=EXACT,
            )


@family.builder
def erf_inv_near_one() -> None:
    """erf_inv close to its pole at one."""
    for dtype in WIDE:
        define(
            "erf_inv",
            "near_one",
            lax.erf_inv,
            [Values(1 - np.logspace(-6, -2, 40), dtype)],
            dtype=dtype,
            ulps=ulps(8, 8),
        )


LIMITS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -0.75, 0.5, 1.0, 1.75, 2.0]


@family.builder
def functions_of_several_arguments() -> None:
    """Functions of two and three arguments, region by region."""
    for dtype in FLOATS:
        _polygamma(dtype)
        _zeta(dtype)
        _incomplete_gamma(dtype)
        _incomplete_beta(dtype)


def _polygamma(dtype: np.dtype) -> None:
    for case, orders, points, tolerance, options in (
        ("", [1, 2, 3, 4, 5], np.linspace(0.1, 12, 12), ulps(24, 24), {}),
        ("order_zero", [0], np.linspace(0.1, 12, 25), ulps(8, 8), ROOTS),
        ("high_order", [10, 15, 20], np.linspace(2, 12, 9), ulps(96, 128), {}),
        ("negative", [0, 1, 2, 3], np.linspace(-3.3, -0.2, 11), ulps(16, 16), ROOTS),
        ("poles", [0, 1, 2, 3], [0.0, -0.0, -1, -2, -3, -7], EXACT, {}),
        ("fractional_order", [0.5, 1.5, 2.25], [0.5, 1, 2, 3], EXACT, {}),
        ("negative_order", [-1, -2, -0.5], [0.5, 1, 2, 3], EXACT, {}),
        ("limits", LIMITS, LIMITS, ulps(32, 32), {}),
    ):
        if case == "high_order" and dtype.name == "float16":
            continue  # All results overflow float16.
        args = pairs(orders, points, dtype)
        define("polygamma", case, lax.polygamma, args, dtype=dtype, ulps=tolerance, **options)


def _zeta(dtype: np.dtype) -> None:
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


def _incomplete_gamma(dtype: np.dtype) -> None:
    middle = [
        ("middle", np.linspace(3, 20, 6), np.linspace(2, 30, 8), ulps(128, 224), {}),
        # One minus nearly one: what is left of igammac is small.
        ("small_shape", [1e-4, 1e-3, 0.01], np.logspace(-3, 0.5, 8), ulps(512, 1024), ROOTS),
    ]
    for primitive, function in (
        ("igamma", lax.igamma),
        ("igammac", lax.igammac),
        ("igamma_grad_a", lax.igamma_grad_a),
    ):
        for case, a, x, tolerance, options in (
            ("", np.linspace(0.1, 3, 8), np.linspace(0.05, 6, 8), ulps(160, 128), {}),
            ("limits", LIMITS, LIMITS, ulps(32, 128), {}),
            *(middle if dtype in WIDE else ()),
        ):
            args = pairs(a, x, dtype)
            define(primitive, case, function, args, dtype=dtype, ulps=tolerance, **options)


def _incomplete_beta(dtype: np.dtype) -> None:
    for case, bounds, tolerance in (
        ("", (0.1, 3), ulps(64, 128)),
        *([("middle", (3, 20), ulps(256, 512))] if dtype in WIDE else []),
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
        ulps=ulps(64, 256),
    )


@family.builder
def operands_that_are_repeated() -> None:
    """Functions of several arrays that have dimensions of size one where others have more."""
    for dtype in FLOATS:
        bounds = (0.2, 3), (0.3, 4), (0.02, 0.98)
        for case, shapes in REPEATED.items():
            define(
                "regularized_incomplete_beta",
                f"repeats_{case}",
                lax.betainc,
                [Uniform(s, dtype, *b) for s, b in zip(shapes, bounds, strict=True)],
                dtype=dtype,
                ulps=ulps(64, 128),
            )
        for name, function in TWO_OPERANDS.items():
            define(
                name,
                "repeats",
                function,
                [Uniform((5, 1), dtype, 1.5, 4), Uniform((1, 6), dtype, 1, 2)],
                dtype=dtype,
                ulps=ulps(64, 128),
            )


REPEATED = {
    "columns_and_rows": ((5, 1), (1, 6), (5, 6)),
    "points": ((5, 1), (1, 6), (1, 1)),
    "one": ((5, 6), (5, 1), (5, 6)),
    "parameters": ((1, 1), (1, 1), (5, 6)),
    "empty": ((5, 1), (1, 0), (5, 0)),
}
TWO_OPERANDS = {
    "igamma": lax.igamma,
    "igammac": lax.igammac,
    "igamma_grad_a": lax.igamma_grad_a,
    "random_gamma_grad": lax.random_gamma_grad,
    "polygamma": lambda x, y: lax.polygamma(jnp.round(x), y),
    "zeta": lax.zeta,
}


@family.builder
def gradients_of_gamma_samples() -> None:
    """random_gamma_grad, of wide floats alone."""
    for dtype in WIDE:
        define(
            "random_gamma_grad",
            "",
            lax.random_gamma_grad,
            pairs([0.3, 0.8, 1.5, 4.0], [0.1, 0.5, 1.0, 2.0, 5.0], dtype),
            dtype=dtype,
            ulps=ulps(32, 64),
        )


@family.builder
def igamma_of_float8() -> None:
    """igamma of a float8."""
    # JAX iterates in float8 itself here, where it computes in float32 elsewhere.
    dtype = jnp.dtype("float8_e4m3fn")
    args = pairs([0.5, 1, 2], [0.25, 0.5, 1, 2], dtype)
    define("igamma", "", lax.igamma, args, dtype=dtype, ulps=0)


@family.builder
def lgamma_of_subnormal_numbers() -> None:
    """lgamma of subnormal numbers of float32."""
    define(
        "lgamma",
        "subnormal",
        lax.lgamma,
        [Values([1e-45, -1e-45, 2e-40, -1e-38], np.float32)],
        dtype=np.float32,
        ulps=ulps(4, 4),
    )


@family.builder
def zeta_of_large_orders() -> None:
    """zeta of orders of tens, of thousands and without bound."""
    # The terms of the sum overflow and underflow, and so do those of the formula for the rest.
    define(
        "zeta",
        "order_without_bounds",
        lax.zeta,
        pairs([40, 150, 1e5, 1e30, np.inf], [1e-30, 0.5, 1, 1.5, 2, 1e20, np.inf], np.float32),
        dtype=np.float32,
        ulps=ulps(4, 4),
    )
    define(
        "zeta",
        "order_of_thousands",
        lax.zeta,
        pairs([4e3, 6e3], [1, 2], np.float32),
        dtype=np.float32,
        ulps=EXACT,
    )


# What jax.scipy.special builds of these: name, function, bounds of each argument, tolerance.

PUBLIC = [
    ("i0", special.i0, [(-8, 8)], ulps(8, 8, 2)),
    ("i0e", special.i0e, [(-8, 8)], ulps(8, 8)),
    ("i1", special.i1, [(-8, 8)], ulps(16, 12, 2)),
    ("i1e", special.i1e, [(-8, 8)], ulps(12, 8)),
    ("entr", special.entr, [(-1, 3)], ulps(6, 4, 2)),
    ("erf", special.erf, [(-3, 3)], ulps(8, 4)),
    ("erfc", special.erfc, [(-3, 3)], ulps(12, 16)),
    ("erfinv", special.erfinv, [(-0.95, 0.95)], ulps(4, 24)),
    ("expit", special.expit, [(-10, 10)], ulps(8, 8, 2)),
    ("gamma", special.gamma, [(0.2, 8)], ulps(96, 96, 2)),
    ("gammasgn", special.gammasgn, [(-5, 5)], EXACT),
    ("factorial", special.factorial, [(0, 8)], ulps(96, 96, 16)),
    ("logit", special.logit, [(0.02, 0.98)], ulps(4, 4, 2)),
    ("sinc", jnp.sinc, [(-3, 3)], ulps(4, 4, 2)),
    ("beta", special.beta, [(0.2, 4), (0.2, 4)], ulps(64, 64, 12)),
    ("kl_div", special.kl_div, [(-1, 3), (0, 3)], ulps(128, 128, 32)),
    ("rel_entr", special.rel_entr, [(-1, 3), (0, 3)], ulps(16, 16, 12)),
    ("xlogy", special.xlogy, [(-2, 2), (0, 3)], ulps(6, 4, 2)),
    ("xlog1py", special.xlog1py, [(-2, 2), (-1, 3)], ulps(16, 16, 4)),
    ("zeta", special.zeta, [(1.1, 6), (0.2, 6)], ulps(8, 4)),
    ("polygamma", lambda x: special.polygamma(2, x), [(0.2, 6)], ulps(24, 24, 2)),
    ("poch", special.poch, [(0.5, 3), (0.5, 3)], ulps(96, 64, 12)),
]
ROOTED = [
    ("gammaln", special.gammaln, [(0.2, 6)], ulps(8, 8)),
    ("digamma", special.digamma, [(0.2, 6)], ulps(8, 8)),
    ("betaln", special.betaln, [(0.2, 4), (0.2, 4)], ulps(16, 16, 2)),
    ("multigammaln", lambda a: special.multigammaln(a, 3), [(2, 8)], ulps(8, 8, 2)),
    ("logsumexp", special.logsumexp, [(-5, 5)], ulps(2, 2)),
    ("log_softmax", special.log_softmax, [(-5, 5)], ulps(4, 4, 2)),
    ("softmax", special.softmax, [(-5, 5)], ulps(8, 8, 2)),
]
# JAX refuses the narrower floats here, or takes long.
WIDE_ALONE = [
    ("betainc", special.betainc, [(0.2, 3), (0.2, 3), (0.02, 0.98)], ulps(64, 64)),
    ("expi", special.expi, [(0.5, 8)], ulps(8, 8)),
    ("exp1", special.exp1, [(0.1, 8)], ulps(32, 32)),
    ("expn", lambda x: special.expn(2, x), [(0.1, 8)], ulps(48, 32)),
    ("gammainc", special.gammainc, [(0.2, 3), (0.1, 6)], ulps(32, 32)),
    ("gammaincc", special.gammaincc, [(0.2, 3), (0.1, 6)], ulps(64, 96)),
    ("hyp1f1", special.hyp1f1, [(0.2, 3), (0.2, 3), (-2, 2)], ulps(4, 4)),
    ("bessel_jn", lambda x: special.bessel_jn(x, v=2), [(0.5, 5)], ulps(4, 4)),
    ("log_ndtr", special.log_ndtr, [(-12, 4)], ulps(16, 24)),
    ("ndtr", special.ndtr, [(-4, 4)], ulps(12, 12)),
    ("ndtri", special.ndtri, [(0.02, 0.98)], ulps(8, 8)),
    ("spence", special.spence, [(0, 10)], ulps(8, 8)),
]


@family.builder
def public_functions() -> None:
    """Each function of the tables, at uniform numbers between its bounds."""
    for table, dtypes, options in (
        (PUBLIC, FLOATS, {}),
        (ROOTED, FLOATS, ROOTS),
        (WIDE_ALONE, WIDE, {}),
    ):
        for name, function, bounds, tolerance in table:
            for dtype in dtypes:
                define(
                    f"scipy.special.{name}" if name != "sinc" else "numpy.sinc",
                    "",
                    function,
                    [Uniform((24,), dtype, *between) for between in bounds],
                    dtype=dtype,
                    ulps=tolerance,
                    **options,
                )


@family.builder
def public_functions_of_integers() -> None:
    """Functions that promote integers to floats."""
    for name, function in (
        ("entr", special.entr),
        ("expit", special.expit),
        ("gammaln", special.gammaln),
        ("logit", special.logit),
        ("factorial", special.factorial),
    ):
        # Integers are promoted to JAX's default float.
        define(
            f"scipy.special.{name}",
            "of_integers",
            function,
            [Integers((12,), np.int32, 3, 9)],
            dtype=np.int32,
            ulps=ulps(32, 32),
        )


@family.builder
def other_public_functions() -> None:
    """What the tables cannot say: other arguments, other versions of JAX."""
    define(
        "scipy.special.bernoulli",
        "",
        lambda x: x * special.bernoulli(8),
        [Fill((9,), np.float32, 1.5)],
        dtype=np.float32,
    )
    define(
        "scipy.special.logsumexp",
        "weights_and_sign",
        lambda x, b: special.logsumexp(x, axis=1, b=b, keepdims=True, return_sign=True),
        [Uniform((3, 8), np.float32, -5, 5), Uniform((3, 8), np.float32, -1, 1)],
        dtype=np.float32,
        ulps=ulps(4, 4),
        scale="array",
    )
    for name, versions in {"erfcinv": ">=0.12", "erfcx": None}.items():
        define(
            f"scipy.special.{name}",
            "",
            lambda x, name=name: getattr(special, name)(x),
            [Uniform((24,), np.float32, 0.05, 1.9)],
            dtype=np.float32,
            ulps=ulps(32, 32),
            jax_versions=versions,
        )
