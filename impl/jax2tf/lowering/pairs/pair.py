"""A complex array as two real ones, and the arithmetic of them, in JAX.

The values are those of JAX's own complex numbers, at infinities, NaNs and branch cuts too;
lowering/complex_math.py says the same for TensorFlow's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from jax2tf.typing import Array


class Pair(NamedTuple):
    """A complex array: its real and its imaginary part, of one shape and dtype."""

    real: Array
    imag: Array


# A value of a program of complex numbers: a Pair for a complex array, and anything else as it is.
Value: TypeAlias = Array | Pair


def is_complex(aval: object) -> bool:
    """Whether an aval is one of complex numbers."""
    return bool(jnp.issubdtype(getattr(aval, "dtype", np.bool_), np.complexfloating))


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of a part of complex numbers."""
    return np.zeros((), dtype).real.dtype


def add(z: Pair, w: Pair) -> Pair:
    """z + w."""
    return Pair(z.real + w.real, z.imag + w.imag)


def multiply(z: Pair, w: Pair) -> Pair:
    """z w."""
    return Pair(z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real)


def square(z: Pair) -> Pair:
    """z z."""
    return multiply(z, z)


def equal(z: Pair, w: Pair) -> Array:
    """Whether both parts are equal."""
    return (z.real == w.real) & (z.imag == w.imag)


def conjugate(z: Pair) -> Pair:
    """The number on the other side of the real axis."""
    return Pair(z.real, -z.imag)


def absolute(z: Pair) -> Array:
    """|z|, without squares that overflow; infinite if a part is, whatever the other."""
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    # A NaN is in one of the two, whichever way they are compared.
    wide = x > y
    large, small = jnp.where(wide, x, y), jnp.where(wide, y, x)
    ratio = small / jnp.where(large == 0, 1, large)
    size = large * jnp.sqrt(1 + ratio * ratio)
    return jnp.where(is_infinite(z), math.inf, size)


def sign(z: Pair) -> Pair:
    """z / |z| part by part, and z itself for zeros."""
    size = absolute(z)
    is_zero = size == 0
    return choose(is_zero, z, Pair(z.real / size, z.imag / size))


def divide(z: Pair, w: Pair) -> Pair:
    """z / w, by Smith's method, with C99's quotients (Annex G.5.1) of zeros and infinities."""
    (a, b), (c, d) = z, w
    wide = jnp.abs(c) >= jnp.abs(d)
    ratio = jnp.where(wide, d, c) / jnp.where(wide, c, d)
    denominator = jnp.where(wide, c + d * ratio, c * ratio + d)
    x = jnp.where(wide, a + b * ratio, a * ratio + b) / denominator
    y = jnp.where(wide, b - a * ratio, b * ratio - a) / denominator
    undefined = jnp.isnan(x) & jnp.isnan(y)
    by_infinity = undefined & is_finite(z) & is_infinite(w)
    of_infinity = undefined & is_finite(w) & is_infinite(z)
    by_zero = undefined & (c == 0) & (d == 0) & ~(jnp.isnan(a) & jnp.isnan(b))

    def corrected(a: Array, b: Array, c: Array, d: Array, scale: float) -> Pair:
        return Pair(scale * (a * c + b * d), scale * (b * c - a * d))

    result = choose(by_infinity, corrected(a, b, _unit(c), _unit(d), 0.0), Pair(x, y))
    result = choose(of_infinity, corrected(_unit(a), _unit(b), c, d, math.inf), result)
    infinity = _with_sign(c, math.inf)
    return choose(by_zero, Pair(infinity * a, infinity * b), result)


def reciprocal(z: Pair) -> Pair:
    """1 / z."""
    return divide(Pair(jnp.ones_like(z.real), jnp.zeros_like(z.real)), z)


def integer_power(z: Pair, y: int) -> Pair:
    """z**y, by squaring and multiplying."""
    result, exponent = None, abs(y)
    while exponent:
        if exponent & 1:
            result = z if result is None else multiply(result, z)
        exponent >>= 1
        if exponent:
            z = square(z)
    if result is None:
        return Pair(jnp.ones_like(z.real), jnp.zeros_like(z.real))
    return result if y > 0 else reciprocal(result)


def exp2(z: Pair) -> Pair:
    """2**z."""
    return exp(Pair(*(part * np.asarray(math.log(2), part.dtype) for part in z)))


