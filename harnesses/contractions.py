"""Contractions: dot_general and the functions over it, ragged_dot_general, scaled_dot,
scaled_matmul.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.harness import (
    ALL,
    COMPLEX,
    FLOATS,
    INT4,
    INTEGERS,
    Arg,
    Bools,
    Family,
    Integers,
    Normal,
    Uniform,
    Values,
    define,
)
from harnesses.reductions import narrowed

family = Family("contractions")

# ULPs of the largest element: sums are taken in another order, and rounded once where dtypes are
# narrow.
ULPS = {"bfloat16": 1, "float16": 1, "float32": 4, "float64": 4, "complex64": 6, "complex128": 6}
ULPS |= {f"float8_{name}": 1 for name in ("e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
# Dtypes that stand for their kind where the shapes of operands matter.
MAIN = [np.dtype(getattr(jnp, d)) for d in ("float32", "int32", "bfloat16", "complex64", "bool")]
# The floats whose sums are kept in float32.
HALVES = [np.dtype(getattr(jnp, d)) for d in ("bfloat16", "float16")]


def _arg(shape: tuple[int, ...], dtype: Any) -> Arg:
    return Bools(shape) if np.dtype(dtype) == bool else Normal(shape, dtype)


def _define(
    primitive: str, case: str, fun: Callable[..., Any], args: list[Arg], dtype: Any, **more: Any
) -> None:
    define(primitive, case, fun, args, dtype=dtype, **{"ulps": ULPS, "scale": "array"} | more)


def _dot(dimension_numbers: Any = (((1,), (0,)), ((), ())), **params: Any) -> Callable[..., Any]:
    return lambda lhs, rhs: lax.dot_general(lhs, rhs, dimension_numbers, **params)


@family.builder
def dot_general_on_every_dtype() -> None:
    """`dot_general` of two matrices of every dtype."""
    for dtype in ALL:
        _define("dot_general", "", _dot(), [_arg((5, 20), dtype), _arg((20, 6), dtype)], dtype)
    for dtype in INT4:
        # No sum overflows: XLA's CPU backend casts such a one to int8 without wrapping it first.
        fun, _ = narrowed(_dot(), [], dtype)
        small = [Integers((5, 4), np.int8, 0, 2), Integers((4, 6), np.int8, 0, 2)]
        _define("dot_general", "", fun, small, dtype)


@family.builder
def sums_of_many_terms() -> None:
    """Sums of many terms of one sign, which lose digits unless they are kept in a wider dtype."""
    for dtype in HALVES:
        terms = [Uniform((64, 800), dtype), Uniform((800, 64), dtype)]
        _define("dot_general", "many_terms", _dot(), terms, dtype)


@family.builder
def products_with_numbers() -> None:
    """Numbers before and behind a product of matrices, which engines fuse with it."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        for case, scaled in {
            "scaled": lambda x, y: (x @ y) * 0.1,
            "of_scaled": lambda x, y: (x * 0.1) @ y,
            "divided": lambda x, y: (x @ y) / 3,
        }.items():
            _define(
                "dot_general", case, scaled, [_arg((5, 20), dtype), _arg((20, 6), dtype)], dtype
            )


@family.builder
def sums_that_overflow() -> None:
    """Sums of integers that overflow."""
    for dtype in INTEGERS:
        whole = [Integers((3, 9), dtype), Integers((9, 2), dtype)]
        _define("dot_general", "overflow", _dot(), whole, dtype)


