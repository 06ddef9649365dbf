"""Linear algebra: factorisations, eigenvalues, solves.

What is unique, or unique but for signs that LAPACK's conventions fix, is compared by value, in ULPs
of the largest element. Eigenvectors and singular vectors are not: they are held against what
defines them.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.lax import linalg

from harnesses.harness import COMPLEX, Arg, Family, Fill, Normal, Uniform, Values, define

family = Family("linalg")

_F32, _F64, _C64 = np.dtype("float32"), np.dtype("float64"), np.dtype("complex64")
_DTYPES = (_F32, _F64, *COMPLEX)
_ULPS = 16
_SHAPES = {
    "square": (4, 4),
    "tall": (5, 3),
    "wide": (3, 5),
    "batches": (2, 3, 4, 3),
    "one": (1, 1),
    "no_rows": (0, 3),
    "no_columns": (3, 0),
    "no_batch": (0, 3, 3),
}


def _values(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def _adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def _regular(shape: tuple[int, ...], dtype: Any) -> Values:
    """Square matrices far from singular."""
    a = _values(1, shape, dtype)
    return Values(a + 4 * np.eye(shape[-1], dtype=dtype), dtype)


def _positive(shape: tuple[int, ...], dtype: Any) -> Values:
    """Hermitian positive definite matrices."""
    a = _values(2, shape, dtype)
    return Values(a @ _adjoint(a) + np.eye(shape[-1], dtype=dtype), dtype)


def _hermitian(shape: tuple[int, ...], dtype: Any) -> Values:
    a = _values(3, shape, dtype)
    return Values(a + _adjoint(a), dtype)


# Properties: how far off, in ULPs of the largest element of what should be.


def _ulps(actual: np.ndarray, expected: np.ndarray) -> float:
    missing = np.isnan(expected)
    if np.array_equal(np.isnan(actual), missing):
        actual, expected = actual[~missing], expected[~missing]
    if actual.size == 0:
        return 0.0
    scale = np.abs(expected).max() or 1.0
    return float(np.abs(actual - expected).max() / scale / np.finfo(expected.dtype).eps)


def _unitary(q: np.ndarray) -> float:
    return _ulps(_adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), _square(q)))


def _square(q: np.ndarray) -> tuple[int, ...]:
    return (*q.shape[:-2], q.shape[-1], q.shape[-1])


def _check_eigh(args: tuple, expected: Any, actual: Any) -> float:
    (a,), (vectors, values) = args, actual
    if np.isnan(a).any():
        return max(map(_ulps, actual, expected))
    product = vectors * values[..., None, :] @ _adjoint(vectors)
    return max(_ulps(product, a), _unitary(vectors), _ulps(values, expected[1]))


def _check_svd(args: tuple, expected: Any, actual: Any) -> float:
    (a,), (u, s, vh) = args, actual
    if np.isnan(a).any():
        return max(map(_ulps, actual, expected))
    k = s.shape[-1]
    product = u[..., :k] * s[..., None, :] @ vh[..., :k, :]
    return max(_ulps(product, a), _unitary(u), _unitary(_adjoint(vh)), _ulps(s, expected[1]))


def _check_eig(args: tuple, expected: Any, actual: Any) -> float:
    """Results are values and then left, right or both eigenvectors; the order is anybody's."""
    a, values = args[0].astype(actual[0].dtype), actual[0]
    if not np.isfinite(a).all():
        return max(map(_ulps, actual, expected))
    distance = np.abs(values[..., :, None] - expected[0][..., None, :])
    apart = max(distance.min(-1).max(), distance.min(-2).max())
    errors = [float(apart / np.abs(expected[0]).max() / np.finfo(values.dtype).eps)]
    for i, vectors in enumerate(actual[1:]):
        is_left = len(actual) == 3 and i == 0
        matrix, factors = (_adjoint(a), np.conj(values)) if is_left else (a, values)
        scaled = vectors * factors[..., None, :]
        lengths = np.linalg.norm(vectors, axis=-2)
        errors += [_ulps(matrix @ vectors, scaled), _ulps(lengths, np.ones_like(lengths))]
    return max(errors)