def log2(z: Pair) -> Pair:
    """The principal logarithm in base 2."""
    return Pair(*(part * np.asarray(1 / math.log(2), part.dtype) for part in log(z)))


def one_minus_square(z: Pair) -> Pair:
    """1 - z z, as (1 - z) (1 + z)."""
    return multiply(Pair(1 - z.real, -z.imag), Pair(1 + z.real, z.imag))


def maximum(z: Pair, w: Pair) -> Pair:
    """The one with the larger real part; where these are equal, the larger imaginary part."""
    return choose(_is_ordered(z, w, jnp.greater), z, w)


def minimum(z: Pair, w: Pair) -> Pair:
    """The one with the smaller real part; where these are equal, the smaller imaginary part."""
    return choose(_is_ordered(z, w, jnp.less), z, w)


def clamp(low: Pair, z: Pair, high: Pair) -> Pair:
    """z, or the bound that its real part is beyond."""
    z = choose(low.real >= z.real, low, z)
    return choose(z.real <= high.real, z, high)


def _is_ordered(z: Pair, w: Pair, compare: Callable[[Array, Array], Array]) -> Array:
    is_equal = z.real == w.real
    return (is_equal & compare(z.imag, w.imag)) | (~is_equal & compare(z.real, w.real))


def exp(z: Pair) -> Pair:
    """e**z; NaN where the angle is none."""
    size = jnp.exp(z.real)
    turned = Pair(size * jnp.cos(z.imag), size * jnp.sin(z.imag))
    # Infinity times the sine of 0 is no number.
    real = jnp.where(z.imag == 0, size, turned.real)
    return Pair(real, jnp.where(z.imag == 0, z.imag, turned.imag))


def expm1(z: Pair) -> Pair:
    """e**z - 1, exact near zero: the real part is (e**x - 1) cos y - 2 sin(y / 2)**2."""
    x, y = z
    growth, half = jnp.expm1(x), jnp.sin(y / 2)
    real = jnp.where(y == 0, growth, growth * jnp.cos(y) - 2 * half * half)
    return Pair(real, exp(z).imag)


def log(z: Pair) -> Pair:
    """The principal logarithm; NaN in both parts where one part of z is."""
    result = Pair(jnp.log(absolute(z)), jnp.atan2(z.imag, z.real))
    return nan_where(is_nan(z), result)


def log1p(z: Pair) -> Pair:
    """log(1 + z), exact near zero, where |1 + z|**2 is 1 + x (2 + x) + y**2."""
    x, y = z
    near = (jnp.abs(x) < 0.5) & (jnp.abs(y) < 0.5)
    excess = jnp.where(near, x * (2 + x) + y * y, 0)
    result = log(Pair(1 + x, y))
    return Pair(jnp.where(near, jnp.log1p(excess) / 2, result.real), result.imag)


def logaddexp(z: Pair, w: Pair) -> Pair:
    """log(e**z + e**w), NaN for infinite real parts."""
    largest = jnp.maximum(z.real, w.real)
    powers = (exp(Pair(x.real - largest, x.imag)) for x in (z, w))
    total = log(add(*powers))
    return Pair(total.real + largest, total.imag)


def logistic(z: Pair) -> Pair:
    """1 / (1 + e**-z)."""
    power = exp(Pair(-z.real, -z.imag))
    return reciprocal(Pair(1 + power.real, power.imag))


def sqrt(z: Pair) -> Pair:
    """The root with the positive real part; on the negative axis the one above, for -0 too."""
    x, y = z
    width = jnp.abs(y)
    larger = jnp.sqrt(absolute(z) / 2 + jnp.abs(x) / 2)
    # 2 * larger * smaller = |y|, but for 0 / 0 and inf / inf.
    divisible = jnp.isfinite(y) & (y != 0)
    smaller = jnp.where(divisible, width / (2 * jnp.where(divisible, larger, 1)), width)
    right = x >= 0
    imag = jnp.where(right, smaller, larger)
    root = Pair(jnp.where(right, larger, smaller), jnp.where(y < 0, -imag, imag))
    return nan_where(is_nan(z), root)


def rsqrt(z: Pair) -> Pair:
    """1 / sqrt(z)."""
    return reciprocal(sqrt(z))