# What the dimensions of the operands are, as in einsum.
LAYOUTS = {
    "transposed_rhs": "ik,jk->ij",
    "transposed_lhs": "ki,kj->ij",
    "transposed_both": "ki,jk->ij",
    "vectors": "k,k->",
    "matrix_vector": "ik,k->i",
    "vector_matrix": "k,kj->j",
    "dense": "bik,kj->bij",
    "dense_rank_4": "abik,kj->abij",
    "dense_split": "bik,kjh->bijh",
    "dense_merge": "bihk,hkj->bij",
    "weights_first": "ki,bjk->ibj",
    "two_contracting": "ihk,hkj->ij",
    "two_contracting_crossed": "ihk,khj->ij",
    "two_contracting_first": "hki,jhk->ij",
    "attention_scores": "bthd,bshd->bhts",
    "attention_values": "bhts,bshd->bhtd",
    "batch": "bik,bkj->bij",
    "batch_last": "ikb,kjb->bij",
    "batch_crossed": "abik,bakj->abij",
    "batch_reversed": "abik,abkj->baij",
    "batch_vectors": "bk,bk->b",
    "batch_alone": "ab,ab->ab",
    "batch_alone_reversed": "ab,ab->ba",
    "outer": "i,j->ij",
    "outer_rank_2": "hi,jk->hijk",
    "outer_batch": "bhi,bj->bhij",
    "outer_batch_last": "hib,jb->bhij",
    "scalars": ",->",
    "scalar_lhs": ",j->j",
    "scalar_rhs": "i,->i",
}
_SIZES = {"a": 2, "b": 3, "h": 2, "i": 4, "j": 5, "k": 6, "t": 4, "s": 5, "d": 3}


def _layout(equation: str) -> tuple[Any, list[tuple[int, ...]]]:
    """dot_general's dimension numbers for an equation, and shapes for it."""
    (lhs, rhs), out = equation.split("->")[0].split(","), equation.split("->")[1]
    batch = [d for d in out if d in lhs and d in rhs]
    contracting = [d for d in lhs if d in rhs and d not in out]
    numbers = tuple(
        (tuple(lhs.index(d) for d in dims), tuple(rhs.index(d) for d in dims))
        for dims in (contracting, batch)
    )
    return numbers, [tuple(_SIZES[d] for d in operand) for operand in (lhs, rhs)]


@family.builder
def layouts_of_dot_general() -> None:
    """Operands whose dimensions stand in each order."""
    for case, equation in LAYOUTS.items():
        numbers, (lhs, rhs) = _layout(equation)
        for dtype in MAIN:
            _define(
                "dot_general",
                case,
                _dot(numbers),
                [_arg(lhs, dtype), _arg(rhs, dtype)],
                dtype,
                params={"dimension_numbers": numbers},
            )


EMPTY = {
    "no_rows": ((0, 4), (4, 5)),
    "no_columns": ((3, 4), (4, 0)),
    "nothing_to_contract": ((3, 0), (0, 5)),
    "nothing": ((0, 0), (0, 0)),
}


@family.builder
def empty_operands_of_dot_general() -> None:
    """Operands without elements."""
    for case, (lhs, rhs) in EMPTY.items():
        for dtype in (*MAIN, np.dtype(jnp.float8_e4m3fn), np.dtype(np.uint8)):
            _define("dot_general", case, _dot(), [_arg(lhs, dtype), _arg(rhs, dtype)], dtype)
    for dtype in MAIN:
        numbers, args = _layout("bik,bkj->bij")[0], [_arg((0, 3, 4), dtype), _arg((0, 4, 5), dtype)]
        _define("dot_general", "no_batch", _dot(numbers), args, dtype)


# (operands' dtype, preferred_element_type): wider, of another kind, and narrower.
PREFERRED = [
    *(("int8", p) for p in ("int16", "int32", "float32", "bfloat16")),
    *(("uint8", p) for p in ("uint32", "int32", "float16")),
    *(("int16", p) for p in ("int32", "float32", "bfloat16")),
    *(("int32", p) for p in ("int64", "float32", "float64")),
    *(("uint32", p) for p in ("uint64", "int32")),
    *(("bool", p) for p in ("int32", "float32")),
    *(("bfloat16", p) for p in ("float32", "float64", "float16")),
    *(("float16", p) for p in ("float32", "float64", "bfloat16")),
    *(("float32", p) for p in ("float64", "bfloat16", "float16", "complex64", "int32")),
    ("float64", "float32"),
    *(("complex64", p) for p in ("complex128", "float32")),
    *(("float8_e4m3fn", p) for p in ("float32", "bfloat16", "float16")),
    *(("float8_e5m2", p) for p in ("float32", "float16")),
]


