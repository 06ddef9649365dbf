"""Represents a complex array as two real arrays, with arithmetic in JAX.

The results equal those of JAX's own complex numbers, also at infinities, NaNs and branch cuts.
_src/lowering/emit/complex_math.py does the same for TensorFlow's complex numbers.
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
    """A complex array as its real and its imaginary part, which have one shape and dtype."""

    real: Array
    imag: Array


# A value of a complex program: a Pair for a complex array, otherwise the array itself.
Value: TypeAlias = Array | Pair


def is_complex(aval: object) -> bool:
    """Whether an aval has a complex dtype."""
    return bool(jnp.issubdtype(getattr(aval, "dtype", np.bool_), np.complexfloating))


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of the parts of complex numbers."""
    return np.zeros((), dtype).real.dtype


def add(z: Pair, w: Pair) -> Pair:
    """Returns z + w."""
    return Pair(z.real + w.real, z.imag + w.imag)


def multiply(z: Pair, w: Pair) -> Pair:
    """Returns z w."""
    return Pair(z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real)


def square(z: Pair) -> Pair:
    """Returns z z. Its real part is (x + y) (x - y), because squares of parts may overflow."""
    x, y = z
    real = jnp.where(jnp.abs(x) == jnp.abs(y), 0 * (x - x), (x + y) * (x - y))
    imag = x * y
    return Pair(real, imag + imag)


def equal(z: Pair, w: Pair) -> Array:
    """Whether both parts are equal."""
    return (z.real == w.real) & (z.imag == w.imag)


def conjugate(z: Pair) -> Pair:
    """Returns the complex conjugate."""
    return Pair(z.real, -z.imag)


def absolute(z: Pair) -> Array:
    """Returns |z| without squares that overflow. It is infinite if any part is infinite."""
    larger, ratio = _sorted_sizes(z)
    return jnp.where(is_infinite(z), math.inf, larger * jnp.sqrt(1 + ratio * ratio))


def _sorted_sizes(z: Pair) -> tuple[Array, Array]:
    """Returns the size of the larger part, and the smaller size divided by the larger."""
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    # Whatever the comparison says, a NaN ends up in one of the two sizes.
    wide = x > y
    larger, smaller = jnp.where(wide, x, y), jnp.where(wide, y, x)
    return larger, smaller / jnp.where(larger == 0, 1, larger)


def sign(z: Pair) -> Pair:
    """Returns z / |z|, computed for each part, and z itself for zeros."""
    size = absolute(z)
    is_zero = size == 0
    return choose(is_zero, z, Pair(z.real / size, z.imag / size))


def divide(z: Pair, w: Pair) -> Pair:
    """Returns z / w by Smith's method, with C99's quotients (Annex G.5.1) of 0 and infinity."""
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
    """Returns 1 / z."""
    return divide(Pair(jnp.ones_like(z.real), jnp.zeros_like(z.real)), z)


def integer_power(z: Pair, y: int) -> Pair:
    """Returns z**y, by squaring and multiplying."""
    result, exponent = None, abs(y)
    while exponent:
        if exponent & 1:
            result = z if result is None else multiply(result, z)
        exponent >>= 1
        if exponent:
            # `square` would give other results for infinities.
            z = multiply(z, z)
    if result is None:
        return Pair(jnp.ones_like(z.real), jnp.zeros_like(z.real))
    return result if y > 0 else reciprocal(result)


def exp2(z: Pair) -> Pair:
    """Returns 2**z. It multiplies by a complex number, so an infinite exponent gives NaN."""
    scale = np.asarray(math.log(2), z.real.dtype)
    return exp(multiply(z, Pair(scale, np.zeros_like(scale))))


def log2(z: Pair) -> Pair:
    """Returns the principal logarithm in base 2."""
    return Pair(*(part * np.asarray(1 / math.log(2), part.dtype) for part in log(z)))


