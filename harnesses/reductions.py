"""Reductions over whole axes: sums, products, extremes, their indices, and `reduce` at large."""

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
    INTEGERS,
    NARROW,
    NUMERIC,
    REALS,
    Arg,
    Bools,
    Family,
    Integers,
    Normal,
    Uniform,
    Values,
    define,
    edge_values,
    infinite_numbers,
    is_float,
    is_integer,
)

family = Family("reductions")

SHAPE = (3, 4, 5)
AXES = {
    "first": (0,),
    "middle": (1,),
    "last": (2,),
    "outer": (0, 2),
    "inner": (1, 2),
    "all": (0, 1, 2),
    "none": (),
}
# Sums and products of narrow floats are rounded after each step by XLA, and once here.
SUM_ULPS = {"float32": 8, "float64": 8, "complex64": 10, "complex128": 10}
SUM_ULPS |= {"bfloat16": 3, "float16": 3} | {dtype.name: 4 for dtype in FLOAT8}


def _reducer(primitive: str, axes: tuple[int, ...]) -> Callable[..., Any]:
    return lambda x: getattr(lax, primitive)(x, axes=axes)


def _arg(shape: tuple[int, ...], dtype: Any) -> Arg:
    """Values none of which stands out: integers that overflow, floats whose product does not."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return Bools(shape)
    if is_integer(dtype):
        return Integers(shape, dtype)
    return Normal(shape, dtype)


def narrowed(
    fun: Callable[..., Any], args: list[Arg], dtype: np.dtype
) -> tuple[Callable[..., Any], list[Arg]]:
    """For an int4 dtype, `fun` and its arguments with int8 outside.

    TensorFlow hands int4 to compiled code in another layout than XLA reads there.
    """
    if dtype not in INT4:
        return fun, args

    def inside(*arrays: jax.Array) -> Any:
        results = fun(*(x.astype(dtype) for x in arrays))
        return jax.tree.map(lambda y: y.astype(np.int8) if y.dtype == dtype else y, results)

    return inside, [Integers(arg.shape, np.int8, -8, 8) for arg in args]


def _pairs(dtype: Any, without_largest: bool = False) -> Values:
    """Shape (2, n): every edge value above every other."""
    edges = edge_values(dtype)
    if is_float(dtype):
        # Zeros have a case of their own; processors may take subnormals for zeros.
        limits = jnp.finfo(dtype)
        # NumPy 2.4 complains of a NaN in a comparison of bfloat16.
        with np.errstate(invalid="ignore"):
            tiny = np.abs(edges) < limits.smallest_normal
        edges = edges[~tiny | ((edges == 0) & ~np.signbit(edges))]
        if without_largest:
            edges = edges[np.abs(edges) != limits.max]
    rows, columns = np.meshgrid(np.arange(edges.size), np.arange(edges.size), indexing="ij")
    return Values(edges[np.stack([rows.ravel(), columns.ravel()])], dtype)


def _define(primitive: str, dtype: np.dtype, everywhere: bool, **settings: Any) -> None:
    """The cases that every reduction has; those about axes for a few dtypes only."""
    if dtype in NARROW:
        fun, args = narrowed(_reducer(primitive, (0, 2)), [_arg(SHAPE, dtype)], dtype)
        define(primitive, "", fun, args, dtype=dtype, **settings)
        return

    def case(name: str, axes: tuple[int, ...], arg: Arg) -> None:
        fun = _reducer(primitive, axes)
        params = {"axes": axes}
        define(primitive, name, fun, [arg], dtype=dtype, params=params, **settings)

    case("", (0, 2), _arg(SHAPE, dtype))
    case("empty", (0,), _arg((0, 3), dtype))
    if everywhere:
        for name, axes in AXES.items():
            if name != "outer":
                case(name, axes, _arg(SHAPE, dtype))
        case("scalar", (), _arg((), dtype))
        case("one", (0,), _arg((1, 3), dtype))
        case("empty_result", (1,), _arg((0, 3), dtype))
        case("empty_scalar", (0, 1), _arg((2, 0), dtype))
        case("long", (1,), _arg((2, 1000), dtype))


MAIN = ("float32", "int32", "bool", "complex64", "bfloat16", "uint8")


@family.builder
def sums_and_products() -> None:
    """Sums and products of numbers of every dtype, over each choice of axes for some."""
    for primitive in ("reduce_sum", "reduce_prod"):
        for dtype in NUMERIC + FLOAT8 + NARROW:
            _define(primitive, dtype, dtype.name in MAIN, ulps=SUM_ULPS, scale="array")
        for dtype in FLOATS + COMPLEX:
            define(
                primitive,
                "edges",
                _reducer(primitive, (0,)),
                [_pairs(dtype)],
                dtype=dtype,
                ulps=1,
            )


@family.builder
def maxima_and_minima() -> None:
    """Maxima and minima of every dtype; of edge values, infinities, ties, NaN and zeros."""
    for primitive in ("reduce_max", "reduce_min"):
        for dtype in ALL + NARROW:
            _define(primitive, dtype, dtype.name in MAIN, ulps=0)
        for dtype in REALS + FLOAT8:
            define(
                primitive, "edges", _reducer(primitive, (0,)), [_pairs(dtype)], dtype=dtype, ulps=0
            )
        _extremes_of_complex_numbers(primitive)
        _extremes_of_nan_and_zeros(primitive)


def _extremes_of_complex_numbers(primitive: str) -> None:
    for dtype in COMPLEX:
        numbers = infinite_numbers(dtype).reshape(4, 4)
        infinite = Values(np.stack([numbers, np.roll(numbers, 3)]), dtype)
        define(primitive, "infinity", _reducer(primitive, (0,)), [infinite], dtype=dtype, ulps=0)
        # Equal real parts: the imaginary ones decide.
        define(
            primitive,
            "ties",
            _reducer(primitive, (0,)),
            [Values([[1 + 2j, -1 + 2j, 3], [1 - 2j, -1 + 3j, 2], [1 + 1j, -2 + 9j, 3j]], dtype)],
            dtype=dtype,
            ulps=0,
        )


def _extremes_of_nan_and_zeros(primitive: str) -> None:
    for dtype in FLOATS:
        # Not larger: XLA's CPU backend loses NaNs where it reduces rows of 64.
        nans = np.ones((8, 8))
        np.fill_diagonal(nans, np.nan)
        define(
            primitive, "nan", _reducer(primitive, (1,)), [Values(nans, dtype)], dtype=dtype, ulps=0
        )
    for dtype in FLOATS[2:]:
        define(
            primitive,
            "zeros",
            _reducer(primitive, (1,)),
            [Values([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]], dtype)],
            dtype=dtype,
            ulps=0,
        )


@family.builder
def bitwise_reductions() -> None:
    """Bitwise reductions of integers and bools."""
    for primitive in ("reduce_and", "reduce_or", "reduce_xor"):
        for dtype in INTEGERS + BOOL:
            _define(primitive, dtype, dtype.name in MAIN)
        # Of many numbers all bits are set, or none.
        for dtype in INTEGERS:
            define(primitive, "edges", _reducer(primitive, (0,)), [_pairs(dtype)], dtype=dtype)


def _index(primitive: str, axis: int, index_dtype: Any) -> Callable[..., Any]:
    return lambda x: getattr(lax, primitive)(x, axis, index_dtype)


@family.builder
def indices_of_extremes() -> None:
    """The indices of maxima and minima: of every dtype, of edge values, along each axis."""
    for primitive in ("argmax", "argmin"):
        _indices_in_narrow_dtypes(primitive)
        _indices_in_every_dtype(primitive)
        _indices_of_zeros_and_nan(primitive)
        _indices_of_infinities(primitive)
        _axes_and_dtypes_of_indices(primitive)


def _indices_in_narrow_dtypes(primitive: str) -> None:
    # Not of int2 and uint2: XLA cannot compile them, in JAX either.
    for dtype in INT4 + FLOAT4:
        fun, args = narrowed(_index(primitive, 1, np.int32), [_arg(SHAPE, dtype)], dtype)
        define(primitive, "", fun, args, dtype=dtype)


def _indices_in_every_dtype(primitive: str) -> None:
    for dtype in REALS + BOOL + FLOAT8:
        define(primitive, "", _index(primitive, 1, np.int32), [_arg(SHAPE, dtype)], dtype=dtype)
        define(
            primitive,
            "ties",
            _index(primitive, 0, np.int32),
            [Values([[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0]], dtype)],
            dtype=dtype,
        )
        if dtype.kind != "b":
            define(
                primitive,
                "edges",
                _index(primitive, 0, np.int32),
                [_pairs(dtype, without_largest=dtype in FLOATS)],
                dtype=dtype,
            )


def _indices_of_zeros_and_nan(primitive: str) -> None:
    nans = [
        [1, np.nan, np.inf, np.nan, -np.inf, 2, 0, 4],
        [np.nan, 1, 2, 3, 4, 5, 6, 7],
        [np.inf, -np.inf, 1, 0, 3, 4, 5, np.nan],
    ]
    for dtype in FLOATS:
        define(
            primitive,
            "zeros",
            _index(primitive, 1, np.int32),
            [Values([[0.0, -0.0], [-0.0, 0.0]], dtype)],
            dtype=dtype,
        )
        # The first NaN wins, before infinities and other NaNs.
        define(primitive, "nan", _index(primitive, 1, np.int32), [Values(nans, dtype)], dtype=dtype)


def _indices_of_infinities(primitive: str) -> None:
    largest = float(np.finfo(np.float32).max)
    define(
        primitive,
        "infinity_first",
        _index(primitive, 1, np.int32),
        [Values([[-np.inf, -largest], [np.inf, largest]], np.float32)],
        dtype=np.float32,
    )


def _axes_and_dtypes_of_indices(primitive: str) -> None:
    for axis in range(3):
        define(
            primitive,
            f"axis{axis}",
            _index(primitive, axis, np.int32),
            [Normal(SHAPE, np.float32)],
            dtype=np.float32,
            params={"axes": (axis,)},
        )
    for index_dtype in INTEGERS:
        define(
            primitive,
            f"index_{index_dtype.name}",
            _index(primitive, 1, index_dtype),
            [Normal((2, 100), np.float32)],
            dtype=np.float32,
            params={"index_dtype": index_dtype.name},
            x64=index_dtype.itemsize == 8,
        )
    define(
        primitive,
        "empty_result",
        _index(primitive, 1, np.int32),
        [Normal((0, 3), np.float32)],
        dtype=np.float32,
    )


# `reduce`: any computation.

Pair = tuple[Any, Any]


def _best(a: Pair, b: Pair) -> Pair:
    """The larger value and its label; of equals, the smaller label."""
    first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def _affine(a: Pair, b: Pair) -> Pair:
    """x -> a0 x + a1, then x -> b0 x + b1: associative, and not commutative."""
    return a[0] * b[0], a[1] * b[0] + b[1]


def _extremes(a: Pair, b: Pair) -> Pair:
    return lax.max(a[0], b[0]), lax.min(a[1], b[1])


def _reduce(
    inits: tuple[Any, ...], computation: Callable[..., Any], dimensions: tuple[int, ...]
) -> Callable[..., Any]:
    def fun(*operands: jax.Array) -> Any:
        values = tuple(jnp.array(i, x.dtype) for i, x in zip(inits, operands, strict=True))
        if len(operands) == 1:
            return lax.reduce(operands[0], values[0], computation, dimensions)
        return lax.reduce(operands, values, computation, dimensions)

    return fun


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if is_float(dtype) else np.iinfo(dtype).min


@family.builder
def reductions_of_pairs() -> None:
    """`reduce` of two operands: the largest value with its label, and affine maps in a row."""
    for dtype in FLOATS + INTEGERS:
        label = Integers(SHAPE, np.int32, 0, 1000)
        define(
            "reduce",
            "argmax",
            _reduce((_lowest(dtype), 1000), _best, (0, 2)),
            [_arg(SHAPE, dtype), label],
            dtype=dtype,
        )
        define(
            "reduce",
            "affine",
            _reduce((1, 0), _affine, (0,)),
            [Uniform((7, 3), dtype, -2, 2)] * 2
            if is_float(dtype)
            else [Integers((7, 3), dtype), Integers((7, 3), dtype)],
            dtype=dtype,
            ulps={"bfloat16": 8, "float16": 8, "float32": 4, "float64": 4},
            scale="array",
        )


@family.builder
def reductions_of_narrow_pairs() -> None:
    """`reduce` of two operands of dtypes of eight bits and four."""
    for dtype in FLOAT8 + INT4:
        narrow = Integers((7, 3), dtype) if dtype in INT4 else Uniform((7, 3), dtype, -2, 2)
        for name, inits, computation in (
            ("pairwise", (1, 0), _affine),
            ("extremes", (0, 0), _extremes),
        ):
            fun, args = narrowed(_reduce(inits, computation, (0,)), [narrow] * 2, dtype)
            define("reduce", name, fun, args, dtype=dtype, ulps=8, scale="array")


@family.builder
def reductions_of_one_operand() -> None:
    """`reduce` of one operand: by `logaddexp`, from another initial value, of no elements."""
    for dtype in FLOATS + COMPLEX:
        define(
            "reduce",
            "logaddexp",
            _reduce((-np.inf,), jnp.logaddexp, (1,)),
            [Normal(SHAPE, dtype)],
            dtype=dtype,
            scale="array",
        )
    for dtype in NUMERIC:
        define(
            "reduce",
            "init",
            _reduce((3,), lax.add, (1,)),
            [_arg(SHAPE, dtype)],
            dtype=dtype,
            ulps=SUM_ULPS,
            scale="array",
            tags=("ordered",),  # a GPU adds the 3 once for each part into which it cuts the sum
        )
        define(
            "reduce",
            "empty",
            _reduce((3,), lax.mul, (0,)),
            [_arg((0, 4), dtype)],
            dtype=dtype,
            ulps=0,
        )


@family.builder
def dimensions_of_reduce() -> None:
    """`reduce` of two operands over each choice of axes."""
    for name, dimensions in AXES.items():
        define(
            "reduce",
            name,
            _reduce((0, 1), lambda a, b: (a[0] + b[0], a[1] * b[1]), dimensions),
            [Normal(SHAPE, np.float32), Uniform(SHAPE, np.float32, 0.5, 1.5)],
            dtype=np.float32,
            params={"dimensions": dimensions},
            ulps=8,
            scale="array",
        )


@family.builder
def unusual_computations() -> None:
    """`reduce` of three operands, with a constant in its computation, and of bools."""
    define(
        "reduce",
        "three_operands",
        _reduce(
            (0, -np.inf, True),
            lambda a, b: (a[0] + b[0], lax.max(a[1], b[1]), a[2] & b[2]),
            (0, 1),
        ),
        [Normal((4, 3), np.float32), Normal((4, 3), np.float32), Bools((4, 3))],
        dtype=np.float32,
        scale="array",
    )
    define(
        "reduce",
        "constant",
        _reduce((0.0,), lambda a, b: jnp.sqrt(a * a + b * b) * np.ones((), np.float32), (1,)),
        [Normal((3, 9), np.float32)],
        dtype=np.float32,
    )
    define(
        "reduce",
        "parity",
        _reduce((False,), lambda a, b: a ^ b, (1,)),
        [Bools((3, 9))],
        dtype=bool,
    )
