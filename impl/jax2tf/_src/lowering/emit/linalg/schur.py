"""Schur decompositions, eigenvalues and eigenvectors in JAX.

TensorFlow's only op for them cannot be compiled by XLA, and engines lack it. This is Francis's QR
algorithm with double shifts, on batches: each matrix has a pointer `hi` to the end of its
unfinished part, and a round of the loop does the next step of each matrix. In a real matrix, each
complex pair of eigenvalues keeps a 2 x 2 block in LAPACK's standard form. See Golub and Van Loan,
"Matrix Computations", section 7.5, and LAPACK's hqr and lanv2.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.typing import ArrayLike

from jax2tf._src.lowering.emit.linalg.matrices import (
    adjoint,
    at,
    conjugate,
    diagonal_of,
    divided,
    identity_like,
    int32,
    is_diagonal,
    loop,
    nan,
    nan_unless_finite,
    numbers,
    product,
    quotient,
    reflected_from_right,
    reflection,
    reflector,
    squared_sizes,
)
from jax2tf._src.util.typing import Dim, PyTree

# LAPACK gives up after this many rounds for each eigenvalue; most need two or three.
_ROUNDS = 30
# After this many rounds without an eigenvalue, other shifts may help.
_PATIENCE = 10

_Two = tuple[jax.Array, jax.Array]


def schur(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns (t, z) with A = Z T Z^H, where T is upper triangular (if real, quasi-triangular)."""
    n = a.shape[-1]
    scaled, scale = _scaled(_finite(a))
    t, z = (x[..., :n, :n] for x in _schur(_of_two_rows(scaled)))
    factors = nan_unless_finite(a, t * scale, z)
    return factors[: 1 + eqn.params["compute_schur_vectors"]]


def eig(eqn: jex_core.JaxprEqn, a: jax.Array) -> Sequence[jax.Array]:
    """Returns eigenvalues, and the requested left and right eigenvectors, of length one."""
    n = a.shape[-1]
    scaled, scale = _scaled(_finite(a))
    values, left, right = _eig(_of_two_rows(scaled))
    results = values[..., :n] * scale[..., 0], left[..., :n, :n], right[..., :n, :n]
    values, left, right = nan_unless_finite(a, *results)
    lefts = [left] * eqn.params["compute_left_eigenvectors"]
    return [values, *lefts, *[right] * eqn.params["compute_right_eigenvectors"]]


def _finite(a: jax.Array) -> jax.Array:
    is_finite = jnp.all(jnp.isfinite(a), (-1, -2), keepdims=True)
    return jnp.where(is_finite, a, jnp.zeros_like(a))


def _scaled(a: jax.Array) -> _Two:
    """Returns matrices whose squares neither overflow nor underflow, and their scales.

    As in LAPACK's geev, only matrices whose largest element is very small or large are scaled.
    """
    largest = jnp.max(jnp.abs(a), (-1, -2), keepdims=True)
    numbers_of = jnp.finfo(largest.dtype)
    small = np.sqrt(numbers_of.tiny) / numbers_of.eps
    is_usual = (largest == 0) | ((largest >= small) & (largest <= 1 / small))
    scale = jnp.where(is_usual, jnp.ones_like(largest), largest)
    return divided(a, scale), scale


def _of_two_rows(a: jax.Array) -> jax.Array:
    """Appends a row and a column of zeros if the size is unknown: `_schur` then has two rows.

    They add the eigenvalue 0 after the others.
    """
    if isinstance(a.shape[-1], int):
        return a
    return jnp.pad(a, [*[(0, 0)] * (a.ndim - 2), (0, 1), (0, 1)])


def _schur(a: jax.Array) -> _Two:
    n = a.shape[-1]
    if isinstance(n, int) and n == 1:
        return a, jnp.ones_like(a)
    batch = a.shape[:-2]
    first, last = jnp.zeros(batch, np.int32), jnp.broadcast_to(int32(n - 1), batch)
    h, z = _chased(a, identity_like(a), first, last, last > 1, bulge=int32(n))

    def is_unfinished(state: PyTree) -> PyTree:
        count, hi, *_ = state
        return jnp.any(hi > 0) & (count < _ROUNDS * int32(jax.core.max_dim(n, 10)))

    def work(state: PyTree) -> PyTree:
        count, hi, tries, h, z = state
        h = _without_negligible(h)
        lo = _start_of_block(h, hi)
        is_large = hi - lo > 1
        h, z = _pair_split(h, z, lo, hi - lo == 1)
        column = _first_column(h, lo, hi, tries)
        h, z = _chased(h, z, lo, hi, is_large, bulge=3, start=column)
        hi = jnp.where(is_large, hi, jnp.maximum(lo - 1, 0))
        return count + 1, hi, jnp.where(is_large, tries + 1, 0), h, z

    start = np.zeros((), np.int32), last, first, h, z
    _, hi, _, h, z = lax.while_loop(is_unfinished, work, start)
    # LAPACK gives up too, and JAX then returns NaN.
    is_found = (hi == 0)[..., None, None]
    h, z = (jnp.where(is_found, x, nan(x.dtype)) for x in (_without_negligible(h), z))
    return h, z