@family.builder
def preferred_element_types() -> None:
    """Results of another dtype than that of the operands."""
    for name, preferred in PREFERRED:
        dtype = np.dtype(getattr(jnp, name))
        _define(
            "dot_general",
            f"to_{preferred}",
            _dot(preferred_element_type=preferred),
            [_arg((5, 12), dtype), _arg((12, 6), dtype)],
            dtype,
            params={"preferred_element_type": preferred},
        )


MIXED = [
    ("bfloat16", "float32"),
    ("float32", "bfloat16"),
    ("float16", "bfloat16"),
    ("float16", "float32"),
    ("int8", "uint8"),
    ("int8", "int32"),
    ("int8", "float32"),
    ("float32", "int8"),
    ("int32", "bfloat16"),
    ("int32", "uint32"),
    ("bool", "float32"),
    ("bool", "int8"),
    ("float32", "complex64"),
    ("float64", "float32"),
    ("int64", "int32"),
    ("float8_e4m3fn", "bfloat16"),
    ("float8_e4m3fn", "float8_e5m2"),
]


@family.builder
def operands_of_two_dtypes() -> None:
    """`dot_general` of operands of two dtypes."""
    for left, right in MIXED:
        lhs, rhs = (np.dtype(getattr(jnp, name)) for name in (left, right))
        _define(
            "dot_general", f"with_{right}", _dot(), [_arg((5, 12), lhs), _arg((12, 6), rhs)], lhs
        )


PRECISIONS = {
    "default": lax.Precision.DEFAULT,
    "high": lax.Precision.HIGH,
    "highest": lax.Precision.HIGHEST,
    "mixed": (lax.Precision.HIGHEST, lax.Precision.DEFAULT),
}


@family.builder
def precisions_of_dot_general() -> None:
    """Each precision of `dot_general`."""
    for case, precision in PRECISIONS.items():
        for name in ("float32", "bfloat16", "float64", "complex64", "int32", "float8_e4m3fn"):
            dtype = np.dtype(getattr(jnp, name))
            _define(
                "dot_general",
                f"precision_{case}",
                _dot(precision=precision),
                [_arg((5, 12), dtype), _arg((12, 6), dtype)],
                dtype,
                params={"precision": case},
            )


# Not F32 and narrower algorithms of float64: their error is not float64's.
ALGORITHMS = {
    "DEFAULT": ("float32", "float16", "bfloat16", "int32", "complex64"),
    "F16_F16_F16": ("float32", "float16", "bfloat16"),
    "BF16_BF16_F32": ("float32", "bfloat16", "float16"),
    "BF16_BF16_F32_X3": ("float32", "bfloat16"),
    "BF16_BF16_F32_X6": ("float32", "float16"),
    "F32_F32_F32": ("float32", "bfloat16", "float16", "float8_e4m3fn"),
    "F64_F64_F64": ("float64", "float32", "bfloat16"),
}


@family.builder
def algorithms_of_dot_general() -> None:
    """Each algorithm that JAX has on a CPU."""
    for algorithm, names in ALGORITHMS.items():
        for name in names:
            dtype = np.dtype(getattr(jnp, name))
            # A result that was float16 has float16's error in any dtype.
            scale = 2**13 if algorithm == "F16_F16_F16" and name == "float32" else 1
            _define(
                "dot_general",
                algorithm,
                _dot(precision=lax.DotAlgorithmPreset[algorithm]),
                [_arg((5, 12), dtype), _arg((12, 6), dtype)],
                dtype,
                params={"precision": algorithm},
                ulps={n: u * scale for n, u in ULPS.items()},
                x64=algorithm == "F64_F64_F64",
            )


# A row and a column with each of the values that spread.
_EDGES = [[1.0, 2.0, np.inf], [-np.inf, 0.0, 3.0], [np.nan, 1.0, 1.0], [0.0, -0.0, 1.0]]