def one_minus_square(z: Pair) -> Pair:
    """Returns 1 - z z, as (1 - z) (1 + z)."""
    return multiply(Pair(1 - z.real, -z.imag), Pair(1 + z.real, z.imag))


def maximum(z: Pair, w: Pair) -> Pair:
    """Returns the number with the larger real part; if equal, the larger imaginary part."""
    return choose(_is_ordered(z, w, jnp.greater), z, w)


def minimum(z: Pair, w: Pair) -> Pair:
    """Returns the number with the smaller real part; if equal, the smaller imaginary part."""
    return choose(_is_ordered(z, w, jnp.less), z, w)


def clamp(low: Pair, z: Pair, high: Pair) -> Pair:
    """Returns z, or the bound that its real part is beyond."""
    z = choose(low.real >= z.real, low, z)
    return choose(z.real <= high.real, z, high)


def _is_ordered(z: Pair, w: Pair, compare: Callable[[Array, Array], Array]) -> Array:
    is_equal = z.real == w.real
    return (is_equal & compare(z.imag, w.imag)) | (~is_equal & compare(z.real, w.real))


def exp(z: Pair) -> Pair:
    """Returns e**z; it is NaN if the angle is not a finite number."""
    turned = Pair(_grown(z.real, jnp.cos(z.imag)), _grown(z.real, jnp.sin(z.imag)))
    # Infinity times the sine of 0 would be NaN.
    real = jnp.where(z.imag == 0, jnp.exp(z.real), turned.real)
    return Pair(real, jnp.where(z.imag == 0, z.imag, turned.imag))


def _grown(x: Array, factor: Array) -> Array:
    """Returns e**x * factor, also if e**x overflows and the product does not."""
    size, half = jnp.exp(x), jnp.exp(x / 2)
    return jnp.where(size == math.inf, half * factor * half, size * factor)


def expm1(z: Pair) -> Pair:
    """Returns e**z - 1, exact near 0: the real part is (e**x - 1) cos y - 2 sin(y / 2)**2."""
    x, y = z
    growth, half = jnp.expm1(x), jnp.sin(y / 2)
    real = jnp.where(y == 0, growth, growth * jnp.cos(y) - 2 * half * half)
    return Pair(real, exp(z).imag)


def log(z: Pair) -> Pair:
    """Returns the principal logarithm; both parts are NaN if one part of z is NaN."""
    return nan_where(is_nan(z), Pair(log_of_size(z), jnp.atan2(z.imag, z.real)))


def log_of_size(z: Pair) -> Array:
    """Returns log|z|, also near 1 and if |z| overflows; infinite if any part is infinite."""
    larger, ratio = _sorted_sizes(z)
    size = jnp.log(larger) + jnp.log1p(ratio * ratio) / 2
    return jnp.where(is_infinite(z), math.inf, size)


def log1p(z: Pair) -> Pair:
    """Returns log(1 + z), exact near 0, where it uses |1 + z|**2 = 1 + x (2 + x) + y**2."""
    x, y = z
    near = (jnp.abs(x) < 0.5) & (jnp.abs(y) < 0.5)
    excess = jnp.where(near, x * (2 + x) + y * y, 0)
    result = log(Pair(1 + x, y))
    return Pair(jnp.where(near, jnp.log1p(excess) / 2, result.real), result.imag)


def logaddexp(z: Pair, w: Pair) -> Pair:
    """Returns log(e**z + e**w), which is NaN for infinite real parts."""
    largest = jnp.maximum(z.real, w.real)
    powers = (exp(Pair(x.real - largest, x.imag)) for x in (z, w))
    total = log(add(*powers))
    return Pair(total.real + largest, total.imag)


def logistic(z: Pair) -> Pair:
    """Returns 1 / (1 + e**-z)."""
    power = exp(Pair(-z.real, -z.imag))
    return reciprocal(Pair(1 + power.real, power.imag))


