"""Elementwise arithmetic, comparison and logic, and the identities.

A primitive of real numbers is asked at every edge of its dtype and at random numbers in one
harness; of float8 at every number there is. Complex numbers have a harness each for ordinary
numbers, for zeros, infinities and branch cuts ("edge"), and for numbers with a NaN part ("nan"),
because the latter two are where libraries differ.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import primitives

from harnesses.harness import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT8,
    FLOATS,
    INT4,
    INTEGERS,
    INTS,
    Arg,
    Normal,
    Values,
    define,
    edge_values,
    is_complex,
    is_float,
)

Function = Callable[..., Any]
Dtypes = Sequence[np.dtype]

REAL_FLOATS = FLOATS + FLOAT8
ANALYTIC = REAL_FLOATS + COMPLEX
WHOLE = INTEGERS + INT4
ANY_NUMBER = ANALYTIC + WHOLE
COMPARABLE = REAL_FLOATS + WHOLE + BOOL

_rng = np.random.default_rng(0)
_NUMBERS = _rng.standard_normal(48) * np.exp2(_rng.integers(-4, 5, 48))
_OTHERS = _rng.permutation(_NUMBERS[::-1])


# Arguments.


def _carried(dtype: np.dtype, function: Function) -> Function:
    """`function` on `dtype`, for arguments and results that a tensor can hold in compiled code."""
    if dtype not in INT4:
        return function

    def leave(x: Any) -> Any:
        return lax.convert_element_type(x, np.int8) if x.dtype == dtype else x

    def with_int8(*args: Any) -> Any:
        # XLA's CPU backend does not wrap a 4-bit integer inside of a fusion, hence the barriers.
        args = lax.optimization_barrier([lax.convert_element_type(x, dtype) for x in args])
        return jax.tree.map(leave, lax.optimization_barrier(function(*args)))

    return with_int8


def _values(values: np.ndarray, dtype: np.dtype) -> Values:
    return Values(values.astype(dtype), np.int8 if dtype in INT4 else dtype)


def _numbers(dtype: np.dtype, subnormal: bool = True) -> np.ndarray:
    """The numbers at which a real function of one number is asked."""
    if dtype in FLOAT8:
        return np.arange(256, dtype=np.uint8).view(dtype)
    edges = edge_values(dtype)
    if not is_float(dtype):
        return edges
    if not subnormal:
        edges = _without_subnormals(edges)
    return np.concatenate([edges, _NUMBERS.astype(dtype)])


def _pairs(dtype: np.dtype, subnormal: bool = True) -> list[Values]:
    """Two arguments: every edge with every other, and random pairs."""
    edges = edge_values(dtype) if subnormal else _without_subnormals(edge_values(dtype))
    left, right = np.repeat(edges, edges.size), np.tile(edges, edges.size)
    if is_float(dtype):
        left = np.concatenate([left, _NUMBERS.astype(dtype)])
        right = np.concatenate([right, _OTHERS.astype(dtype)])
    return [_values(left, dtype), _values(right, dtype)]


def _small(shape: tuple[int, ...], dtype: np.dtype) -> Arg:
    return Normal(shape, np.int8) if dtype in INT4 else Normal(shape, dtype)


def _without_subnormals(values: np.ndarray) -> np.ndarray:
    smallest = float(jnp.finfo(values.dtype).smallest_normal)
    magnitude = np.abs(values.astype(np.float64))
    return values[~((magnitude > 0) & (magnitude < smallest))]


def _complex_cases(dtype: np.dtype) -> Mapping[str, np.ndarray]:
    """Numbers of the cases "", "edge" and "nan"."""
    edges = edge_values(dtype)
    nan = np.isnan(edges.real) | np.isnan(edges.imag)
    numbers = {"": (_NUMBERS + 1j * _OTHERS).astype(dtype)}
    # The edges are those of the algorithm, not of the precision: one dtype tells.
    return numbers | ({"edge": edges[~nan], "nan": edges[nan]} if dtype == np.complex64 else {})


def _complex_pairs(dtype: np.dtype) -> Mapping[str, list[Values]]:
    cases = _complex_cases(dtype)
    numbers = cases.pop("")
    pairs = {"": (numbers, numbers[::-1])}
    if cases:
        finite, nan = cases["edge"], cases["nan"]
        pairs["edge"] = np.repeat(finite, finite.size), np.tile(finite, finite.size)
        pairs["nan"] = (
            np.concatenate([np.repeat(nan, finite.size), np.tile(finite, nan.size)]),
            np.concatenate([np.tile(finite, nan.size), np.repeat(nan, finite.size)]),
        )
    return {
        case: [Values(left, dtype), Values(right, dtype)] for case, (left, right) in pairs.items()
    }


# Where results of a dtype may differ by more than is usual.
_FEW_FLOAT8 = {dtype.name: 1 for dtype in FLOAT8}
_ULPS: Mapping[str, Mapping[str, int]] = {
    # XLA composes these of several functions, and rounds to float8 after each.
    **dict.fromkeys(("acos", "acosh", "asin", "atanh"), _FEW_FLOAT8),
    # XLA takes exp(x - log 2), whose error grows with x; TensorFlow the C library's function.
    "cosh": {"float32": 8, "float64": 12, "complex64": 8, "complex128": 12},
    "sinh": {"float32": 8, "float64": 12, "complex64": 16, "complex128": 20},
    "cos": {"complex64": 8, "complex128": 12},
    "sin": {"complex64": 8, "complex128": 12},
    "tanh": {"complex64": 4, "complex128": 8},
    # Near zeros of the real part.
    "log": {"complex64": 10, "complex128": 6},
    "log2": {"complex64": 6, "complex128": 4},
    "log1p": {"complex64": 24, "complex128": 16},
    "logistic": {"bfloat16": 2, "float16": 1, "float32": 6, "complex64": 12, "complex128": 8},
    "integer_pow": {"complex64": 6, "complex128": 4},
    # The error of the angle, which the exponent multiplies.
    "pow": {"complex64": 64, "complex128": 64},
    "polynomial": {"float16": 2, "bfloat16": 2},
}


# Harnesses of one and of two arguments.


def _unary(
    primitive: str,
    function: Function,
    dtypes: Dtypes,
    case: str = "",
    **rest: Any,
) -> None:
    for dtype in dtypes:
        stated = _ULPS.get(primitive, {}).get(dtype.name)
        if is_complex(dtype):
            for part, values in _complex_cases(dtype).items():
                name = "_".join(filter(None, (case, part)))
                args = [Values(values, dtype)]
                define(primitive, name, function, args, dtype=dtype, ulps=stated, **rest)
            continue
        subnormal = primitive not in _DIFFER_AT_SUBNORMALS or dtype in FLOAT8
        args = [_values(_numbers(dtype, subnormal), dtype)]
        define(primitive, case, _carried(dtype, function), args, dtype=dtype, ulps=stated, **rest)


def _binary(
    primitive: str,
    function: Function,
    dtypes: Dtypes,
    case: str = "",
    **rest: Any,
) -> None:
    for dtype in dtypes:
        stated = _ULPS.get(primitive, {}).get(dtype.name)
        if is_complex(dtype):
            for part, args in _complex_pairs(dtype).items():
                name = "_".join(filter(None, (case, part)))
                define(primitive, name, function, args, dtype=dtype, ulps=stated, **rest)
            continue
        subnormal = primitive not in _DIFFER_AT_SUBNORMALS or dtype in FLOAT8
        args = _pairs(dtype, subnormal)
        define(primitive, case, _carried(dtype, function), args, dtype=dtype, ulps=stated, **rest)


# Where flushing a subnormal argument to zero changes more than the last place of the result.
_DIFFER_AT_SUBNORMALS = ("atan2", "cbrt", "pow")


_unary("abs", lax.abs, ANALYTIC + INTS)
_unary("neg", lax.neg, ANY_NUMBER)
_unary("sign", lax.sign, ANY_NUMBER)
_unary("square", lax.square, ANY_NUMBER)
for primitive, function in {
    "floor": lax.floor,
    "ceil": lax.ceil,
    "is_finite": lax.is_finite,
}.items():
    _unary(primitive, function, REAL_FLOATS)
for method in lax.RoundingMethod:
    _unary(
        "round",
        functools.partial(lax.round, rounding_method=method),
        REAL_FLOATS,
        method.name.lower(),
        params={"rounding_method": method.name},
    )

for name in (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1"),
    *("log", "log1p", "log2", "logistic", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh"),
):
    # JAX takes half a minute to compile asinh of any float8.
    dtypes = FLOATS + COMPLEX if name == "asinh" else ANALYTIC
    versions = ">=0.11" if name == "log2" else None
    _unary(name, lambda x, name=name: getattr(lax, name)(x), dtypes, jax_versions=versions)
_unary("cbrt", lax.cbrt, REAL_FLOATS)
_unary("one_minus_square", lambda x: lax.one_minus_square(x), ANY_NUMBER, jax_versions=">=0.11")

for exponent in (-3, -2, -1, 0, 1, 2, 3, 4, 7, 10):
    dtypes = ANALYTIC if exponent < 0 else ANY_NUMBER
    if exponent not in (-2, 2, 3, 7):
        dtypes = tuple(np.dtype(d) for d in ("float32", "bfloat16", "int32", "uint8", "complex64"))
        dtypes = tuple(d for d in dtypes if exponent >= 0 or (d.kind != "i" and d.kind != "u"))
    _unary(
        "integer_pow",
        functools.partial(lax.integer_pow, y=exponent),
        dtypes,
        f"minus_{-exponent}" if exponent < 0 else str(exponent),
        params={"y": exponent},
    )

_unary("not", lax.bitwise_not, WHOLE + BOOL)
_binary("mulhi", lax.mulhi, WHOLE)
_unary("population_count", lax.population_count, WHOLE)
_unary("clz", lax.clz, WHOLE)


_binary("add", lax.add, ANY_NUMBER)
_binary("sub", lax.sub, ANY_NUMBER)
_binary("mul", lax.mul, ANY_NUMBER)
_binary("div", lax.div, ANY_NUMBER)
_binary("rem", lax.rem, REAL_FLOATS + WHOLE)
# Of zeros of two signs, TensorFlow's kernels may take either.
_binary("max", lax.max, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
_binary("min", lax.min, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
_binary("atan2", lax.atan2, REAL_FLOATS)
_binary("pow", lax.pow, ANALYTIC)
_binary("nextafter", lax.nextafter, REAL_FLOATS)
_binary("eq", lax.eq, COMPARABLE + COMPLEX)
_binary("ne", lax.ne, COMPARABLE + COMPLEX)
for name in ("ge", "gt", "le", "lt"):
    _binary(name, getattr(lax, name), COMPARABLE)
for name in ("eq_to", "le_to", "lt_to"):
    _binary(name, getattr(primitives, f"{name}_p").bind, COMPARABLE)
for name in ("and", "or", "xor"):
    _binary(name, getattr(lax, f"bitwise_{name}"), WHOLE + BOOL)
for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    _binary(name, getattr(lax, name), WHOLE)
_binary("complex", lax.complex, FLOATS[2:])
_binary("add_any", lambda x, y: jax.vjp(lambda z: (z, z), x)[1]((x, y))[0], FLOATS + COMPLEX)


# Each half of a complex number, and what a real number becomes.
for name in ("real", "imag", "conj"):
    _unary(name, getattr(lax, name), COMPLEX + (FLOATS[2:] if name == "conj" else ()))


# Bounds of the operand's shape, crossed ones too; scalar ones; NaN in any place.


def _clamped(x: Any, y: Any) -> Any:
    return lax.clamp(y, x, y[::-1]), lax.clamp(x, y, x[::-1])


def _clamped_by_scalars(x: Any) -> Any:
    zero, one = (lax.full((), bound, x.dtype) for bound in (0, 1))
    return lax.clamp(zero, x, one), lax.clamp(one, x, zero)


_binary("clamp", _clamped, ANY_NUMBER + BOOL, tags=("any_zero_sign",))
_unary("clamp", _clamped_by_scalars, ANY_NUMBER + BOOL, "scalar_bounds", tags=("any_zero_sign",))


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
        _pairs(np.dtype(old)),
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
    args = _complex_pairs(dtype)[""]
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
            _carried(dtype, lambda x, *coefficients: lax.polynomial(x, coefficients)),
            [_small((6,), dtype), *(_small((), dtype) for _ in range(degree + 1))],
            dtype=dtype,
            ulps=_ULPS["polynomial"].get(dtype.name),
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


# Shapes: a scalar beside an array, no elements, no dimensions.

_UNARY_OF_MANY_OPS = {
    "cbrt": lax.cbrt,
    "clz": lax.clz,
    "exp2": lax.exp2,
    "logistic": lax.logistic,
    "neg": lax.neg,
    "nextafter": lambda x: lax.nextafter(x, x + 1),
    "population_count": lax.population_count,
    "round": lax.round,
    "sign": lax.sign,
    "tanh": lax.tanh,
}
for primitive, function in _UNARY_OF_MANY_OPS.items():
    dtype = "uint8" if primitive in ("clz", "population_count") else "bfloat16"
    for case, shape in {"empty": (0, 3), "scalar": ()}.items():
        define(primitive, case, function, [Normal(shape, dtype)], dtype=dtype)

_BINARY_OF = {
    "float32": ("add", "atan2", "div", "eq", "max", "min", "mul", "nextafter", "pow", "rem", "sub"),
    "int32": ("add", "div", "ge", "max", "rem", "shift_left", "shift_right_logical"),
    "uint8": ("div", "rem", "shift_right_arithmetic"),
    "complex64": ("add", "div", "eq", "max", "pow"),
    "bool": ("ge", "max"),
}
for dtype, names in _BINARY_OF.items():
    for name in names:
        scalar, array = Normal((), dtype), Normal((2, 3), dtype)
        for case, args in {
            "scalar_first": [scalar, array],
            "scalar_second": [array, scalar],
            "scalars": [scalar, scalar],
            "empty": [Normal((0, 3), dtype), Normal((0, 3), dtype)],
        }.items():
            ulps = _ULPS.get(name, {}).get(dtype)
            define(name, case, getattr(lax, name), args, dtype=dtype, ulps=ulps)


# A constant operand is known at conversion: what it rules out needs no care.


def _with_constant(name: str, constant: float, dtype: str, first: bool = False) -> None:
    def function(x: Any) -> Any:
        value = np.array(constant).astype(dtype)
        return getattr(lax, name)(*((value, x) if first else (x, value)))

    case = f"constant_{constant}".replace("-", "minus_").replace(".", "_")
    values = edge_values(dtype)
    define(
        name,
        f"{case}_first" if first else case,
        function,
        [Values(values, dtype)],
        dtype=dtype,
    )


for name, constants in {
    "div": (0, 1, 3, -1),
    "rem": (0, 1, 3, -1),
    "shift_left": (0, 4, 31, 32, 33, -1),
    "shift_right_arithmetic": (0, 4, 31, 32, 33, -1),
    "shift_right_logical": (0, 4, 31, 32, 33, -1),
}.items():
    for constant in constants:
        _with_constant(name, constant, "int32")
for name in ("max", "min"):
    for dtype in ("float32", "bfloat16"):
        for first in (False, True):
            for constant in (0.0, float("nan"), float("inf")):
                _with_constant(name, constant, dtype, first)


# Identities, which have to let every bit through.

_IDENTITIES = {
    "copy": jnp.copy,
    "device_put": lambda x: jax.jit(jax.device_put)(x),
    "name": lambda x: checkpoint_name(x, "a name"),
    "optimization_barrier": lambda x: lax.optimization_barrier((x, {"y": x[:2]})),
    "stop_gradient": lax.stop_gradient,
}
for primitive, function in _IDENTITIES.items():
    for dtype in ALL if primitive == "copy" else (np.dtype("float32"), np.dtype("int32")):
        values = [Values(edge_values(dtype), dtype)]
        define(primitive, "", function, values, dtype=dtype, ulps=0)
