"""Windows: reduce_window with any reducer, and what its derivatives select, scatter and gather."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives

from harnesses.harness import (
    BOOL,
    COMPLEX,
    FLOAT8,
    FLOATS,
    INT4,
    INTEGERS,
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
    infinite_numbers,
    is_float,
)
from harnesses.reductions import narrowed

family = Family("windows")

# Sums of a window may be taken in another order; XLA rounds those of narrow floats at each step.
ULPS = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 4, "complex64": 4, "complex128": 4}
ULPS |= {dtype.name: 2 for dtype in FLOAT8}
MAIN = [np.dtype(getattr(jnp, d)) for d in ("float32", "int32", "bfloat16")]
MONOIDS = {"sum": lax.add, "max": lax.max, "min": lax.min}


def _arg(shape: tuple[int, ...], dtype: Any) -> Arg:
    return Bools(shape) if np.dtype(dtype) == bool else Normal(shape, dtype)


def _distinct(shape: tuple[int, ...], dtype: Any) -> Values:
    """Numbers no two of which are equal: which of two equal ones is selected, XLA leaves open."""
    size = int(np.prod(shape))
    order = np.random.default_rng(size).permutation(size) - size // 2
    return Values(order.reshape(shape), dtype)


def _init(monoid: str, dtype: np.dtype) -> np.ndarray:
    """The initial value by which JAX knows the named form of the reduction."""
    if monoid == "sum":
        return np.zeros((), dtype)
    if dtype in BOOL:
        return np.array(monoid == "min")
    if dtype in (*FLOATS, *COMPLEX):
        return np.array(-np.inf if monoid == "max" else np.inf).astype(dtype)
    limits = jnp.finfo(dtype) if is_float(dtype) else jnp.iinfo(dtype)
    return np.array(limits.min if monoid == "max" else limits.max).astype(dtype)


def _reduce(
    reducer: Any,
    init: Any,
    dimensions: Any,
    strides: Any = None,
    padding: Any = "VALID",
    **more: Any,
) -> Callable[..., Any]:
    strides = strides or (1,) * len(dimensions)
    return lambda *xs: lax.reduce_window(
        xs[0] if len(xs) == 1 else xs, init, reducer, dimensions, strides, padding, **more
    )


# Operand shape, window, strides, padding, and dilations if any.
IMAGE = (2, 7, 8, 3)
WINDOWS: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "": (IMAGE, (1, 3, 3, 1), (1, 2, 2, 1), "SAME", {}),
    "valid": (IMAGE, (1, 2, 2, 1), (1, 2, 2, 1), "VALID", {}),
    "overlapping": (IMAGE, (1, 3, 2, 1), (1, 1, 1, 1), "VALID", {}),
    "same_lower": (IMAGE, (1, 2, 3, 1), (1, 2, 1, 1), "SAME_LOWER", {}),
    "channels_first": ((2, 3, 7, 8), (1, 1, 3, 2), (1, 1, 2, 1), "SAME", {}),
    "rank_1": ((13,), (7,), (2,), "SAME", {}),
    "sequence": ((2, 9, 3), (1, 3, 1), (1, 2, 1), "SAME", {}),
    "rank_5": ((2, 4, 5, 6, 3), (1, 2, 3, 2, 1), (1, 2, 1, 1, 1), "SAME", {}),
    "padding": (IMAGE, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 2), (0, 1), (0, 0)), {}),
    "padding_beyond": (
        (2, 4, 5, 3),
        (1, 2, 2, 1),
        (1, 2, 2, 1),
        ((0, 0), (4, 2), (3, 1), (0, 0)),
        {},
    ),
    "padding_negative": (IMAGE, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (-1, 2), (0, -1), (0, 0)), {}),
    "base_dilation": (
        (2, 4, 5, 3),
        (1, 2, 2, 1),
        (1, 2, 1, 1),
        ((0, 0), (1, 2), (3, 1), (0, 0)),
        {"base_dilation": (1, 2, 3, 1)},
    ),
    "window_dilation": (
        IMAGE,
        (1, 2, 3, 1),
        (1, 2, 1, 1),
        ((0, 0), (1, 2), (3, 1), (0, 0)),
        {"window_dilation": (1, 3, 2, 1)},
    ),
    "everything": (
        (4, 5, 3),
        (2, 2, 3),
        (1, 2, 1),
        ((2, 2), (1, 1), (0, 3)),
        {"base_dilation": (2, 1, 2), "window_dilation": (1, 2, 1)},
    ),
    "whole_axis": ((3, 11), (1, 11), (1, 1), "VALID", {}),
    "single": ((3, 4), (1, 1), (1, 1), "VALID", {}),
    "scalar": ((), (), (), (), {}),
    "window_too_large": ((3, 4), (1, 5), (1, 1), "VALID", {}),
    "empty": ((0, 4), (1, 2), (1, 1), "VALID", {}),
    "empty_padded": ((0, 4), (2, 2), (1, 1), ((2, 2), (0, 0)), {}),
}


@family.builder
def named_reductions() -> None:
    """Sums, maxima and minima of windows."""
    for name in MONOIDS:
        _every_window(name)
        _every_dtype(name)
        _extremes(name)


def _every_window(name: str) -> None:
    for case, (shape, *window, more) in WINDOWS.items():
        for dtype in MAIN:
            define(
                f"reduce_window_{name}",
                case,
                _reduce(MONOIDS[name], _init(name, dtype), *window, **more),
                [_arg(shape, dtype)],
                dtype=dtype,
                params=dict(zip(("dimensions", "strides", "padding"), window, strict=True)) | more,
                ulps=ULPS if name == "sum" else 0,
                scale="array",
            )


def _every_dtype(name: str) -> None:
    """Three windows of each dtype that `_every_window` leaves out; the 4-bit integers in one."""
    primitive = f"reduce_window_{name}"
    for dtype in (*REALS, *FLOAT8, *COMPLEX, *(() if name == "sum" else BOOL)):
        for case in ("", "padding", "everything"):
            if dtype in MAIN:
                continue
            shape, *window, more = WINDOWS[case]
            define(
                primitive,
                case,
                _reduce(MONOIDS[name], _init(name, dtype), *window, **more),
                [_arg(shape, dtype)],
                dtype=dtype,
                ulps=ULPS if name == "sum" else 0,
                scale="array",
            )
    for dtype in INT4:
        shape, *window, more = WINDOWS[""]
        reduce = _reduce(MONOIDS[name], _init(name, dtype), *window, **more)
        fun, args = narrowed(reduce, [_arg(shape, dtype)], dtype)
        define(primitive, "", fun, args, dtype=dtype)


def _extremes(name: str) -> None:
    for dtype in INTEGERS:
        extremes = [Integers((3, 9), dtype)]
        fun = _reduce(MONOIDS[name], _init(name, dtype), (2, 3), None, "SAME")
        define(f"reduce_window_{name}", "extremes", fun, extremes, dtype=dtype)


_ROWS = [
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    [np.nan, 1.0, -1.0, 2.0, np.inf, 0.0],
    [1.0, 2.0, np.nan, np.nan, 3.0, -2.0],
    [-np.inf, -np.inf, -np.inf, -np.inf, 1.0, 2.0],
    [np.inf, np.inf, np.inf, np.inf, 1.0, 2.0],
    [np.inf, -np.inf, 1.0, -np.inf, np.inf, 0.0],
]


@family.builder
def nan_and_infinity() -> None:
    """NaN spreads and infinity stays; a window of only the lowest value gives that value."""
    for name, monoid in MONOIDS.items():
        for dtype in FLOATS:
            for case, rows in (("nan", slice(1, 3)), ("infinity", slice(3, 6))):
                values = np.array(_ROWS[rows])[None, :, :, None]
                fun = _reduce(monoid, _init(name, dtype), (1, 1, 3, 1), None, "SAME")
                define(f"reduce_window_{name}", case, fun, [Values(values, dtype)], dtype=dtype)


@family.builder
def neighbouring_integers() -> None:
    """Wide integers that differ by little: as floats they would be equal."""
    for name in ("max", "min"):
        for dtype in WIDE_INTEGERS:
            numbers = close_integers(dtype).reshape(2, 8)
            fun = _reduce(MONOIDS[name], _init(name, dtype), (1, 2), None, "SAME")
            define(
                f"reduce_window_{name}", "neighbours", fun, [Values(numbers, dtype)], dtype=dtype
            )


@family.builder
def infinite_complex_numbers() -> None:
    """Complex numbers have an order, by the real part first."""
    for name in ("max", "min"):
        for dtype in COMPLEX:
            numbers = infinite_numbers(dtype).reshape(2, 8)
            fun = _reduce(MONOIDS[name], _init(name, dtype), (1, 2), None, "VALID")
            define(f"reduce_window_{name}", "infinity", fun, [Values(numbers, dtype)], dtype=dtype)


# Any reducer. XLA begins each window with the initial value, once, and leaves padding out.
REDUCERS: dict[str, tuple[Any, Any]] = {
    "mul": (lax.mul, 1),
    "mul_from_two": (lax.mul, 2),
    "add_from_ten": (lax.add, 10),
    "max_from_one": (lax.max, 1),
}


@family.builder
def any_reducer() -> None:
    """Reducers and initial values for which JAX has no named reduction."""
    for case, (reducer, init) in REDUCERS.items():
        for dtype in (*MAIN, *(np.dtype(d) for d in ("float64", "uint8", "int64", "float16"))):
            start = np.array(init).astype(dtype)
            for window, (shape, *sizes, more) in WINDOWS.items():
                if window in ("", "everything", "padding_beyond") and (dtype in MAIN or not window):
                    define(
                        "reduce_window",
                        "_".join(part for part in (case, window) if part),
                        _reduce(reducer, start, *sizes, **more),
                        [_arg(shape, dtype)],
                        dtype=dtype,
                        ulps=4,
                        scale="array",
                    )


@family.builder
def reducers_of_other_dtypes() -> None:
    """Bitwise reducers, and products of float8 and complex numbers."""
    for dtype in (*INTEGERS, *BOOL):
        for case, reducer, init in (("and", lax.bitwise_and, -1), ("or", lax.bitwise_or, 0)):
            start = (
                np.array(init).astype(dtype) if dtype.kind != "u" else np.array(0, dtype) + init % 2
            )
            fun = _reduce(reducer, start, (2, 3), (1, 2), "SAME")
            define("reduce_window", case, fun, [_arg((6, 9), dtype)], dtype=dtype)
    for dtype in (*FLOAT8, *COMPLEX):
        fun = _reduce(lax.mul, np.array(1).astype(dtype), (2, 3), (1, 2), "SAME")
        define(
            "reduce_window", "mul", fun, [_arg((6, 9), dtype)], dtype=dtype, ulps=8, scale="array"
        )


def _logsumexp(a: Any, b: Any) -> Any:
    return jnp.logaddexp(a, b)


def _argmax(a: Any, b: Any) -> Any:
    first = a[0] >= b[0]
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def _sum_and_product(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] * b[1]


@family.builder
def composed_reducers() -> None:
    """Reducers of several primitives, and of two operands at once."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        fun = _reduce(_logsumexp, np.array(-np.inf, dtype), (2, 3), (1, 2), "SAME")
        define("reduce_window", "logsumexp", fun, [_arg((6, 9), dtype)], dtype=dtype, ulps=4)
    for dtype in (np.dtype(np.float32), np.dtype(np.int32), np.dtype(jnp.bfloat16)):
        indices = Values(np.arange(54).reshape(6, 9), np.int32)
        for window, more in (
            ("", {}),
            ("dilated", {"base_dilation": (2, 1), "window_dilation": (1, 2)}),
            ("padded", {"padding": ((3, 1), (0, 4))}),
        ):
            settings = {"padding": "SAME", **more}
            for case, reducer, inits in (
                ("argmax", _argmax, (_init("max", dtype), np.int32(-1))),
                ("two", _sum_and_product, (np.zeros((), dtype), np.int32(1))),
            ):
                define(
                    "reduce_window",
                    "_".join(part for part in (case, window) if part),
                    _reduce(reducer, inits, (2, 3), (1, 2), **settings),
                    [_distinct((6, 9), dtype), indices],
                    dtype=dtype,
                    ulps=ULPS,
                    scale="array",
                )