def _check_schur(args: tuple, expected: Any, actual: Any) -> float:
    """T is triangular, but for blocks of two by two if it is real; the order is anybody's."""
    (a,), (t, z) = args, actual
    if np.isnan(a).any():
        return max(map(_ulps, actual, expected))
    below = np.diagonal(t, -1, -2, -1) != 0
    blocks = t.dtype.kind == "f" and not (below[..., 1:] & below[..., :-1]).any()
    if np.tril(t, -2).any() or (below.any() and not blocks):
        return float("inf")
    return max(_ulps(z @ t @ _adjoint(z), a), _unitary(z))


def _linalg(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    args: Sequence[Arg],
    dtype: Any = None,
    ulps: int = _ULPS,
    **more: Any,
) -> None:
    define(
        primitive,
        case,
        fun,
        args,
        dtype=args[0].dtype if dtype is None else dtype,
        ulps=ulps,
        scale="array",
        **more,
    )


@family.builder
def decompositions_and_solves() -> None:
    """Each decomposition and each solve, in each dtype."""
    for dtype in _DTYPES:
        _decompositions_of_positive_and_hermitian(dtype)
        for name, shape in _SHAPES.items():
            _decompositions_of_shape(name, shape, dtype)
        _singular_values(dtype)
        _lu_of_special_matrices(dtype)
        _decompositions_of_blocks(dtype)
        _options_of_cholesky_and_eigh(dtype)
        _products_of_reflectors(dtype)
        _triangular_solves(dtype)
        _reductions_to_few_diagonals(dtype)
        _tridiagonal_solves(dtype)
        _eigenvectors_and_schur_forms(dtype)


def _decompositions_of_positive_and_hermitian(dtype: Any) -> None:
    for name, shape in {"": (4, 4), "batches": (2, 3, 3, 3), "one": (1, 1)}.items():
        _linalg("cholesky", name, linalg.cholesky, [_positive(shape, dtype)])
        _linalg("eigh", name, linalg.eigh, [_hermitian(shape, dtype)], check=_check_eigh)


