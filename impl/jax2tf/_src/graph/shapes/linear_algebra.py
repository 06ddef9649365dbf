"""Products, decompositions and solutions of matrices, and Fourier transforms."""

from __future__ import annotations

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Size
from jax2tf._src.graph.shapes.registry import Shape, Sizes, Use, gives


@gives("MatMul")
def _product(use: Use) -> Shape:
    a = use.ranked(0, 2)
    b = use.ranked(1, 2)
    rows, inner = a[::-1] if use.attributes["transpose_a"] else a
    other, columns = b[::-1] if use.attributes["transpose_b"] else b
    use.merge(inner, other)
    return rows, columns


@gives("BatchMatMulV2")
def _products(use: Use) -> Shape:
    a, b = use.at_least(0, 2), use.at_least(1, 2)
    rows, inner = a[:-3:-1] if use.attributes["adj_x"] else a[-2:]
    other, columns = b[:-3:-1] if use.attributes["adj_y"] else b[-2:]
    use.merge(inner, other)
    batch = use.broadcast(a[:-2], b[:-2])
    assert batch is not None
    return (*batch, rows, columns)


def _square(use: Use, i: int) -> Sizes:
    """The shape of matrices that have to be square."""
    shape = use.at_least(i, 2)
    size = use.merge(shape[-1], shape[-2])
    return (*shape[:-2], size, size)


@gives("Cholesky", "MatrixInverse")
def _squares(use: Use) -> Shape:
    return _square(use, 0)


@gives("MatrixDeterminant")
def _determinant(use: Use) -> Shape:
    return _square(use, 0)[:-2]


@gives("Lu")
def _lu(use: Use) -> list[Shape]:
    shape = _square(use, 0)
    return [shape, shape[:-1]]


@gives("Qr")
def _qr(use: Use) -> list[Shape]:
    *batch, m, n = use.at_least(0, 2)
    k = dimensions.minimum(m, n)
    if use.attributes["full_matrices"]:
        return [(*batch, m, m), (*batch, m, n)]
    return [(*batch, m, k), (*batch, k, n)]


@gives("Svd")
def _svd(use: Use) -> list[Shape]:
    *batch, m, n = use.at_least(0, 2)
    k = dimensions.minimum(m, n)
    if not use.attributes["compute_uv"]:
        return [(*batch, k), (0,), (0,)]
    if use.attributes["full_matrices"]:
        return [(*batch, k), (*batch, m, m), (*batch, n, n)]
    return [(*batch, k), (*batch, m, k), (*batch, n, k)]


@gives("SelfAdjointEigV2")
def _eigenvalues(use: Use) -> list[Shape]:
    shape = _square(use, 0)
    return [shape[:-1], shape if use.attributes["compute_v"] else (0,)]


@gives("MatrixSolve")
def _solution(use: Use) -> Shape:
    matrix, right = _square(use, 0), use.at_least(1, 2)
    batch = use.merged(matrix[:-2], right[:-2])
    assert batch is not None
    return (*batch, use.merge(matrix[-1], right[-2]), right[-1])


@gives("MatrixTriangularSolve")
def _triangular_solution(use: Use) -> Shape:
    matrix, right = _square(use, 0), use.at_least(1, 2)
    batch = use.broadcast(matrix[:-2], right[:-2])
    assert batch is not None
    return (*batch, use.merge(matrix[-1], right[-2]), right[-1])


@gives("TridiagonalSolve")
def _tridiagonal_solution(use: Use) -> Shape:
    diagonals, right = use.at_least(0, 2), use.at_least(1, 2)
    batch = use.merged(diagonals[:-2], right[:-2])
    assert batch is not None
    if isinstance(diagonals[-2], int) and diagonals[-2] != 3:
        raise use.error(f"there are {diagonals[-2]} diagonals, not 3")
    return (*batch, use.merge(diagonals[-1], right[-2]), right[-1])


@gives(*(f"{inverse}FFT{rank}" for inverse in ("", "I") for rank in ("", "2D", "3D")))
def _transform(use: Use) -> Shape:
    return use.at_least(0, _n_axes(use))


def _n_axes(use: Use) -> int:
    return int(use.op[-2]) if use.op.endswith("D") else 1


@gives(*(f"{inverse}RFFT{rank}" for inverse in ("", "I") for rank in ("", "2D", "3D")))
def _real_transform(use: Use) -> Shape:
    """The lengths are stated; the last dimension of the spectrum has only half of them."""
    n = _n_axes(use)
    shape, lengths = use.at_least(0, n), use.vector(1)
    if lengths is None or len(lengths) != n:
        if lengths is not None:
            raise use.error(f"{len(lengths)} lengths are stated for {n} dimensions")
        lengths = (None,) * n
    last: Size = lengths[-1]
    if not use.op.startswith("I"):
        last = dimensions.add(dimensions.divide(last, 2), 1)
    return (*shape[:-n], *lengths[:-1], last)


@gives("BlockLSTMV2")
def _lstm(use: Use) -> list[Shape]:
    """The operands are the length, [time, batch, features], and the state of [batch, cells]."""
    time, batch, _ = use.ranked(1, 3)
    _, cells = use.ranked(2, 2)
    return [(time, batch, cells)] * 7