def sin(z: Pair) -> Pair:
    """sin x cosh y + i cos x sinh y."""
    x, y = z
    return Pair(
        jnp.where(x == 0, x, jnp.sin(x) * jnp.cosh(y)),
        jnp.where(y == 0, y, jnp.cos(x) * jnp.sinh(y)),
    )


def cos(z: Pair) -> Pair:
    """cos x cosh y - i sin x sinh y."""
    x, y = z
    flat = (x == 0) | (y == 0)
    return Pair(jnp.cos(x) * jnp.cosh(y), jnp.where(flat, 0, -jnp.sin(x) * jnp.sinh(y)))


def sinh(z: Pair) -> Pair:
    """-i sin(iz)."""
    result = sin(Pair(-z.imag, z.real))
    return Pair(result.imag, -result.real)


def cosh(z: Pair) -> Pair:
    """cos(iz)."""
    return cos(Pair(-z.imag, z.real))


def tanh(z: Pair) -> Pair:
    """sinh z / cosh z, by Kahan's formula, which divides nothing large by something large."""
    x, y = z
    far = jnp.abs(x) > 15
    tangent, sine = jnp.tan(y), jnp.sinh(jnp.where(far, 0, x))
    growth = 1 + tangent * tangent
    denominator = 1 + growth * sine * sine
    near = Pair(growth * jnp.sqrt(1 + sine * sine) * sine / denominator, tangent / denominator)
    small = 4 * jnp.sin(y) * jnp.cos(y) * jnp.exp(-2 * jnp.abs(x))
    return choose(far, Pair(jnp.where(x > 0, jnp.ones_like(x), -1), small), near)


def tan(z: Pair) -> Pair:
    """-i tanh(iz)."""
    result = tanh(Pair(-z.imag, z.real))
    return Pair(result.imag, -result.real)


def power(z: Pair, w: Pair) -> Pair:
    """z**w = |z|**c e**(-d arg z), turned by c arg z + d log|z|, where w = c + id."""
    (a, b), (c, d) = z, w
    size, angle = absolute(z), jnp.atan2(b, a)
    new_size = jnp.power(size, c) * jnp.exp(-d * angle)
    new_angle = c * angle + d * jnp.log(size)
    result = Pair(new_size * jnp.cos(new_angle), new_size * jnp.sin(new_angle))
    # Where the angle is 0 * inf: real powers of zero and of infinity.
    is_real = (b == 0) & (d == 0)
    is_real &= ((a == 0) & (c > 0)) | ((a == math.inf) & (c != 0))
    result = choose(is_real, Pair(jnp.power(size, c), jnp.zeros_like(size)), result)
    is_one = ((c == 0) & (d == 0)) | ((a == 1) & (b == 0))
    return choose(is_one, Pair(jnp.ones_like(size), jnp.zeros_like(size)), result)


def choose(which: Array, z: Pair, w: Pair) -> Pair:
    """z where `which`, and w elsewhere."""
    return Pair(jnp.where(which, z.real, w.real), jnp.where(which, z.imag, w.imag))


def nan_where(which: Array, z: Pair) -> Pair:
    """The numbers, those that `which` says with NaN in both parts."""
    return Pair(*(jnp.where(which, math.nan, part) for part in z))


def is_nan(z: Pair) -> Array:
    """Whether a part is NaN."""
    return jnp.isnan(z.real) | jnp.isnan(z.imag)


def is_finite(z: Pair) -> Array:
    """Whether both parts are finite."""
    return jnp.isfinite(z.real) & jnp.isfinite(z.imag)


def is_infinite(z: Pair) -> Array:
    """Whether a part is infinite, whatever the other."""
    return (jnp.abs(z.real) == math.inf) | (jnp.abs(z.imag) == math.inf)


def _with_sign(x: Array, size: float) -> Array:
    """A number of that size with the sign of x, which may be that of a zero."""
    x = jnp.asarray(x)
    # Without jnp.signbit, whose bits engines cannot see.
    is_negative = (x < 0) | ((x == 0) & (1 / x < 0))
    return jnp.where(is_negative, jnp.full_like(x, -size), size)


def _unit(x: Array) -> Array:
    """1 for infinities and 0 for the rest, of x's sign."""
    return jnp.where(jnp.abs(x) == math.inf, _with_sign(x, 1.0), _with_sign(x, 0.0))
