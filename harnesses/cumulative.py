"""Cumulative reductions: cumsum, cumprod, cummax, cummin, cumlogsumexp."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOATS,
    INT2,
    INT4,
    INTEGERS,
    NUMERIC,
    WIDE_INTEGERS,
    Arg,
    Family,
    Integers,
    Normal,
    Uniform,
    Values,
    close_integers,
    define,
    is_integer,
)

family = Family("cumulative")

PRIMITIVES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
EXACT = ("cummax", "cummin")

SHAPE = (3, 5, 4)
SPECIALS = np.array(
    [
        [1, np.nan, 2, 0.5],
        [np.nan, np.inf, -np.inf, 1],
        [1, np.inf, -np.inf, 2],
        [-np.inf, -np.inf, 1, 2],
        [np.inf, np.inf, 1, np.nan],
        [-np.inf, 3, np.inf, np.inf],
        [0.5, -2, -np.inf, -1],
    ]
)

# XLA adds and multiplies in a tree, and rounds narrow floats at each of its nodes.
ULPS = {
    "float32": 4,
    "float64": 4,
    "complex64": 6,
    "complex128": 6,
    "bfloat16": 2,
    "float16": 2,
} | {dtype.name: 3 for dtype in FLOAT8}


def _cumulative(primitive: str, axis: int, reverse: bool = False) -> Callable[..., Any]:
    return lambda x: getattr(lax, primitive)(x, axis, reverse=reverse)


def _arg(primitive: str, shape: tuple[int, ...], dtype: np.dtype) -> Arg:
    if is_integer(dtype):
        return Integers(shape, dtype)
    return Uniform(shape, dtype, 0.5, 1.5) if primitive == "cumprod" else Normal(shape, dtype)


@family.builder
def cumulative_reductions() -> None:
    """Each cumulative reduction: of every dtype, along each axis, and of special values."""
    for primitive in PRIMITIVES:
        _every_dtype(primitive)
        _lengths_and_axes(primitive)
        _long_arrays(primitive)
        _special_values(primitive)


def _case(
    primitive: str, name: str, arg: Arg, axis: int = 0, reverse: bool = False, factor: int = 1
) -> None:
    """One harness, whose tolerance is `factor` times that of `ULPS`."""
    define(
        primitive,
        name,
        _cumulative(primitive, axis, reverse),
        [arg],
        dtype=arg.dtype,
        params={"axis": axis, "reverse": reverse},
        ulps=0 if primitive in EXACT else {dtype: factor * n for dtype, n in ULPS.items()},
        scale="array",
    )


def _numbers(primitive: str) -> tuple[np.dtype, ...]:
    # The logarithm of a sum of integers is no integer.
    return FLOATS + COMPLEX if primitive == "cumlogsumexp" else NUMERIC


def _every_dtype(primitive: str) -> None:
    # Of the other float8 JAX makes NaNs: they have no infinity to begin from.
    narrow = FLOAT8 if primitive in ("cumsum", "cumprod") else FLOAT8[-2:-1]
    for dtype in _numbers(primitive) + narrow:
        arg = _arg(primitive, SHAPE, dtype)
        _case(primitive, "", arg, axis=1)
        _case(primitive, "reverse", arg, axis=1, reverse=True)


def _lengths_and_axes(primitive: str) -> None:
    for dtype in _numbers(primitive):
        _case(primitive, "empty", _arg(primitive, (0,), dtype))
        _case(primitive, "one", _arg(primitive, (1, 3), dtype))
        for axis in (0, 2):
            arg = _arg(primitive, SHAPE, dtype)
            _case(primitive, f"axis{axis}", arg, axis=axis)
            _case(primitive, f"axis{axis}_reverse", arg, axis=axis, reverse=True)


def _long_arrays(primitive: str) -> None:
    """Arrays that are long enough to tell a scan from windows that each start anew."""
    numbers = _numbers(primitive)
    for dtype in numbers[2:3] if primitive == "cumlogsumexp" else numbers:
        long = Integers((1000,), dtype) if is_integer(dtype) else Uniform((1000,), dtype, -1, 1)
        if primitive == "cumprod" and not is_integer(dtype):
            long = Uniform((1000,), dtype, 0.9, 1.1)
        _case(primitive, "long", long, factor=8)


def _special_values(primitive: str) -> None:
    for dtype in FLOATS:
        for reverse in (False, True):
            name = "specials_reverse" if reverse else "specials"
            _case(primitive, name, Values(SPECIALS, dtype), axis=1, reverse=reverse)
        if dtype != np.float16:
            # Its sums are taken in float32, where they do not overflow.
            largest = float(jnp.finfo(dtype).max)
            _case(primitive, "overflow", Values([largest, largest, -largest, 1], dtype))
        zeros = Values([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0]], dtype)
        _case(primitive, "zeros", zeros, axis=1)


# Two operands in each row: the product of three depends on the order, since an infinity times a
# number with two parts is partly NaN.
INFINITE_PARTS = np.array(
    [
        [1 + 1j, complex(np.inf, 2)],
        [2 - 1j, complex(1, -np.inf)],
        [0.5 + 1j, complex(-np.inf, 1)],
        [0.5 + 1j, complex(-np.inf, np.inf)],
    ]
)


@family.builder
def infinite_parts() -> None:
    """Complex numbers of which one part is infinite, or both."""
    for dtype in COMPLEX:
        for primitive in PRIMITIVES:
            for reverse in (False, True):
                name = "infinite_parts" + "_reverse" * reverse
                _case(primitive, name, Values(INFINITE_PARTS, dtype), axis=1, reverse=reverse)


@family.builder
def far_angles() -> None:
    """Logarithms of sums whose imaginary parts begin outside of (-pi, pi]."""
    for dtype in COMPLEX:
        for reverse in (False, True):
            name = "far_angles" + "_reverse" * reverse
            angles = Values([[1 + 4j, 2 - 9j, 0.5 + 7j], [-4j, 1 + 1j, 20j]], dtype)
            _case("cumlogsumexp", name, angles, axis=1, reverse=reverse)


@family.builder
def exact_narrow_floats() -> None:
    """Sums and products that float8 holds in any order, since elsewhere its rounding hides much."""
    operands = {"cumsum": [1, 1, -2, 1, 2, -1, 1], "cumprod": [1, 2, -0.5, -1, 2, 0.5, -2]}
    for primitive, operand in operands.items():
        for dtype in FLOAT8:
            define(
                primitive,
                "exact",
                _cumulative(primitive, 0),
                [Values(operand, dtype)],
                dtype=dtype,
                params={"axis": 0, "reverse": False},
                ulps=0,
            )


@family.builder
def cumulative_reductions_of_narrow_dtypes() -> None:
    """Cumulative reductions of dtypes of 4 and 2 bits."""
    for dtype in INT4 + INT2 + FLOAT4:
        for primitive in ("cumsum", "cumprod", "cummax", "cummin"):
            if dtype in INT4:
                # Cast inside: TensorFlow hands int4 to compiled code in another layout than XLA's.
                define(
                    primitive,
                    "",
                    lambda x, primitive=primitive, dtype=dtype: getattr(lax, primitive)(
                        x.astype(dtype), 1
                    ).astype(jnp.int8),
                    [Integers(SHAPE, np.int8, -8, 8)],
                    dtype=dtype,
                    ulps=0,
                )
            else:
                define(
                    primitive,
                    "",
                    _cumulative(primitive, 1),
                    [Normal(SHAPE, dtype)],
                    dtype=dtype,
                    ulps=0,
                )


@family.builder
def extreme_integers() -> None:
    """Integers at both ends of their dtype."""
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        for primitive in ("cumsum", "cumprod", "cummax", "cummin"):
            define(
                primitive,
                "extremes",
                _cumulative(primitive, 0),
                [Values([0, limits.max, limits.min, limits.max, 1, limits.min, limits.max], dtype)],
                dtype=dtype,
            )


@family.builder
def neighbouring_integers() -> None:
    """Integers of which a float of as many bits tells few apart."""
    for dtype in WIDE_INTEGERS:
        for primitive in ("cummax", "cummin"):
            for reverse in (False, True):
                define(
                    primitive,
                    "neighbours" + "_reversed" * reverse,
                    _cumulative(primitive, 1, reverse),
                    [Values(close_integers(dtype).reshape(2, 8), dtype)],
                    dtype=dtype,
                    params={"reverse": reverse},
                )