def sqrt(z: Pair) -> Pair:
    """Returns the root with the positive real part; on the negative axis (for -0 too) the upper."""
    scale = _scale_of_squares(z)
    root = _upper_sqrt(Pair(z.real * scale * scale, jnp.abs(z.imag) * scale * scale))
    imag = root.imag / scale
    # The sign comes from z itself, because the scale may make its imaginary part zero.
    return Pair(root.real / scale, jnp.where(z.imag < 0, -imag, imag))


def _scale_of_squares(z: Pair) -> Array:
    """Returns a power of two whose square scales large and small numbers to near 1."""
    exponent = -np.finfo(z.real.dtype).minexp // 4
    size = jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag))
    scale = jnp.where(size > 4.0**exponent, 0.5**exponent, jnp.ones_like(size))
    return jnp.where(size < 0.25**exponent, 2.0**exponent, scale)


def _upper_sqrt(z: Pair) -> Pair:
    """Returns the root of a number with an imaginary part that is positive or zero."""
    x, y = z
    larger = jnp.sqrt(absolute(z) / 2 + jnp.abs(x) / 2)
    # 2 * larger * smaller equals y. The quotient is skipped if it is 0 / 0 or inf / inf.
    divisible = jnp.isfinite(y) & (y != 0)
    smaller = jnp.where(divisible, y / (2 * jnp.where(divisible, larger, 1)), y)
    right = x >= 0
    root = Pair(jnp.where(right, larger, smaller), jnp.where(right, smaller, larger))
    return nan_where(is_nan(z), root)


def rsqrt(z: Pair) -> Pair:
    """Returns |z|**-1/2 turned by minus half the angle of z; 0 for infinities."""
    larger, ratio = _sorted_sizes(z)
    size = lax.rsqrt(larger) / jnp.sqrt(jnp.sqrt(1 + ratio * ratio))
    half_angle = jnp.atan2(z.imag, z.real) / 2
    root = Pair(size * jnp.cos(half_angle), -size * jnp.sin(half_angle))
    zero = jnp.zeros_like(size)
    root = choose((z.real == 0) & (z.imag == 0), Pair(zero + math.inf, zero + math.nan), root)
    return choose(is_infinite(z), Pair(zero, -zero), root)


def sin(z: Pair) -> Pair:
    """Returns sin x cosh y + i cos x sinh y."""
    x, y = z
    return Pair(jnp.where(x == 0, x, jnp.sin(x) * jnp.cosh(y)), jnp.cos(x) * jnp.sinh(y))


def cos(z: Pair) -> Pair:
    """Returns cos x cosh y - i sin x sinh y."""
    x, y = z
    return Pair(jnp.cos(x) * jnp.cosh(y), jnp.where(x == 0, 0, -jnp.sin(x) * jnp.sinh(y)))


def sinh(z: Pair) -> Pair:
    """Returns sinh x cos y + i cosh x sin y."""
    odd, even = _hyperbolic(z)
    return Pair(odd.real, jnp.where(z.imag == 0, z.imag, even.imag))


def cosh(z: Pair) -> Pair:
    """Returns cosh x cos y + i sinh x sin y."""
    odd, even = _hyperbolic(z)
    return Pair(even.real, jnp.where(z.imag == 0, 0, odd.imag))


def _hyperbolic(z: Pair) -> tuple[Pair, Pair]:
    """Returns e**iy sinh x and e**iy cosh x, also if sinh x overflows and the parts do not."""
    x, y = z
    turned = Pair(jnp.cos(y), jnp.sin(y))
    sine, cosine, half = jnp.sinh(x), jnp.cosh(x), jnp.exp(jnp.abs(x) / 2)
    far = Pair(*(half * part * (half / 2) for part in turned))
    is_far = cosine == math.inf
    odd = choose(x < 0, Pair(-far.real, -far.imag), far)
    near_odd, near_even = (Pair(*(size * part for part in turned)) for size in (sine, cosine))
    return choose(is_far, odd, near_odd), choose(is_far, far, near_even)