@family.builder
def elements_that_are_not_finite() -> None:
    """Infinities and NaNs in both operands, and sums that become infinite."""
    for dtype in FLOATS:
        edges = [Values(_EDGES, dtype), Values(np.transpose(_EDGES), dtype)]
        _define("dot_general", "not_finite", _dot(), edges, dtype)
        largest = float(jnp.finfo(dtype).max)
        overflowing = [Values([[largest, largest]], dtype), Values([[1.0], [1.0]], dtype)]
        _define("dot_general", "to_infinity", _dot(), overflowing, dtype)
    for dtype in COMPLEX:
        edges = [Values(_EDGES, dtype), Values(np.transpose(_EDGES), dtype)]
        _define("dot_general", "not_finite", _dot(), edges, dtype)
    for dtype in (np.float32, np.complex64):
        groups = Values(np.stack([np.transpose(_EDGES)] * 2), dtype)
        edges = [Values(_EDGES, dtype), groups, Values([1, 3], np.int32)]
        _define("ragged_dot_general", "not_finite", lax.ragged_dot, edges, dtype)


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "lax_dot": (lax.dot, [(3, 4), (4, 5)]),
    "lax_batch_matmul": (lax.batch_matmul, [(2, 3, 4), (2, 4, 5)]),
    "dot_rank_3": (jnp.dot, [(2, 3, 4), (5, 4, 6)]),
    "vdot": (jnp.vdot, [(3, 4), (3, 4)]),
    "inner": (jnp.inner, [(2, 4), (3, 4)]),
    "jnp_outer": (jnp.outer, [(3,), (4,)]),
    "matmul_broadcast": (jnp.matmul, [(2, 1, 3, 4), (5, 4, 6)]),
    "tensordot": (lambda a, b: jnp.tensordot(a, b, ((1, 2), (2, 0))), [(2, 3, 4), (4, 5, 3)]),
    "vecdot": (jnp.vecdot, [(3, 4), (3, 4)]),
    "matvec": (jnp.matvec, [(2, 3, 4), (2, 4)]),
    "vecmat": (jnp.vecmat, [(2, 4), (2, 4, 3)]),
    "kron": (jnp.kron, [(2, 3), (3, 2)]),
    "multi_dot": (lambda a, b: jnp.linalg.multi_dot([a, b, a]), [(2, 3), (3, 2)]),
    "matrix_power": (lambda a, b: jnp.linalg.matrix_power(a, 3) @ b, [(3, 3), (3, 2)]),
    "einsum": (lambda a, b: jnp.einsum("bij,bkj->bki", a, b), [(2, 3, 4), (2, 5, 4)]),
    "einsum_trace": (lambda a, b: jnp.einsum("iij,jk->k", a, b), [(3, 3, 4), (4, 2)]),
    "vmap": (jax.vmap(jnp.dot, (0, 1)), [(2, 3, 4), (4, 2, 5)]),
    "vmap_of_one": (jax.vmap(jnp.dot, (None, 0)), [(3, 4), (2, 4, 5)]),
}


@family.builder
def functions_over_dot_general() -> None:
    """The functions of jax.numpy and jax.lax that come down to `dot_general`."""
    for case, (fun, (lhs, rhs)) in FUNCTIONS.items():
        for name in ("float32", "int32", "complex64"):
            dtype = np.dtype(name)
            more = {"ulps": {n: 4 * u for n, u in ULPS.items()}}
            _define("dot_general", case, fun, [_arg(lhs, dtype), _arg(rhs, dtype)], dtype, **more)


@family.builder
def gradients_of_matrix_products() -> None:
    """The gradient of a product of two matrices."""
    for name in ("float32", "bfloat16"):
        dtype = np.dtype(getattr(jnp, name))
        _define(
            "dot_general",
            "gradient",
            jax.grad(lambda a, b: (a @ b).sum(), (0, 1)),
            [_arg((3, 4), dtype), _arg((4, 5), dtype)],
            dtype,
        )


