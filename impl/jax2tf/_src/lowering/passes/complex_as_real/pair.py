"""A complex array as two real ones, and the arithmetic of them, in JAX.

The values are those of JAX's own complex numbers, at infinities, NaNs and branch cuts too;
_src/lowering/emit/complex_math.py says the same for TensorFlow's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.util.typing import Array


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
    """z z, whose real part is (x + y) (x - y): squares of parts may overflow."""
    x, y = z
    real = jnp.where(jnp.abs(x) == jnp.abs(y), 0 * (x - x), (x + y) * (x - y))
    imag = x * y
    return Pair(real, imag + imag)


def equal(z: Pair, w: Pair) -> Array:
    """Whether both parts are equal."""
    return (z.real == w.real) & (z.imag == w.imag)


def conjugate(z: Pair) -> Pair:
    """The number on the other side of the real axis."""
    return Pair(z.real, -z.imag)


def absolute(z: Pair) -> Array:
    """|z|, without squares that overflow; infinite if a part is, whatever the other."""
    larger, ratio = _sorted_sizes(z)
    return jnp.where(is_infinite(z), math.inf, larger * jnp.sqrt(1 + ratio * ratio))


def _sorted_sizes(z: Pair) -> tuple[Array, Array]:
    """The size of the larger part, and that of the smaller one divided by it."""
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    # A NaN is in one of the two, whichever way they are compared.
    wide = x > y
    larger, smaller = jnp.where(wide, x, y), jnp.where(wide, y, x)
    return larger, smaller / jnp.where(larger == 0, 1, larger)


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
            # Not by `square`, which is another function of infinities.
            z = multiply(z, z)
    if result is None:
        return Pair(jnp.ones_like(z.real), jnp.zeros_like(z.real))
    return result if y > 0 else reciprocal(result)


def exp2(z: Pair) -> Pair:
    """2**z, by a product with a complex number: an infinite exponent gives no number."""
    scale = np.asarray(math.log(2), z.real.dtype)
    return exp(multiply(z, Pair(scale, np.zeros_like(scale))))


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
    turned = Pair(_grown(z.real, jnp.cos(z.imag)), _grown(z.real, jnp.sin(z.imag)))
    # Infinity times the sine of 0 is no number.
    real = jnp.where(z.imag == 0, jnp.exp(z.real), turned.real)
    return Pair(real, jnp.where(z.imag == 0, z.imag, turned.imag))


def _grown(x: Array, factor: Array) -> Array:
    """e**x * factor, also where e**x overflows and the product does not."""
    size, half = jnp.exp(x), jnp.exp(x / 2)
    return jnp.where(size == math.inf, half * factor * half, size * factor)


def expm1(z: Pair) -> Pair:
    """e**z - 1, exact near zero: the real part is (e**x - 1) cos y - 2 sin(y / 2)**2."""
    x, y = z
    growth, half = jnp.expm1(x), jnp.sin(y / 2)
    real = jnp.where(y == 0, growth, growth * jnp.cos(y) - 2 * half * half)
    return Pair(real, exp(z).imag)


def log(z: Pair) -> Pair:
    """The principal logarithm; NaN in both parts where one part of z is."""
    return nan_where(is_nan(z), Pair(log_of_size(z), jnp.atan2(z.imag, z.real)))


def log_of_size(z: Pair) -> Array:
    """log|z|, also where |z| is near 1 or overflows; infinite if a part is, whatever the other."""
    larger, ratio = _sorted_sizes(z)
    size = jnp.log(larger) + jnp.log1p(ratio * ratio) / 2
    return jnp.where(is_infinite(z), math.inf, size)


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
    scale = _scale_of_squares(z)
    root = _upper_sqrt(Pair(z.real * scale * scale, jnp.abs(z.imag) * scale * scale))
    imag = root.imag / scale
    # By the number itself, of whose imaginary part the scale may leave nothing.
    return Pair(root.real / scale, jnp.where(z.imag < 0, -imag, imag))


def _scale_of_squares(z: Pair) -> Array:
    """A power of two whose square brings a large or a small number near 1."""
    exponent = -np.finfo(z.real.dtype).minexp // 4
    size = jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag))
    scale = jnp.where(size > 4.0**exponent, 0.5**exponent, jnp.ones_like(size))
    return jnp.where(size < 0.25**exponent, 2.0**exponent, scale)


def _upper_sqrt(z: Pair) -> Pair:
    """The root of a number with a positive imaginary part, or none."""
    x, y = z
    larger = jnp.sqrt(absolute(z) / 2 + jnp.abs(x) / 2)
    # 2 * larger * smaller is y. The quotient is not computed where it is 0 / 0 or inf / inf.
    divisible = jnp.isfinite(y) & (y != 0)
    smaller = jnp.where(divisible, y / (2 * jnp.where(divisible, larger, 1)), y)
    right = x >= 0
    root = Pair(jnp.where(right, larger, smaller), jnp.where(right, smaller, larger))
    return nan_where(is_nan(z), root)


def rsqrt(z: Pair) -> Pair:
    """|z|**-1/2, turned by half of the angle of z; 0 for infinities."""
    larger, ratio = _sorted_sizes(z)
    size = lax.rsqrt(larger) / jnp.sqrt(jnp.sqrt(1 + ratio * ratio))
    half_angle = jnp.atan2(z.imag, z.real) / 2
    root = Pair(size * jnp.cos(half_angle), -size * jnp.sin(half_angle))
    zero = jnp.zeros_like(size)
    root = choose((z.real == 0) & (z.imag == 0), Pair(zero + math.inf, zero + math.nan), root)
    return choose(is_infinite(z), Pair(zero, -zero), root)


def sin(z: Pair) -> Pair:
    """sin x cosh y + i cos x sinh y."""
    x, y = z
    return Pair(jnp.where(x == 0, x, jnp.sin(x) * jnp.cosh(y)), jnp.cos(x) * jnp.sinh(y))


def cos(z: Pair) -> Pair:
    """cos x cosh y - i sin x sinh y."""
    x, y = z
    return Pair(jnp.cos(x) * jnp.cosh(y), jnp.where(x == 0, 0, -jnp.sin(x) * jnp.sinh(y)))


def sinh(z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    odd, even = _hyperbolic(z)
    return Pair(odd.real, jnp.where(z.imag == 0, z.imag, even.imag))


def cosh(z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    odd, even = _hyperbolic(z)
    return Pair(even.real, jnp.where(z.imag == 0, 0, odd.imag))


def _hyperbolic(z: Pair) -> tuple[Pair, Pair]:
    """e**iy sinh x and e**iy cosh x, also where these overflow and their parts do not."""
    x, y = z
    turned = Pair(jnp.cos(y), jnp.sin(y))
    sine, cosine, half = jnp.sinh(x), jnp.cosh(x), jnp.exp(jnp.abs(x) / 2)
    far = Pair(*(half * part * (half / 2) for part in turned))
    is_far = cosine == math.inf
    odd = choose(x < 0, Pair(-far.real, -far.imag), far)
    near_odd, near_even = (Pair(*(size * part for part in turned)) for size in (sine, cosine))
    return choose(is_far, odd, near_odd), choose(is_far, far, near_even)


def tanh(z: Pair) -> Pair:
    """sinh z / cosh z, by Kahan's formula, which divides nothing large by something large."""
    x, y = z
    far = jnp.abs(x) > 15
    tangent, sine = jnp.tan(y), jnp.sinh(jnp.where(far, 0, x))
    growth = 1 + tangent * tangent
    denominator = 1 + growth * sine * sine
    near = Pair(growth * jnp.sqrt(1 + sine * sine) * sine / denominator, tangent / denominator)
    small = 4 * jnp.sin(y) * jnp.cos(y) * jnp.exp(-2 * jnp.abs(x))
    one = jnp.where(x > 0, jnp.ones_like(x), -1)
    result = nan_where(~jnp.isfinite(y), choose(far, Pair(one, small), near))
    # At infinity the angle does not count, and the tangent of a NaN has none.
    result = choose(jnp.abs(x) == math.inf, Pair(one, jnp.zeros_like(y)), result)
    return Pair(result.real, jnp.where(y == 0, y, result.imag))


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
    is_real &= ((a == 0) & (c > 0)) | ((a == math.inf) & ((c > 0) | (c < 0)))
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