def _eig(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    t, z = _schur(a)
    is_real = not jnp.iscomplexobj(a)
    if is_real:
        t, z = _complex_form(t, z)
    values = diagonal_of(t)
    right = product(z, _eigenvectors_of_triangle(t))
    # Left eigenvectors are right ones of the adjoint. Reversed, this is upper triangular.
    mirrored = jnp.flip(adjoint(t), (-2, -1))
    left = product(z, jnp.flip(_eigenvectors_of_triangle(mirrored), (-2, -1)))
    left, right = _normalised(left), _normalised(right)
    if is_real:
        # A real eigenvalue has real vectors, but rounding leaves imaginary parts.
        has_real = (values.imag == 0)[..., None, :]
        left, right = (jnp.where(has_real, x.real.astype(x.dtype), x) for x in (left, right))
    return values, left, right


def _chased(
    h: jax.Array,
    z: jax.Array,
    lo: jax.Array,
    hi: jax.Array,
    chosen: jax.Array,
    *,
    bulge: ArrayLike,
    start: jax.Array | None = None,
) -> _Two:
    """Makes the block [lo, hi] of the chosen matrices upper Hessenberg, by reflections of rows.

    A reflection covers `bulge` rows. With `start`, the first reflection takes this column to the
    unit vector at `lo`. It makes a bulge, and the following reflections chase the bulge out.
    """
    n = h.shape[-1]
    rows = numbers(n)

    def step(k: jax.Array, state: PyTree) -> PyTree:
        h, z = state
        column = at(h, jnp.maximum(k, 0), -1)
        if start is not None:
            column = jnp.where((lo - 1 == k)[..., None], start, column)
        reach = jnp.minimum(k + bulge, hi)[..., None]
        v, tau, beta = reflector(jnp.where(rows <= reach, column, 0), k + 1)
        within = chosen & (k < hi - 1) & (k >= (lo if start is None else lo - 1))
        tau = jnp.where(within[..., None], tau, jnp.zeros_like(tau))
        h = reflected_from_right(h - reflection(h, v, conjugate(tau)), v, tau)
        # A reflection should leave zeros, but rounding leaves small numbers.
        is_done = (within & (k >= lo))[..., None] & (rows > k) & (rows <= reach)
        kept = jnp.where(rows == k + 1, beta, jnp.zeros_like(beta))
        cleared = jnp.where(is_done, kept, at(h, jnp.maximum(k, 0), -1))
        return jnp.where(rows == k, cleared[..., :, None], h), reflected_from_right(z, v, tau)

    first = 0 if start is None else -1
    if isinstance(n, int) and n - 2 <= first:
        return h, z
    results: _Two = lax.fori_loop(np.int32(first), int32(n - 2), step, (h, z))
    return results


def _without_negligible(h: jax.Array) -> jax.Array:
    """Sets elements below the diagonal to zero if they are negligible next to their neighbours."""
    size = jnp.abs(h)
    sizes = diagonal_of(size)
    # The first element has no element before it. Its scale does not matter, because its row has no
    # element below the diagonal.
    scale = sizes + jnp.concatenate([sizes[..., :1], sizes[..., :-1]], -1)
    scale = jnp.where(scale == 0, jnp.max(size, (-2, -1))[..., None], scale)
    is_negligible = _below(size) <= np.finfo(size.dtype).eps * scale
    below = is_diagonal(h.shape[-1], -1)
    return jnp.where(below & is_negligible[..., :, None], jnp.zeros_like(h), h)


def _start_of_block(h: jax.Array, hi: jax.Array) -> jax.Array:
    """Returns the start of the block that ends at `hi` and has no zeros below the diagonal."""
    starts = numbers(h.shape[-1])
    is_start = (_below(h) == 0) & (starts <= hi[..., None])
    return jnp.max(jnp.where(is_start, starts, 0), -1)


def _first_column(h: jax.Array, lo: jax.Array, hi: jax.Array, tries: jax.Array) -> jax.Array:
    """Returns the direction of (H - s1) (H - s2) e_lo, with eigenvalues of the last two rows."""
    # The scale keeps squares from overflow and underflow.
    largest = jnp.max(jnp.abs(h), (-2, -1), keepdims=True)
    h = divided(h, jnp.where(largest == 0, jnp.ones_like(largest), largest))
    before = jnp.maximum(hi - 1, 0)
    a, b, c, d = (_element(h, i, j) for i in (before, hi) for j in (before, hi))
    size = jnp.abs(c) + jnp.abs(_element(h, before, jnp.maximum(hi - 2, 0)))
    is_unusual = lax.rem(tries, np.int32(_PATIENCE)) == _PATIENCE - 1
    total = jnp.where(is_unusual, (1.5 * size).astype(h.dtype), a + d)
    product = jnp.where(is_unusual, (size * size).astype(h.dtype), a * d - b * c)
    rows, lo = numbers(h.shape[-1]), lo[..., None]
    column = _column(h, lo[..., 0])
    column = jnp.where((rows >= lo) & (rows <= lo + 1), column, jnp.zeros_like(column))
    square = jnp.sum(h * column[..., None, :], -1)
    unit = (rows == lo).astype(h.dtype)
    return square - total[..., None] * column + product[..., None] * unit


def _pair_split(h: jax.Array, z: jax.Array, lo: jax.Array, chosen: jax.Array) -> _Two:
    """Makes the chosen 2x2 blocks at `lo` triangular if possible, otherwise standard.

    A standard block has two equal diagonal elements. It is a complex pair of a real matrix.
    """
    n = h.shape[-1]
    hi = jnp.minimum(lo + 1, int32(n - 1))
    block = [_element(h, i, j) for i in (lo, hi) for j in (lo, hi)]
    # The scale keeps squares from underflow. The rotation does not depend on it.
    largest = functools.reduce(jnp.maximum, map(jnp.abs, block))
    largest = jnp.where(largest == 0, jnp.ones_like(largest), largest)
    a, b, c, d = (divided(x, largest) for x in block)
    half = divided(a - d, 2)
    discriminant = half * half + b * c
    if jnp.iscomplexobj(h):
        root = jnp.sqrt(discriminant)
        root = jnp.where((jnp.conj(half) * root).real < 0, -root, root)
        is_triangular = chosen
        cosine, sine = half + root, c
    else:
        is_triangular = discriminant >= 0
        root = jnp.sqrt(jnp.where(is_triangular, discriminant, 0))
        # An eigenvector is (eigenvalue - d, c). The one of the two without cancellation is used.
        angle = jnp.atan2(-2 * half, b + c) / 2
        cosine = jnp.where(half < 0, half - root, half + root)
        cosine = jnp.where(is_triangular, cosine, jnp.cos(angle))
        sine = jnp.where(is_triangular, c, jnp.sin(angle))
    length = jnp.sqrt(squared_sizes(cosine) + squared_sizes(sine))
    is_trivial = ~chosen | (length == 0)
    divisor = jnp.where(is_trivial, jnp.ones_like(length), length)
    cosine = jnp.where(is_trivial, jnp.ones_like(cosine), divided(cosine, divisor))
    sine = jnp.where(is_trivial, jnp.zeros_like(sine), divided(sine, divisor))
    u = _rotation(h, lo, hi, cosine, sine, chosen)
    h = product(product(adjoint(u), h), u)
    first, second = ((numbers(n) == i[..., None]) & chosen[..., None] for i in (lo, hi))
    is_cleared = second[..., :, None] & first[..., None, :] & is_triangular[..., None, None]
    h = jnp.where(is_cleared, jnp.zeros_like(h), h)
    if not jnp.iscomplexobj(h):
        mean = (_element(h, lo, lo) + _element(h, hi, hi)) / 2
        is_row = (first | second) & ~is_triangular[..., None]
        h = jnp.where(is_diagonal(n) & is_row[..., :, None], mean[..., None, None], h)
    return h, product(z, u)


def _rotation(
    like: jax.Array,
    lo: jax.Array,
    hi: jax.Array,
    cosine: jax.Array,
    sine: jax.Array,
    chosen: jax.Array,
) -> jax.Array:
    """Returns identities with [[c, -conj(s)], [s, conj(c)]] in rows lo and hi where `chosen`."""
    u = identity_like(like)
    ends = [(numbers(like.shape[-1]) == i[..., None]) & chosen[..., None] for i in (lo, hi)]
    places = {
        (0, 0): cosine,
        (0, 1): -conjugate(sine),
        (1, 0): sine,
        (1, 1): conjugate(cosine),
    }
    for (i, j), value in places.items():
        here = ends[i][..., :, None] & ends[j][..., None, :]
        u = jnp.where(here, value[..., None, None], u)
    return u


def _complex_form(t: jax.Array, z: jax.Array) -> _Two:
    """Makes a real form complex and triangular; the upper eigenvalue of a pair comes first."""
    n = t.shape[-1]
    above = jnp.sum(_where_diagonal(n, t, 1), -1)
    below = jnp.sum(_where_diagonal(n, t, -1), -2)
    is_first = below != 0
    imaginary = jnp.where(is_first, jnp.sqrt(jnp.abs(above)) * jnp.sqrt(jnp.abs(below)), 0)
    # The scale keeps squares from underflow. The rotation does not depend on it.
    largest = jnp.where(is_first, jnp.maximum(imaginary, jnp.abs(below)), 1)
    cosine, sine = imaginary / largest, jnp.where(is_first, below / largest, 0)
    length = jnp.where(is_first, jnp.sqrt(cosine * cosine + sine * sine), 1)
    cosine, sine = cosine / length, sine / length
    alone = jnp.where(is_first | _moved(is_first), jnp.zeros_like(cosine), 1)
    cosines = lax.complex(alone, cosine - _moved(cosine))
    sine = sine.astype(cosines.dtype)
    u = _where_diagonal(n, cosines[..., :, None])
    u = u - _where_diagonal(n, sine[..., :, None], 1) + _where_diagonal(n, sine[..., None, :], -1)
    triangle = product(product(adjoint(u), t.astype(u.dtype)), u)
    rows = numbers(n)
    triangle = jnp.where(rows[:, None] <= rows, triangle, jnp.zeros_like(triangle))
    values = lax.complex(diagonal_of(t), imaginary - _moved(imaginary))
    triangle = jnp.where(is_diagonal(n), values[..., :, None], triangle)
    return triangle, product(z.astype(u.dtype), u)


def _moved(x: jax.Array) -> jax.Array:
    """Moves each element to the next place; the first becomes zero."""
    return jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :-1]], -1)