# Ragged products: (dot's dimension numbers, ragged dimension, group dimensions), operand shapes,
# group sizes.
_TABLE = [[1, 2, 3], [0, 4, 2]]
RAGGED: dict[str, tuple[Any, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], Any]] = {
    "": ((((1,), (1,)), ((), ())), 0, (0,), (6, 4), (3, 4, 5), [1, 2, 3]),
    "rest": ((((1,), (1,)), ((), ())), 0, (0,), (6, 4), (3, 4, 5), [1, 0, 3]),
    "beyond": ((((1,), (1,)), ((), ())), 0, (0,), (6, 4), (3, 4, 5), [3, 2, 4]),
    "negative": ((((1,), (1,)), ((), ())), 0, (0,), (6, 4), (3, 4, 5), [-1, 3, 4]),
    "no_rows": ((((1,), (1,)), ((), ())), 0, (0,), (6, 4), (3, 4, 5), [0, 0, 0]),
    "group_last": ((((0,), (0,)), ((), ())), 1, (2,), (4, 6), (4, 5, 3), [1, 2, 3]),
    "batch": ((((2,), (2,)), ((0,), (1,))), 1, (0,), (2, 6, 4), (3, 2, 4, 5), _TABLE),
    "outer": ((((2,), (1,)), ((), ())), 1, (0,), (2, 6, 4), (3, 4, 5), _TABLE),
    "outer_broadcast": ((((2,), (1,)), ((), ())), 1, (0,), (2, 6, 4), (3, 4, 5), [1, 2, 3]),
    "contracting": ((((1,), (0,)), ((), ())), 1, (), (5, 6), (6, 4), [1, 2, 3]),
    "contracting_batch": ((((1,), (2,)), ((2,), (0,))), 1, (), (5, 6, 2), (2, 4, 6), _TABLE),
    "contracting_two": ((((1, 2), (0, 1)), ((), ())), 2, (), (5, 2, 6), (2, 6, 4), _TABLE),
    "contracting_crossed": ((((2, 1), (0, 1)), ((), ())), 1, (), (5, 6, 2), (2, 6, 4), _TABLE),
    "ragged_batch": ((((2,), (1,)), ((0,), (0,))), 0, (), (6, 5, 3), (6, 3, 4), [1, 2, 3]),
}


def _ragged(numbers: Any, ragged: int, groups: tuple[int, ...], **params: Any) -> Any:
    dimension_numbers = lax.RaggedDotDimensionNumbers(numbers, (ragged,), groups)
    return lambda *args: lax.ragged_dot_general(*args, dimension_numbers, **params)


@family.builder
def ragged_products() -> None:
    """Each kind of ragged product."""
    for case, (numbers, ragged, groups, lhs, rhs, sizes) in RAGGED.items():
        for name in ("float32", "int32", "bfloat16"):
            dtype = np.dtype(getattr(jnp, name))
            _define(
                "ragged_dot_general",
                case,
                _ragged(numbers, ragged, groups),
                [_arg(lhs, dtype), _arg(rhs, dtype), Values(sizes, np.int32)],
                dtype,
                params={"lhs_ragged_dimensions": (ragged,), "rhs_group_dimensions": groups},
            )


@family.builder
def ragged_products_of_other_dtypes() -> None:
    """Ragged products of the other dtypes, with sizes of groups of every integer dtype."""
    for dtype in ALL:
        if dtype.name not in ("float32", "int32", "bfloat16"):
            args = [_arg((6, 4), dtype), _arg((3, 4, 5), dtype), Values([1, 2, 3], np.int32)]
            _define("ragged_dot_general", "", lax.ragged_dot, args, dtype)
    for sizes_dtype in INTEGERS:
        args = [
            _arg((6, 4), np.float32),
            _arg((3, 4, 5), np.float32),
            Values([1, 2, 3], sizes_dtype),
        ]
        _define("ragged_dot_general", f"sizes_{sizes_dtype.name}", lax.ragged_dot, args, np.float32)