def tanh(z: Pair) -> Pair:
    """Returns sinh z / cosh z by Kahan's formula, which never divides two large numbers."""
    x, y = z
    far = jnp.abs(x) > 15
    tangent, sine = jnp.tan(y), jnp.sinh(jnp.where(far, 0, x))
    growth = 1 + tangent * tangent
    denominator = 1 + growth * sine * sine
    near = Pair(growth * jnp.sqrt(1 + sine * sine) * sine / denominator, tangent / denominator)
    small = 4 * jnp.sin(y) * jnp.cos(y) * jnp.exp(-2 * jnp.abs(x))
    one = jnp.where(x > 0, jnp.ones_like(x), -1)
    result = nan_where(~jnp.isfinite(y), choose(far, Pair(one, small), near))
    # If x is infinite, the angle y does not matter, even if it is NaN.
    result = choose(jnp.abs(x) == math.inf, Pair(one, jnp.zeros_like(y)), result)
    return Pair(result.real, jnp.where(y == 0, y, result.imag))


def tan(z: Pair) -> Pair:
    """Returns -i tanh(iz)."""
    result = tanh(Pair(-z.imag, z.real))
    return Pair(result.imag, -result.real)


def power(z: Pair, w: Pair) -> Pair:
    """Returns z**w = |z|**c e**(-d arg z), turned by c arg z + d log|z|, for w = c + id."""
    (a, b), (c, d) = z, w
    size, angle = absolute(z), jnp.atan2(b, a)
    new_size = jnp.power(size, c) * jnp.exp(-d * angle)
    new_angle = c * angle + d * jnp.log(size)
    result = Pair(new_size * jnp.cos(new_angle), new_size * jnp.sin(new_angle))
    # Real powers of zero and of infinity would have the angle 0 * inf.
    is_real = (b == 0) & (d == 0)
    is_real &= ((a == 0) & (c > 0)) | ((a == math.inf) & ((c > 0) | (c < 0)))
    result = choose(is_real, Pair(jnp.power(size, c), jnp.zeros_like(size)), result)
    is_one = ((c == 0) & (d == 0)) | ((a == 1) & (b == 0))
    return choose(is_one, Pair(jnp.ones_like(size), jnp.zeros_like(size)), result)


def choose(which: Array, z: Pair, w: Pair) -> Pair:
    """Returns z where `which` is True, and w elsewhere."""
    return Pair(jnp.where(which, z.real, w.real), jnp.where(which, z.imag, w.imag))


def nan_where(which: Array, z: Pair) -> Pair:
    """Puts NaN in both parts where `which` is True."""
    return Pair(*(jnp.where(which, math.nan, part) for part in z))


def is_nan(z: Pair) -> Array:
    """Whether a part is NaN."""
    return jnp.isnan(z.real) | jnp.isnan(z.imag)


def is_finite(z: Pair) -> Array:
    """Whether both parts are finite."""
    return jnp.isfinite(z.real) & jnp.isfinite(z.imag)


def is_infinite(z: Pair) -> Array:
    """Whether any part is infinite, even if the other is NaN."""
    return (jnp.abs(z.real) == math.inf) | (jnp.abs(z.imag) == math.inf)


def _with_sign(x: Array, size: float) -> Array:
    """Returns `size` with the sign of x; zeros have signs, too."""
    x = jnp.asarray(x)
    # jnp.signbit reads bits, which engines cannot do.
    is_negative = (x < 0) | ((x == 0) & (1 / x < 0))
    return jnp.where(is_negative, jnp.full_like(x, -size), size)


def _unit(x: Array) -> Array:
    """Returns 1 for infinities and 0 for other numbers, with the sign of x."""
    return jnp.where(jnp.abs(x) == math.inf, _with_sign(x, 1.0), _with_sign(x, 0.0))