def _decompositions_of_shape(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    matrix = Normal(shape, dtype)
    _linalg("lu", name, linalg.lu, [matrix])
    for full in (True, False):
        kind = f"{name}_{'full' if full else 'thin'}"
        _linalg(
            "qr",
            kind,
            lambda a, full=full: linalg.qr(a, full_matrices=full),
            [matrix],
            params={"full_matrices": full},
        )
        if dtype in (_F32, _C64):
            _linalg(
                "qr",
                f"{kind}_pivoting",
                lambda a, full=full: linalg.qr(a, pivoting=True, full_matrices=full),
                [matrix],
                params={"full_matrices": full, "pivoting": True},
            )
        if 0 not in shape:
            _linalg(
                "svd",
                kind,
                lambda a, full=full: linalg.svd(a, full_matrices=full),
                [matrix],
                params={"full_matrices": full},
                check=_check_svd,
                ulps=32,
            )


def _singular_values(dtype: Any) -> None:
    _linalg(
        "svd",
        "values",
        lambda a: linalg.svd(a, compute_uv=False),
        [Normal((5, 3), dtype)],
        params={"compute_uv": False},
    )


def _lu_of_special_matrices(dtype: Any) -> None:
    _linalg("lu", "singular", linalg.lu, [Values(np.ones((3, 3)), dtype)])
    if np.dtype(dtype).kind == "c":
        # The largest by the sum of its parts, which LAPACK takes, and not by its absolute value.
        pivots = np.array([[3, 1, 2], [2 + 2j, 4, 1], [1, 2, 5j]])
        _linalg("lu", "pivots", linalg.lu, [Values(pivots, dtype)])


def _decompositions_of_blocks(dtype: Any) -> None:
    blocks = Values(np.kron(np.eye(2), [[2, 1], [1, 3]]), dtype)
    _linalg("cholesky", "blocks", linalg.cholesky, [blocks])
    _linalg("lu", "blocks", linalg.lu, [blocks])
    _linalg("qr", "blocks_full", linalg.qr, [blocks])
    _linalg("svd", "blocks", linalg.svd, [blocks], check=_check_svd, ulps=32)
    _linalg("eigh", "blocks", linalg.eigh, [blocks], check=_check_eigh)


def _options_of_cholesky_and_eigh(dtype: Any) -> None:
    _linalg("cholesky", "not_positive", linalg.cholesky, [Values([[1, 2], [2, 1]], dtype)])
    _linalg(
        "cholesky",
        "not_symmetrized",
        lambda a: linalg.cholesky(a, symmetrize_input=False),
        [_positive((4, 4), dtype)],
    )
    _linalg(
        "eigh",
        "upper",
        lambda a: linalg.eigh(a, lower=False, symmetrize_input=False),
        [_hermitian((4, 4), dtype)],
        params={"lower": False},
        check=_check_eigh,
    )


def _products_of_reflectors(dtype: Any) -> None:
    """What becomes of the reflectors that QR gives: Q, and products with Q."""
    raw, taus = np.linalg.qr(_values(4, (2, 5, 3), dtype), mode="raw")
    reflectors = np.swapaxes(raw, -1, -2)
    packed = [Values(reflectors, dtype), Values(taus, dtype)]
    _linalg("householder_product", "", linalg.householder_product, packed)
    with_nan = reflectors.copy()
    with_nan[0, 4, 1] = np.nan
    _linalg(
        "householder_product",
        "nan",
        linalg.householder_product,
        [Values(with_nan, dtype), packed[1]],
    )
    for left in (True, False):
        for transpose in (True, False):
            _linalg(
                "ormqr",
                f"left_{left}_transpose_{transpose}".lower(),
                lambda a, t, c, left=left, transpose=transpose: linalg.ormqr(
                    a, t, c, left=left, transpose=transpose
                ),
                [*packed, Normal((2, 5, 4) if left else (2, 4, 5), dtype)],
                params={"left": left, "transpose": transpose},
            )


def _triangular_solves(dtype: Any) -> None:
    # From the first diagonal element NaN reaches all.
    _linalg(
        "triangular_solve",
        "nan",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        [
            Values(np.diag([np.nan, 2, 3]) + np.tril(np.ones((3, 3)), -1), dtype),
            Normal((3, 2), dtype),
        ],
    )
    for side, lower, transpose in itertools.product((True, False), repeat=3):
        _linalg(
            "triangular_solve",
            f"left_{side}_lower_{lower}_transpose_{transpose}".lower(),
            lambda a, b, side=side, lower=lower, transpose=transpose: linalg.triangular_solve(
                a, b, left_side=side, lower=lower, transpose_a=transpose
            ),
            [_regular((2, 4, 4), dtype), Normal((2, 4, 3) if side else (2, 3, 4), dtype)],
            params={"left_side": side, "lower": lower, "transpose_a": transpose},
        )
    for conjugate in (True, False):
        _linalg(
            "triangular_solve",
            f"unit_diagonal_conjugate_{conjugate}".lower(),
            lambda a, b, conjugate=conjugate: linalg.triangular_solve(
                a, b, left_side=True, unit_diagonal=True, conjugate_a=conjugate
            ),
            [_regular((4, 4), dtype), Normal((4, 2), dtype)],
            params={"unit_diagonal": True, "conjugate_a": conjugate},
        )


def _reductions_to_few_diagonals(dtype: Any) -> None:
    _linalg("hessenberg", "", linalg.hessenberg, [Normal((5, 5), dtype)])
    _linalg("hessenberg", "batches", linalg.hessenberg, [Normal((2, 3, 3), dtype)])
    for lower in (True, False):
        _linalg(
            "tridiagonal",
            f"lower_{lower}".lower(),
            lambda a, lower=lower: linalg.tridiagonal(a, lower=lower),
            [_hermitian((2, 5, 5), dtype)],
            params={"lower": lower},
        )


def _tridiagonal_solves(dtype: Any) -> None:
    for name, shape in {"": (5, 2), "one": (1, 2)}.items():
        _linalg(
            "tridiagonal_solve",
            name,
            linalg.tridiagonal_solve,
            [*([Normal((2, shape[0]), dtype)] * 3), Normal((2, *shape), dtype)],
        )


def _eigenvectors_and_schur_forms(dtype: Any) -> None:
    for left, right in ((True, True), (False, True), (False, False)):
        _linalg(
            "eig",
            f"left_{left}_right_{right}".lower(),
            lambda a, left=left, right=right: linalg.eig(
                a, compute_left_eigenvectors=left, compute_right_eigenvectors=right
            ),
            [_regular((2, 4, 4), dtype)],
            check=_check_eig,
            ulps=64,
        )
    for name, matrix in {
        "": _regular((2, 4, 4), dtype),
        "large": _regular((9, 9), dtype),
        "one": _regular((1, 1), dtype),
        "triangular": Values(np.triu(_values(4, (4, 4), dtype)), dtype),
        "permutation": Values(np.roll(np.eye(5), 1, 0), dtype),
        "nan": Fill((3, 3), dtype, np.nan),
    }.items():
        _linalg("schur", name, linalg.schur, [matrix], check=_check_schur)


@family.builder
def matrices_whose_squares_are_no_numbers() -> None:
    """Elements whose squares underflow or overflow: LAPACK scales such matrices."""
    for dtype in _DTYPES:
        limits = np.finfo(dtype)
        for name, scale in {"tiny": limits.tiny**0.75, "huge": limits.max**0.75}.items():
            matrix = Values(_values(4, (2, 4, 4), dtype) * scale, dtype)
            _linalg("eig", name, linalg.eig, [matrix], check=_check_eig, ulps=64)
            _linalg("schur", name, linalg.schur, [matrix], check=_check_schur)


@family.builder
def triangles_that_are_not_read() -> None:
    """NaN where `eigh` does not look."""
    for dtype in _DTYPES:
        for lower in (True, False):
            unread = np.triu(np.ones((4, 4), bool), 1) if lower else np.tri(4, k=-1, dtype=bool)
            _linalg(
                "eigh",
                f"nan_above_{lower}".lower(),
                functools.partial(_product_of_eigh, unread, lower),
                [_hermitian((4, 4), dtype)],
                params={"lower": lower},
            )


def _product_of_eigh(unread: np.ndarray, lower: bool, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The matrix as its factors give it, as signs of eigenvectors are anybody's; eigenvalues."""
    a = jnp.where(unread, jnp.nan, a)
    vectors, values = linalg.eigh(a, lower=lower, symmetrize_input=False)
    return (vectors * values) @ vectors.mT.conj(), values


@family.builder
def no_reflections() -> None:
    """Products of no reflections, and no exchanges of rows."""
    for dtype in _DTYPES:
        for rows in (3, 5):
            _linalg(
                "householder_product",
                f"no_reflection_of_{rows}",
                linalg.householder_product,
                [Normal((rows, 3), dtype), Normal((0,), dtype)],
            )
        _linalg(
            "ormqr",
            "no_reflection",
            lambda a, t, c: linalg.ormqr(a, t, c, left=True, transpose=False),
            [Normal((3, 0), dtype), Normal((0,), dtype), Normal((3, 2), dtype)],
        )
    for batch in ((), (2,)):
        _linalg(
            "lu_pivots_to_permutation",
            f"no_exchange_{len(batch)}",
            lambda p: linalg.lu_pivots_to_permutation(p, 4),
            [Values(np.zeros((*batch, 0)), np.int32)],
        )


@family.builder
def solves_and_products_of_real_matrices() -> None:
    """What is asked of real matrices only: infinities, singular ones, symmetric products."""
    for dtype in (_F32, _F64):
        _tridiagonal_solves_with_infinities(dtype)
        _symmetric_products(dtype)
        _linalg(
            "cholesky_update",
            "",
            lambda r, w: linalg.cholesky_update(jnp.triu(r), w),
            [_regular((4, 4), dtype), Normal((4,), dtype)],
        )
        _solves_of_singular_triangles(dtype)


def _tridiagonal_solves_with_infinities(dtype: Any) -> None:
    # Of real numbers: products of complex ones that are infinite differ from build to build.
    for place, name in enumerate(("lower", "diagonal", "upper", "right")):
        numbers = [_values(place + i, (1, 5), dtype) for i in range(3)]
        numbers = [*numbers, _values(9, (1, 5, 2), dtype)]
        numbers[place][0, 2] = np.inf
        _linalg(
            "tridiagonal_solve",
            f"infinite_{name}",
            linalg.tridiagonal_solve,
            [Values(array, dtype) for array in numbers],
        )


def _symmetric_products(dtype: Any) -> None:
    _linalg(
        "symmetric_product",
        "",
        lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=3.0, symmetrize_output=True),
        [Normal((3, 5), dtype), _hermitian((3, 3), dtype)],
    )
    _linalg(
        "symmetric_product",
        "edges",
        lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=3.0, symmetrize_output=True),
        [
            Values([[np.nan, 1, 2], [np.inf, 1, 1], [0, -np.inf, 1], [0, 0, 1], [0, 0, 0]], dtype),
            Values(np.diag([1, 1, np.inf, np.nan, -np.inf]), dtype),
        ],
    )


