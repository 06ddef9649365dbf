"""Sorting: sort, top_k, approx_top_k."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOATS,
    INT4,
    REALS,
    WIDE_INTEGERS,
    Arg,
    Bools,
    Family,
    Integers,
    Normal,
    Values,
    close_integers,
    define,
    edge_values,
    is_integer,
)

family = Family("sorting")

SHAPE = (3, 6, 4)
MAIN = ("float32", "int32", "uint8", "bool", "bfloat16")


def _arg(shape: tuple[int, ...], dtype: np.dtype) -> Arg:
    if dtype.kind == "b":
        return Bools(shape)
    return Integers(shape, dtype) if is_integer(dtype) else Normal(shape, dtype)


def _few(shape: tuple[int, ...], dtype: np.dtype) -> Arg:
    """Values of which many are equal, so that it shows what else decides."""
    if dtype.kind == "b" or dtype.kind == "c":
        return _arg(shape, dtype) if dtype.kind == "b" else Values([1, 1j, 1, 1 + 1j], dtype, shape)
    return Integers(shape, dtype, 0, 3)


def _positions(shape: tuple[int, ...]) -> Values:
    return Values(np.arange(np.prod(shape), dtype=np.int32).reshape(shape), np.int32)


def _specials(dtype: np.dtype) -> Values:
    """Both zeros, infinities and NaNs of both signs, in no order."""
    numbers = [1, np.nan, -0.0, np.nan, 0.0, np.inf, -np.inf, np.nan, 2, 0.0, -0.0, -1]
    values = np.array(numbers).astype(dtype)
    bits = values.view(f"u{dtype.itemsize}")
    sign = bits.dtype.type(1 << (8 * dtype.itemsize - 1))
    bits[1] |= sign
    bits[[3, 7]] &= ~sign
    return Values(values, dtype)


def _sort(dimension: int, num_keys: int = 1, is_stable: bool = True) -> Callable[..., Any]:
    def fun(*operands: jax.Array) -> Any:
        if len(operands) == 1:
            return lax.sort(operands[0], dimension=dimension, is_stable=is_stable)
        return lax.sort(operands, dimension=dimension, num_keys=num_keys, is_stable=is_stable)

    return fun


def _top_k(k: int, axis: int = -1) -> Callable[..., Any]:
    return lambda x: lax.top_k(x, k, axis=axis)


@family.builder
def sorts_of_every_dtype() -> None:
    """Sorts by one key and by two, and of what other keys carry along."""
    for dtype in ALL:
        positions = _positions(SHAPE)
        define("sort", "", _sort(1), [_arg(SHAPE, dtype)], dtype=dtype)
        define("sort", "stable", _sort(1), [_few(SHAPE, dtype), positions], dtype=dtype)
        define(
            "sort",
            "two_keys",
            _sort(1, num_keys=2),
            [_few(SHAPE, dtype), _arg(SHAPE, dtype), positions],
            dtype=dtype,
            params={"num_keys": 2},
        )
        define("sort", "empty", _sort(0), [_arg((0, 3), dtype)], dtype=dtype)
        # As something that is carried along by other keys.
        define("sort", "carried", _sort(1), [_positions(SHAPE), _arg(SHAPE, dtype)], dtype=dtype)
        if dtype.name in MAIN:
            edges = edge_values(dtype)
            rest = [Values(np.roll(edges, place), dtype) for place in range(3)]
            keys = Values(np.arange(edges.size)[::-1], np.int32)
            define("sort", "carried_edges", _sort(0), [keys, *rest], dtype=dtype)
            for dimension in (0, 2):
                define(
                    "sort",
                    f"dimension{dimension}",
                    _sort(dimension),
                    [_arg(SHAPE, dtype)],
                    dtype=dtype,
                    params={"dimension": dimension},
                )
            define("sort", "one", _sort(0), [_arg((1, 2), dtype)], dtype=dtype)
            define("sort", "long", _sort(0), [_arg((500,), dtype)], dtype=dtype)
            define(
                "sort",
                "unstable",
                _sort(0, is_stable=False),
                [_arg((20,), dtype)],
                dtype=dtype,
                params={"is_stable": False},
            )


@family.builder
def special_floats() -> None:
    """Zeros, infinities and NaNs of both signs."""
    for dtype in FLOATS:
        define("sort", "specials", _sort(0), [_specials(dtype), _positions((12,))], dtype=dtype)
        define("top_k", "specials", _top_k(12), [_specials(dtype)], dtype=dtype)
        # Wherever the line falls between what is taken and what is not.
        define(
            "top_k",
            "some_specials",
            lambda x: [lax.top_k(x, k) for k in range(1, 9)],
            [Values([1, -0.0, np.inf, np.nan, 0.0, -np.inf, np.nan, -0.0, 0.0], dtype)],
            dtype=dtype,
        )


@family.builder
def neighbouring_integers() -> None:
    """Wide integers that differ by little: as floats they would be equal."""
    for dtype in WIDE_INTEGERS:
        close = Values(close_integers(dtype), dtype)
        define("sort", "neighbours", _sort(0), [close, _positions((16,))], dtype=dtype)
        define("top_k", "neighbours", _top_k(16), [close], dtype=dtype)
        define(
            "top_k",
            "some_neighbours",
            _top_k(2),
            [Values(close_integers(dtype).reshape(4, 4), dtype)],
            dtype=dtype,
        )


@family.builder
def special_complex_numbers() -> None:
    """Complex numbers of all pairs of zeros, infinities and NaN."""
    for dtype in COMPLEX:
        parts = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
        numbers = [complex(a, b) for a in parts for b in reversed(parts)]
        define(
            "sort", "specials", _sort(0), [Values(numbers, dtype), _positions((36,))], dtype=dtype
        )


@family.builder
def three_keys() -> None:
    """A sort by keys of three dtypes."""
    define(
        "sort",
        "three_keys",
        _sort(0, num_keys=3),
        [
            Integers((40,), np.int32, 0, 3),
            Values([0.0, -0.0, np.nan, 1.0, 1.0], np.float32, (40,)),
            Bools((40,)),
            _positions((40,)),
        ],
        dtype=np.float32,
        params={"num_keys": 3},
    )


@family.builder
def largest_elements() -> None:
    """top_k of every dtype: ties, axes, how many are taken."""
    for dtype in REALS + BOOL + FLOAT8:
        define("top_k", "", _top_k(3), [_arg(SHAPE, dtype)], dtype=dtype, params={"k": 3})
        define("top_k", "ties", _top_k(5), [_few((4, 9), dtype)], dtype=dtype)
        if dtype.name in MAIN:
            for axis in (0, 1):
                define(
                    "top_k",
                    f"axis{axis}",
                    _top_k(2, axis),
                    [_arg(SHAPE, dtype)],
                    dtype=dtype,
                    params={"axis": axis},
                )
            for k in (0, 1, 4):
                name = f"k{k}"
                define("top_k", name, _top_k(k), [_arg(SHAPE, dtype)], dtype=dtype, params={"k": k})
            define("top_k", "empty", _top_k(2), [_arg((0, 3), dtype)], dtype=dtype)
            define("top_k", "long", _top_k(7), [_arg((2, 300), dtype)], dtype=dtype)


@family.builder
def sorts_of_four_bits() -> None:
    """Sorts of the 4-bit integers and floats."""
    # Not int2 and uint2: XLA corrupts memory as it sorts them, in JAX alone too.
    for dtype in INT4 + FLOAT4:
        if dtype in INT4:
            # Cast inside: TensorFlow hands int4 to compiled code in another layout than XLA's.
            define(
                "sort",
                "",
                lambda x, dtype=dtype: lax.sort(x.astype(dtype)).astype(np.int8),
                [Integers(SHAPE, np.int8, -8, 8)],
                dtype=dtype,
            )
        else:
            define("sort", "", _sort(1), [Normal(SHAPE, dtype)], dtype=dtype)


def _start_in_scan(x: jax.Array) -> jax.Array:
    start = jnp.sort(x)[0].astype(int)
    return lax.scan(lambda c, y: (c + lax.dynamic_slice(x, (start,), (2,)), y), x[:2], x)[0]


def _start_in_cond(x: jax.Array) -> jax.Array:
    start = jnp.argsort(x)[0]
    return lax.cond(x[0] > x[1], lambda: lax.dynamic_slice(x, (start,), (2,)), lambda: x[:2])


@family.builder
def sorted_values_as_starts() -> None:
    """A loop or a branch that slices an array at a sorted value from outside."""
    numbers = np.array([3, 1, 2, 5, 4])
    for dtype in (np.float32, np.float64, np.int32):
        define("sort", "start_in_scan", _start_in_scan, [Values(numbers, dtype)], dtype=dtype)
        define("sort", "start_in_cond", _start_in_cond, [Values(numbers, dtype)], dtype=dtype)


def _approximate(function: Callable[..., Any], k: int, **params: Any) -> Callable[..., Any]:
    return lambda x: function(x, k, **params)


@family.builder
def approximately_largest_elements() -> None:
    """approx_max_k and approx_min_k."""
    # Of numbers without NaN: where JAX puts those here is another place in each of its versions.
    for name, function in (("max", lax.approx_max_k), ("min", lax.approx_min_k)):
        for dtype in FLOATS:
            numbers = Values(np.random.default_rng(0).permutation(60).reshape(3, 20) - 30, dtype)
            define("approx_top_k", name, _approximate(function, 4), [numbers], dtype=dtype)
            define(
                "approx_top_k",
                f"{name}_unaggregated",
                _approximate(function, 4, aggregate_to_topk=False),
                [numbers],
                dtype=dtype,
                params={"aggregate_to_topk": False},
            )
        define(
            "approx_top_k",
            f"{name}_dimension0",
            _approximate(function, 2, reduction_dimension=0),
            [Normal((9, 4), np.float32)],
            dtype=np.float32,
            params={"reduction_dimension": 0},
        )
        define(
            "approx_top_k",
            f"{name}_recall",
            _approximate(function, 5, recall_target=0.5),
            [Normal((2, 300), np.float32)],
            dtype=np.float32,
            params={"recall_target": 0.5},
        )