@family.builder
def params_of_ragged_products() -> None:
    """Ragged products with a preferred element type and with a precision."""
    for name, preferred in (("bfloat16", "float32"), ("int8", "int32"), ("float32", "bfloat16")):
        dtype = np.dtype(getattr(jnp, name))
        _define(
            "ragged_dot_general",
            f"to_{preferred}",
            _ragged((((1,), (1,)), ((), ())), 0, (0,), preferred_element_type=preferred),
            [_arg((6, 4), dtype), _arg((3, 4, 5), dtype), Values([1, 2, 3], np.int32)],
            dtype,
            params={"preferred_element_type": preferred},
        )
    _define(
        "ragged_dot_general",
        "precision_highest",
        _ragged((((1,), (1,)), ((), ())), 0, (0,), precision="highest"),
        [_arg((6, 4), np.float32), _arg((3, 4, 5), np.float32), Values([1, 2, 3], np.int32)],
        np.float32,
    )


# Scaled products: dtypes of operands and of scales, the result's dtype.
SCALED = [
    ("float8_e4m3fn", "bfloat16", None),
    ("float8_e5m2", "float32", "float32"),
    ("float32", "float32", "float32"),
    ("bfloat16", "bfloat16", None),
    ("float16", "float16", "float32"),
    ("int8", "float16", None),
]


@family.builder
def scaled_dots() -> None:
    """`scaled_dot`, with and without scales."""
    for name, scale_name, result in SCALED:
        dtype, scale_dtype = (np.dtype(getattr(jnp, n)) for n in (name, scale_name))
        for case, batch in (("", ()), ("batch", (2,))):
            _define(
                "scaled_dot",
                "_".join(part for part in (case, f"by_{scale_name}") if part),
                lambda a, b, s, t, result=result: lax.scaled_dot(
                    a, b, lhs_scale=s, rhs_scale=t, preferred_element_type=result
                ),
                [
                    _arg((*batch, 4, 16), dtype),
                    _arg((*batch, 16, 3), dtype),
                    _arg((*batch, 4, 2), scale_dtype),
                    _arg((*batch, 4, 3), scale_dtype),
                ],
                dtype,
            )
    not_finite = np.ones((4, 16))
    not_finite[:3, 5] = np.inf, -np.inf, np.nan
    _define(
        "scaled_dot",
        "not_finite",
        lambda a, b, s, t: lax.scaled_dot(a, b, lhs_scale=s, rhs_scale=t),
        [
            Values(not_finite, np.float32),
            Values(not_finite.T, np.float32),
            _arg((4, 2), np.float32),
            _arg((4, 4), np.float32),
        ],
        np.float32,
    )
    _define(
        "scaled_dot",
        "without_scales",
        lax.scaled_dot,
        [_arg((4, 16), jnp.bfloat16), _arg((16, 3), jnp.bfloat16)],
        jnp.bfloat16,
    )


@family.builder
def scaled_matmuls() -> None:
    """`scaled_matmul`, also by scales that are not finite."""
    for name, scale_name, result in SCALED[:4]:
        dtype, scale_dtype = (np.dtype(getattr(jnp, n)) for n in (name, scale_name))
        for case, batch, rows, scales in (
            ("", 2, (4, 3), [_arg((2, n, 2), scale_dtype) for n in (4, 3)]),
            ("_edges", 1, (6, 7), [
                Values([1, 2, np.inf, 1, -np.inf, 1, np.nan, 1, 0], scale_dtype, (1, 6, 2)),
                Values([1, 3, 1, np.inf, 1, np.nan, 2, -np.inf, 0], scale_dtype, (1, 7, 2)),
            ]),
        ):  # fmt: skip
            _define(
                "scaled_matmul_wrapper",
                f"by_{scale_name}{case}",
                lambda *args, result=result: jax.nn.scaled_matmul(*args, result or "bfloat16"),
                [*(_arg((batch, n, 16), dtype) for n in rows), *scales],
                dtype,
            )