def _solves_of_singular_triangles(dtype: Any) -> None:
    for name, place in {"first": 0, "last": 2}.items():
        singular = np.tril(_values(6, (3, 3), dtype))
        singular[place, place] = 0
        _linalg(
            "triangular_solve",
            f"singular_{name}",
            lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
            [Values(singular, dtype), Normal((3, 2), dtype)],
        )


@family.builder
def triangular_solves_of_half_floats() -> None:
    """Triangular solves in bfloat16 and float16."""
    for dtype in (jnp.bfloat16, jnp.float16):
        _linalg(
            "triangular_solve",
            "",
            lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
            [_regular((4, 4), dtype), Normal((4, 2), dtype)],
            ulps=2,
        )


@family.builder
def cases_of_single_dtypes() -> None:
    """NaN and infinity in decompositions, a singular tridiagonal solve, pivots, `geqrf`."""
    for dtype in (_F32, _C64):
        _linalg("svd", "nan", linalg.svd, [Values([[np.nan, 1], [1, 2]], dtype)], check=_check_svd)
        infinite = [Values([[np.inf, 1], [1, 2]], dtype)]
        _linalg("eig", "infinite", linalg.eig, infinite, check=_check_eig)
    _linalg(
        "tridiagonal_solve",
        "singular",
        linalg.tridiagonal_solve,
        [*([Values([[0, 0, 0]], _F32)] * 3), Normal((1, 3, 1), _F32)],
    )
    _linalg(
        "lu_pivots_to_permutation",
        "",
        lambda p: linalg.lu_pivots_to_permutation(p, 5),
        [Values([[1, 1, 4], [3, 2, 2]], np.int32)],
    )
    _linalg("geqrf", "", lambda a: jnp.linalg.qr(a, mode="raw"), [Normal((2, 4, 3), _F32)])
    _linalg(
        "geqp3",
        "",
        lambda a, c: jsl.qr_multiply(a, c, pivoting=True),
        [Normal((4, 3), _F32), Normal((4, 4), _F32)],
    )


