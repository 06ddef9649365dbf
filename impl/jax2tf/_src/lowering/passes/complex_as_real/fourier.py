"""Computes discrete Fourier transforms as products with matrices of cosines and sines.

A transform of many points is split into transforms of few points (J. W. Cooley, J. W. Tukey: An
algorithm for the machine calculation of complex Fourier series, 1965).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.lowering.passes.complex_as_real.pair import Pair, Value, multiply
from jax2tf._src.util.typing import Array, Shape

# A transform of at most this many points is one product.
_POINTS_OF_A_PRODUCT = 256


def is_known(lengths: Shape) -> bool:
    """Whether the numbers of points are positive and known before the run."""
    return all(isinstance(n, int) and n > 0 for n in lengths)


def transform(x: Value, kind: lax.FftType, lengths: Sequence[int]) -> Value:
    """Computes lax.fft, with a Pair for complex numbers."""
    axes = range(-len(lengths), 0)
    if kind == lax.FftType.RFFT:
        x = _along(x, -1, _of_real)
        axes = range(-len(lengths), -1)
    if kind == lax.FftType.IRFFT:
        axes = range(-len(lengths), -1)
    is_inverse = kind in (lax.FftType.IFFT, lax.FftType.IRFFT)
    for axis in axes:
        x = _along(x, axis, _inverse if is_inverse else _forward)
    if kind != lax.FftType.IRFFT:
        return x
    assert isinstance(x, Pair)
    return _to_real(x, lengths[-1])


def _along(x: Value, axis: int, function: Callable[..., Pair]) -> Pair:
    moved = jax.tree.map(lambda part: jnp.moveaxis(part, axis, -1), x)
    return jax.tree.map(lambda part: jnp.moveaxis(part, -1, axis), function(moved))


def _forward(z: Pair) -> Pair:
    return _points(z, -1)


def _inverse(z: Pair) -> Pair:
    n = z.real.shape[-1]
    return Pair(*(part / n for part in _points(z, 1)))


def _of_real(x: Array) -> Pair:
    """Transforms real numbers. It drops the second half, which mirrors the first."""
    n = x.shape[-1]
    kept = n // 2 + 1
    if _factor(n) == 1:
        return _points_of_real(x, kept, -1)
    z = _points(x, -1)
    return Pair(z.real[..., :kept], _with_real_ends(z.imag, n))


def _with_real_ends(imag: Array, n: int) -> Array:
    """Returns the first imaginary parts of n real numbers' transform, with zeros at the ends.

    Point 0 and point n / 2 of an even n are real: JAX gives the number 0, on which a phase depends.
    """
    ends = (1, 1 - n % 2)
    return jnp.pad(imag[..., 1 : (n + 1) // 2], [*[(0, 0)] * (imag.ndim - 1), ends])


def _points_of_real(x: Array, kept: int, sign: int) -> Pair:
    """Returns the first points of the transform of few real numbers."""
    cosines, sines = _waves(x.shape[-1], kept, x.dtype)
    # The zeros among the sines stay positive: a sum of negative zeros would turn a phase around.
    return Pair(_product(x, cosines), _product(x, sines if sign > 0 else 0.0 - sines))


def _to_real(z: Pair, n: int) -> Array:
    """Returns the n real numbers whose transform begins with z."""
    kept = n // 2 + 1
    # Each point that is not at an end counts twice, for its mirror image.
    counts = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == n), 1, 2)
    if _factor(n) == 1:
        cosines, sines = _waves(n, kept, z.real.dtype, counts / n)
        return _product(z.real, cosines.T) - _product(z.imag, sines.T)
    mirrored = slice(kept - 2 if n % 2 == 0 else kept - 1, 0, -1)
    # The imaginary parts of the ends are ignored: for real numbers they are zero.
    imag = z.imag * (counts == 2)
    real = jnp.concatenate([z.real, z.real[..., mirrored]], -1)
    return _inverse(Pair(real, jnp.concatenate([imag, -imag[..., mirrored]], -1))).real


def _points(x: Value, sign: int) -> Pair:
    """Returns the sum of x[j] e**(sign 2 pi i j k / n) over j, for each k."""
    real = x.real if isinstance(x, Pair) else x
    shape, dtype = real.shape, real.dtype
    n = shape[-1]
    rows = _factor(n)
    if rows == 1:
        return _product_of_points(x, sign) if isinstance(x, Pair) else _points_of_real(x, n, sign)
    columns = n // rows
    # The indices are j = columns * r + c and k = p + rows * q.
    grid = jax.tree.map(lambda part: part.reshape(*shape[:-1], rows, columns), x)
    inner = _along(grid, -2, lambda part: _points(part, sign))
    angles = sign * 2 * np.pi * np.outer(np.arange(rows), np.arange(columns)) / n
    turns = Pair(*(jnp.asarray(f(angles).astype(dtype)) for f in (np.cos, np.sin)))
    outer = _points(multiply(inner, turns), sign)
    return Pair(*(jnp.swapaxes(part, -1, -2).reshape(shape) for part in outer))


def _product_of_points(z: Pair, sign: int) -> Pair:
    """Returns the transform of few complex numbers."""
    n = z.real.shape[-1]
    cosines, sines = _waves(n, n, z.real.dtype)
    sines = sign * sines
    # Both are differences: if imaginary parts are zero, x - 0 needs no op, unlike x + 0.
    return Pair(
        _product(z.real, cosines) - _product(z.imag, sines),
        _product(z.real, sines) - _product(z.imag, -cosines),
    )


def _factor(n: int) -> int:
    """Returns the number of rows of n points: the largest divisor up to its root, or 1 for few."""
    if n <= _POINTS_OF_A_PRODUCT:
        return 1
    return max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)


def _waves(
    n: int, kept: int, dtype: np.dtype, scale: float | np.ndarray = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns scale[k] times the cosines and sines of 2 pi j k / n, for n j and `kept` k."""
    # The product is reduced modulo n first, because large angles have fewer digits.
    turns = np.outer(np.arange(n), np.arange(kept)) % n
    angles = 2 * np.pi * turns / n
    # NumPy's pi is not exact: its sine of pi and cosine of pi / 2 are 1e-16.
    sines = np.where(2 * turns % n == 0, 0.0, np.sin(angles))
    cosines = np.where((4 * turns % n == 0) & (2 * turns % n != 0), 0.0, np.cos(angles))
    return (cosines * scale).astype(dtype), (sines * scale).astype(dtype)


def _product(x: Array, matrix: np.ndarray) -> Array:
    return jnp.matmul(x, matrix, precision=lax.Precision.HIGHEST)