def _eigenvectors_of_triangle(t: jax.Array) -> jax.Array:
    """Returns the right eigenvectors of upper triangular matrices as columns, by substitution."""
    n = t.shape[-1]
    columns, values = numbers(n), diagonal_of(t)
    size = jnp.max(jnp.abs(t), (-2, -1))
    limits = np.finfo(size.dtype)
    smallest = jnp.maximum(limits.eps * size, limits.tiny)[..., None]

    def step(i: jax.Array, x: jax.Array) -> jax.Array:
        k = int32(n - 1) - i
        inner = jnp.sum(at(t, k, -2)[..., :, None] * x, -2)
        gap = values - at(values, k, -1)[..., None]
        gap = jnp.where(jnp.abs(gap) < smallest, smallest.astype(t.dtype), gap)
        row = jnp.where(columns > k, quotient(inner, gap), at(x, k, -2))
        x = jnp.where((columns == k)[:, None], row[..., None, :], x)
        # If a matrix has too few eigenvectors, these vectors grow with each step.
        largest = jnp.max(jnp.abs(x), -2, keepdims=True)
        return divided(x, jnp.maximum(largest, 1))

    result: jax.Array = loop(n, step, identity_like(t))
    return result


def _normalised(x: jax.Array) -> jax.Array:
    """Scales columns to length one and a real largest element, as LAPACK's geev does."""
    squares = squared_sizes(x)
    length = jnp.sqrt(jnp.sum(squares, -2, keepdims=True))
    largest = lax.argmax(squares, x.ndim - 2, np.int32)[..., None, :]
    is_largest = numbers(x.shape[-2])[:, None] == largest
    element = jnp.sum(jnp.where(is_largest, x, jnp.zeros_like(x)), -2, keepdims=True)
    return x * divided(lax.conj(element), jnp.abs(element) * length)


def _where_diagonal(n: Dim, x: jax.Array, k: int = 0) -> jax.Array:
    """Keeps the k-th diagonal of `x`, broadcast to matrices, and sets other elements to zero."""
    return jnp.where(is_diagonal(n, k), x, jnp.zeros_like(x))


def _below(h: jax.Array) -> jax.Array:
    """Returns the element below the diagonal of each row, [..., n]; zero for the first row."""
    return jnp.sum(_where_diagonal(h.shape[-1], h, -1), -1)


def _column(h: jax.Array, j: jax.Array) -> jax.Array:
    """Returns column j of each matrix, [..., n]."""
    here = numbers(h.shape[-1]) == j[..., None]
    return jnp.sum(jnp.where(here[..., None, :], h, jnp.zeros_like(h)), -1)


def _element(h: jax.Array, i: jax.Array, j: jax.Array) -> jax.Array:
    """Returns the element (i, j) of each matrix."""
    column = _column(h, j)
    here = numbers(h.shape[-1]) == i[..., None]
    return jnp.sum(jnp.where(here, column, jnp.zeros_like(column)), -1)