# Derivatives of the largest and the smallest of a window. JAX has none with negative padding.
DERIVED = {
    case: WINDOWS[case]
    for case in (
        "",
        "valid",
        "overlapping",
        "channels_first",
        "rank_1",
        "padding",
    )
}


def _pooling(monoid: str, dtype: np.dtype, window: Any) -> Callable[..., Any]:
    return _reduce(MONOIDS[monoid], _init(monoid, dtype), *window)


@family.builder
def derivatives() -> None:
    """The derivatives of maxima and minima, in reverse and forward."""
    for monoid in ("max", "min"):
        _derivatives_of_windows(monoid)
        _derivatives_at_special_numbers(monoid)
        _derivatives_of_scalars(monoid)


def _transposed(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative in reverse, which JAX writes as select_and_scatter_add."""
    return lambda x, t: jax.vjp(fun, x)[1](t)[0]


def _tangent(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative in forward mode, which JAX writes as select_and_gather_add."""
    return lambda x, t: jax.jvp(fun, (x,), (t,))[1]


def _derivatives_of_windows(monoid: str) -> None:
    for case, (shape, *window, _) in DERIVED.items():
        for dtype in FLOATS:
            fun = _pooling(monoid, dtype, window)
            out = jax.eval_shape(fun, jax.ShapeDtypeStruct(shape, np.float32)).shape
            name = "_".join(part for part in (monoid, case) if part)
            operand = _distinct(shape, dtype)
            define(
                "select_and_scatter_add",
                name,
                _transposed(fun),
                [operand, _arg(out, dtype)],
                dtype=dtype,
                ulps=ULPS,
                scale="array",
            )
            define(
                "select_and_gather_add",
                name,
                _tangent(fun),
                [operand, _arg(shape, dtype)],
                dtype=dtype,
                ulps=0,
            )


def _derivatives_at_special_numbers(monoid: str) -> None:
    special = [1, np.nan, 3, 5, 2, -np.inf, -np.inf, -np.inf, np.inf, np.nan, 0]
    for dtype in FLOATS:
        fun = _pooling(monoid, dtype, ((3,), (1,), "SAME"))
        operand, other = Values(special, dtype), _arg((len(special),), dtype)
        for primitive, derivative in (
            ("select_and_scatter_add", _transposed(fun)),
            ("select_and_gather_add", _tangent(fun)),
        ):
            define(
                primitive,
                f"{monoid}_special",
                derivative,
                [operand, other],
                dtype=dtype,
                ulps=ULPS,
                scale="array",
            )
        define(
            "select_and_gather_add",
            f"{monoid}_edges",
            _tangent(fun),
            [Values([3, 1, 2, 7, 4, 9, 5, 6, 8], dtype), Values(np.roll(special[2:], 2), dtype)],
            dtype=dtype,
            ulps=0,
        )


def _derivatives_of_scalars(monoid: str) -> None:
    # In reverse, XLA ends the process.
    for dtype in FLOATS:
        fun = _pooling(monoid, dtype, ((), (), ()))
        for case, number in (("scalar", 2.5), ("scalar_nan", np.nan)):
            define(
                "select_and_gather_add",
                f"{monoid}_{case}",
                _tangent(fun),
                [Values(number, dtype), _arg((), dtype)],
                dtype=dtype,
                ulps=0,
            )


@family.builder
def gradient_of_a_sum() -> None:
    """The gradient of the squared sums of windows."""
    for dtype in (np.dtype(np.float32), np.dtype(jnp.bfloat16)):
        fun = _pooling("sum", dtype, ((1, 3, 3, 1), (1, 2, 2, 1), "SAME"))
        define(
            "reduce_window_sum",
            "gradient",
            jax.grad(lambda x, fun=fun: (fun(x) ** 2).sum()),
            [_arg(IMAGE, dtype)],
            dtype=dtype,
            ulps={"float32": 8, "bfloat16": 4},
            scale="array",
        )


def _select_and_scatter(select: Any, scatter: Any, init: Any, dtype: np.dtype) -> Any:
    """No public function has the general form: JAX's own rules bind it."""

    def fun(operand: jax.Array, source: jax.Array) -> Any:
        scalar = jax.ShapeDtypeStruct((), dtype)
        return primitives.select_and_scatter_p.bind(
            operand,
            source,
            jnp.array(init, dtype),
            select_jaxpr=jax.make_jaxpr(select)(scalar, scalar).jaxpr,
            select_consts=(),
            scatter_jaxpr=jax.make_jaxpr(scatter)(scalar, scalar).jaxpr,
            scatter_consts=(),
            window_dimensions=(2, 3),
            window_strides=(2, 1),
            padding=((0, 0), (1, 1)),
        )

    return fun


@family.builder
def select_and_scatter() -> None:
    """The general select_and_scatter, of several functions that select and scatter."""
    for dtype in (*FLOATS, *(np.dtype(d) for d in ("int32", "uint8", "int64"))):
        for case, select, scatter, init in (
            ("largest_add", lax.ge, lax.add, 0),
            ("smallest_mul", lax.le, lax.mul, 1),
            ("largest_max", lax.ge, lax.max, 0),
            ("first_add", lambda a, b: a == a, lax.add, 1),
        ):
            define(
                "select_and_scatter",
                case,
                _select_and_scatter(select, scatter, init, dtype),
                [_distinct((6, 7), dtype), _arg((3, 7), dtype)],
                dtype=dtype,
                ulps=ULPS,
                scale="array",
            )
