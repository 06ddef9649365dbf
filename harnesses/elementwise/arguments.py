"""The numbers that elementwise functions are asked at."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from harnesses.harness import (
    BOOL,
    COMPLEX,
    FLOAT8,
    FLOATS,
    INT4,
    INTEGERS,
    Arg,
    Normal,
    Values,
    edge_values,
    is_float,
    without_subnormals,
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


def carried(dtype: np.dtype, function: Function) -> Function:
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


def values_of(values: np.ndarray, dtype: np.dtype) -> Values:
    """An argument of those values, of int8 where the dtype has 4 bits; see `carried`."""
    return Values(values.astype(dtype), np.int8 if dtype in INT4 else dtype)


def real_numbers(dtype: np.dtype, subnormal: bool = True) -> np.ndarray:
    """The numbers at which a real function of one number is asked."""
    if dtype in FLOAT8:
        return np.arange(256, dtype=np.uint8).view(dtype)
    edges = edge_values(dtype)
    if not is_float(dtype):
        return edges
    if not subnormal:
        edges = without_subnormals(edges)
    return np.concatenate([edges, _NUMBERS.astype(dtype)])


def real_pairs(dtype: np.dtype, subnormal: bool = True) -> list[Values]:
    """Two arguments: every edge with every other, and random pairs."""
    edges = edge_values(dtype) if subnormal else without_subnormals(edge_values(dtype))
    left, right = np.repeat(edges, edges.size), np.tile(edges, edges.size)
    if is_float(dtype):
        left = np.concatenate([left, _NUMBERS.astype(dtype)])
        right = np.concatenate([right, _OTHERS.astype(dtype)])
    return [values_of(left, dtype), values_of(right, dtype)]


def small(shape: tuple[int, ...], dtype: np.dtype) -> Arg:
    """An argument of normal values, of int8 where the dtype has 4 bits."""
    return Normal(shape, np.int8) if dtype in INT4 else Normal(shape, dtype)


def complex_cases(dtype: np.dtype) -> Mapping[str, np.ndarray]:
    """Numbers of the cases "", "edge" and "nan"."""
    edges = edge_values(dtype)
    nan = np.isnan(edges.real) | np.isnan(edges.imag)
    numbers = {"": (_NUMBERS + 1j * _OTHERS).astype(dtype)}
    # The edges are those of the algorithm, not of the precision: one dtype tells.
    return numbers | ({"edge": edges[~nan], "nan": edges[nan]} if dtype == np.complex64 else {})


def complex_pairs(dtype: np.dtype) -> Mapping[str, list[Values]]:
    """Two arguments of the cases of `complex_cases`."""
    cases = complex_cases(dtype)
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