@family.builder
def close_and_graded_values() -> None:
    """Eigenvalues that are hard to tell apart, and singular values of all sizes."""
    basis = np.linalg.qr(_values(5, (6, 6), _F64))[0]
    close = np.array([1, 1 + 1e-9, 1 + 1e-7, 1.5, 2, 2 - 1e-12])
    _linalg(
        "eigh",
        "close_values",
        linalg.eigh,
        [Values(basis * close @ basis.T, _F64)],
        check=_check_eigh,
    )
    _linalg(
        "svd",
        "graded_values",
        linalg.svd,
        [Values(basis * np.logspace(0, -14, 6) @ basis[::-1], _F64)],
        check=_check_svd,
    )


# jax.numpy.linalg and jax.scipy.linalg: name, case, function, arguments.
_A, _B, _V = _regular((4, 4), _F32), Normal((4, 2), _F32), Normal((4,), _F32)
_P, _H, _T = _positive((4, 4), _F32), _hermitian((4, 4), _F32), Normal((5, 3), _F32)
_PUBLIC: list[tuple[str, str, Callable[..., Any], list[Arg]]] = [
    ("linalg.cholesky", "upper", lambda a: jnp.linalg.cholesky(a, upper=True), [_P]),
    ("linalg.cond", "", jnp.linalg.cond, [_A]),
    ("linalg.cond", "one", lambda a: jnp.linalg.cond(a, p=1), [_A]),
    ("linalg.cross", "", jnp.linalg.cross, [Normal((4, 3), _F32), Normal((4, 3), _F32)]),
    ("linalg.det", "small", jnp.linalg.det, [Normal((2, 3, 3), _F32)]),
    ("linalg.det", "", jnp.linalg.det, [_regular((2, 5, 5), _F32)]),
    ("linalg.diagonal", "", jnp.linalg.diagonal, [_T]),
    ("linalg.eigvalsh", "", jnp.linalg.eigvalsh, [_H]),
    ("linalg.inv", "", jnp.linalg.inv, [_regular((2, 4, 4), _F32)]),
    ("linalg.lstsq", "", lambda a, b: jnp.linalg.lstsq(a, b)[0], [_T, Normal((5, 2), _F32)]),
    ("linalg.matmul", "", jnp.linalg.matmul, [_A, _B]),
    ("linalg.matrix_norm", "", jnp.linalg.matrix_norm, [_T]),
    ("linalg.matrix_norm", "nuc", lambda a: jnp.linalg.matrix_norm(a, ord="nuc"), [_T]),
    ("linalg.matrix_power", "", lambda a: jnp.linalg.matrix_power(a, 3), [_A]),
    ("linalg.matrix_power", "negative", lambda a: jnp.linalg.matrix_power(a, -2), [_A]),
    ("linalg.matrix_rank", "", jnp.linalg.matrix_rank, [Values(np.ones((3, 4)), _F32)]),
    ("linalg.matrix_transpose", "", jnp.linalg.matrix_transpose, [_T]),
    ("linalg.multi_dot", "", lambda a, b: jnp.linalg.multi_dot([a, a, b]), [_A, _B]),
    ("linalg.norm", "", jnp.linalg.norm, [_T]),
    ("linalg.norm", "two", lambda a: jnp.linalg.norm(a, ord=2), [_T]),
    ("linalg.norm", "infinite", lambda a: jnp.linalg.norm(a, ord=jnp.inf, axis=1), [_T]),
    ("linalg.outer", "", jnp.linalg.outer, [_V, _V]),
    ("linalg.pinv", "", jnp.linalg.pinv, [_T]),
    ("linalg.pinv", "hermitian", lambda a: jnp.linalg.pinv(a, hermitian=True), [_P]),
    ("linalg.qr", "r", lambda a: jnp.linalg.qr(a, mode="r"), [_T]),
    ("linalg.slogdet", "", lambda a: tuple(jnp.linalg.slogdet(a)), [_regular((2, 4, 4), _F32)]),
    ("linalg.slogdet", "qr", lambda a: tuple(jnp.linalg.slogdet(a, method="qr")), [_A]),
    ("linalg.solve", "", jnp.linalg.solve, [_A, _B]),
    ("linalg.solve", "complex", jnp.linalg.solve, [_regular((4, 4), _C64), Normal((4, 2), _C64)]),
    ("linalg.svdvals", "", jnp.linalg.svdvals, [_T]),
    ("linalg.tensordot", "", lambda a, b: jnp.linalg.tensordot(a, b, axes=1), [_A, _B]),
    ("linalg.tensorinv", "", lambda a: jnp.linalg.tensorinv(a.reshape(2, 2, 4)), [_A]),
    ("linalg.tensorsolve", "", jnp.linalg.tensorsolve, [_A, _V]),
    ("linalg.trace", "", jnp.linalg.trace, [_A]),
    ("linalg.vecdot", "", jnp.linalg.vecdot, [_A, _A]),
    ("linalg.vector_norm", "", lambda a: jnp.linalg.vector_norm(a, ord=3, axis=1), [_T]),
    ("block_diag", "", jsl.block_diag, [_A, _B]),
    ("cho_factor", "", lambda a: jsl.cho_factor(a)[0], [_P]),
    ("cho_solve", "", lambda a, b: jsl.cho_solve(jsl.cho_factor(a), b), [_P, _B]),
    ("circulant", "", jsl.circulant, [_V]),
    ("companion", "", jsl.companion, [Uniform((4,), _F32, 1, 2)]),
    ("dft", "", lambda x: x[0] * jsl.dft(4), [_V]),
    (
        "eigh_tridiagonal",
        "",
        lambda d, e: jsl.eigh_tridiagonal(d, e, eigvals_only=True),
        [_V, Normal((3,), _F32)],
    ),
    ("expm", "", jsl.expm, [Normal((3, 3), _F32)]),
    ("expm", "complex", jsl.expm, [Normal((3, 3), _C64)]),
    ("expm_frechet", "", lambda a: jsl.expm_frechet(a, a * a), [Normal((3, 3), _F32)]),
    ("hankel", "", jsl.hankel, [_V]),
    ("helmert", "", lambda x: x[0] * jsl.helmert(4), [_V]),
    ("hilbert", "", lambda x: x[0] * jsl.hilbert(4), [_V]),
    ("lu", "scipy", jsl.lu, [_T]),
    ("lu", "permute_l", lambda a: jsl.lu(a, permute_l=True), [_T]),
    ("lu_factor", "", jsl.lu_factor, [_A]),
    ("lu_solve", "", lambda a, b: jsl.lu_solve(jsl.lu_factor(a), b, trans=1), [_A, _B]),
    ("pascal", "", lambda x: x[0] * jsl.pascal(4), [_V]),
    ("polar", "", lambda a: jsl.polar(a, method="svd"), [_A]),
    ("solve", "positive", lambda a, b: jsl.solve(a, b, assume_a="pos"), [_P, _B]),
    ("solve_triangular", "", lambda a, b: jsl.solve_triangular(a, b, trans="T"), [_A, _B]),
    ("toeplitz", "", jsl.toeplitz, [_V]),
    ("hessenberg", "calc_q", lambda a: jsl.hessenberg(a, calc_q=True), [_A]),
]


@family.builder
def public_functions() -> None:
    """The public functions of jax.numpy.linalg and jax.scipy.linalg, in the table above."""
    for function, case, fun, args in _PUBLIC:
        _linalg(function, f"public_{case}".rstrip("_"), fun, args, ulps=64)
