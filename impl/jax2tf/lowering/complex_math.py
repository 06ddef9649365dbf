"""Functions of complex numbers with the values that JAX gives at infinities, NaNs and branch cuts.

TensorFlow's CPU kernels call C++'s std::complex functions, which follow C99's Annex G; its compiled
code has XLA's formulas, which JAX uses too, with NaNs dropped by min and max. Where the kernel
agrees with JAX on finite numbers it is kept, and what differs is put right around it; the other
functions are composed of real ones.
"""

from __future__ import annotations

import math

import tensorflow as tf

raw = tf.raw_ops


def absolute(z: tf.Tensor) -> tf.Tensor:
    """|z|; infinite if a part is, whatever the other."""
    size = tf.where(_is_nan(z), _nan(_parts(z)[0].dtype), tf.abs(z))
    return tf.where(_is_infinite(z), tf.constant(math.inf, size.dtype), size)


def sign(z: tf.Tensor) -> tf.Tensor:
    """z / |z| part by part, and z itself for zeros."""
    size = absolute(z)
    parts = tf.complex(tf.math.real(z) / size, tf.math.imag(z) / size)
    return tf.where(tf.equal(size, 0), z, parts)


def exp(z: tf.Tensor) -> tf.Tensor:
    """e**z; NaN where the angle is none."""
    return tf.where(tf.math.is_finite(tf.math.imag(z)), raw.Exp(x=z), _nan(z.dtype))


def expm1(z: tf.Tensor) -> tf.Tensor:
    """e**z - 1, exact near zero: e**x cos y - 1 = (e**x - 1) cos y - 2 sin(y/2)**2."""
    x, y = _parts(z)
    real = raw.Expm1(x=x) * tf.cos(y) - 2 * tf.square(tf.sin(y / 2))
    return tf.complex(real, _zero_with(y, tf.exp(x) * tf.sin(y)))


def log(z: tf.Tensor) -> tf.Tensor:
    """The principal logarithm; NaN in both parts where one part of z is."""
    return _nan_for_nan(z, raw.Log(x=z))


def log2(z: tf.Tensor) -> tf.Tensor:
    """The principal logarithm in base 2."""
    x, y = _parts(log(z))
    return tf.complex(x * (1 / math.log(2)), y * (1 / math.log(2)))


def log1p(z: tf.Tensor) -> tf.Tensor:
    """log(1 + z); TensorFlow's kernel has no infinities."""
    return _nan_for_nan(z, tf.where(_is_finite(z), raw.Log1p(x=z), raw.Log(x=z)))


def logistic(z: tf.Tensor) -> tf.Tensor:
    """1 / (1 + e**-z); NaN where the angle is none."""
    return tf.where(tf.math.is_finite(tf.math.imag(z)), raw.Sigmoid(x=z), _nan(z.dtype))


def sqrt(z: tf.Tensor) -> tf.Tensor:
    """The root with the positive real part; on the negative axis the one above, for -0 too."""
    x, y = _parts(z)
    width = tf.abs(y)
    larger = tf.sqrt(tf.abs(z) / 2 + tf.abs(x) / 2)
    # 2 * larger * smaller = |y|, but for 0 / 0 and inf / inf.
    divisible = tf.math.is_finite(y) & tf.not_equal(y, 0)
    smaller = tf.where(divisible, width / (2 * larger), width)
    right = x >= 0
    imag = tf.where(right, smaller, larger)
    root = tf.complex(tf.where(right, larger, smaller), tf.where(y < 0, -imag, imag))
    return _nan_for_nan(z, root)


def rsqrt(z: tf.Tensor) -> tf.Tensor:
    """1 / sqrt(z); below the negative axis, which has -0 above it, the other root."""
    x, y = _parts(z)
    upper = raw.Rsqrt(x=tf.complex(x, tf.abs(y)))
    return tf.where(_is_negative(y), tf.math.conj(upper), upper)


def sin(z: tf.Tensor) -> tf.Tensor:
    """sin x cosh y + i cos x sinh y."""
    x, y = _parts(z)
    return tf.complex(_zero_with(x, tf.sin(x) * tf.cosh(y)), tf.cos(x) * tf.sinh(y))


def cos(z: tf.Tensor) -> tf.Tensor:
    """cos x cosh y - i sin x sinh y."""
    x, y = _parts(z)
    return tf.complex(tf.cos(x) * tf.cosh(y), _zero_with(x, -tf.sin(x) * tf.sinh(y)))


def tan(z: tf.Tensor) -> tf.Tensor:
    """sin z / cos z; NaN in both parts where the real part is; that is no negative zero."""
    x, y = _parts(raw.Tan(x=z))
    return tf.complex(_without_sign(x), tf.where(tf.math.is_nan(x), x, y))


def tanh(z: tf.Tensor) -> tf.Tensor:
    """sinh z / cosh z; NaN in both parts where the imaginary part is; that is no negative zero."""
    x, y = _parts(raw.Tanh(x=z))
    return tf.complex(tf.where(tf.math.is_nan(y), y, x), _without_sign(y))


def sinh(z: tf.Tensor) -> tf.Tensor:
    """sinh x cos y + i cosh x sin y; no zero is negative."""
    x, y = _parts(z)
    real = _without_sign(tf.sinh(x) * tf.cos(y))
    return tf.complex(real, _zero_with(y, tf.cosh(x) * tf.sin(y)))


def cosh(z: tf.Tensor) -> tf.Tensor:
    """cosh x cos y + i sinh x sin y; no zero is negative."""
    x, y = _parts(z)
    imag = _without_sign(tf.sinh(x) * tf.sin(y))
    return tf.complex(tf.cosh(x) * tf.cos(y), _zero_with(y, imag))


# The inverse functions. The sign of a zero chooses the side of a branch cut; JAX's have but one.


def acos(z: tf.Tensor) -> tf.Tensor:
    """The angle whose cosine is z; on the cuts, those of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Acos(x=_above(z)))


def acosh(z: tf.Tensor) -> tf.Tensor:
    """The inverse of cosh; on the cut, that of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Acosh(x=_above(z)))


def asin(z: tf.Tensor) -> tf.Tensor:
    """The angle whose sine is z; on the cuts, those of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Asin(x=_above(z)))


def asinh(z: tf.Tensor) -> tf.Tensor:
    """The inverse of sinh; on the cuts, that of the numbers right of the imaginary axis."""
    return _nan_for_finite_nan(z, raw.Asinh(x=_right(z)))


def atanh(z: tf.Tensor) -> tf.Tensor:
    """The inverse of tanh; its angle is a right one for whatever is not finite."""
    x, y = _parts(z)
    zero = tf.zeros_like(x)
    quarter_turn = tf.fill(tf.shape(x), tf.constant(math.pi / 2, x.dtype))
    far = tf.complex(
        tf.where(_is_infinite(z), tf.where(x >= 0, zero, -zero), _nan(x.dtype)),
        tf.where(y >= 0, quarter_turn, -quarter_turn),
    )
    return tf.where(_is_finite(z), raw.Atanh(x=_right(z)), far)


def atan(z: tf.Tensor) -> tf.Tensor:
    """The angle whose tangent is z: -i atanh(iz)."""
    x, y = _parts(z)
    x, y = _parts(atanh(tf.complex(-y, x)))
    return tf.complex(y, -x)


def divide(z: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """z / w, by Smith's method, with C99's quotients (Annex G.5.1) of zeros and infinities."""
    (a, b), (c, d) = _parts(z), _parts(w)
    wide = tf.abs(c) >= tf.abs(d)
    ratio = tf.where(wide, d, c) / tf.where(wide, c, d)
    denominator = tf.where(wide, c + d * ratio, c * ratio + d)
    x = tf.where(wide, a + b * ratio, a * ratio + b) / denominator
    y = tf.where(wide, b - a * ratio, b * ratio - a) / denominator

    def corrected(
        a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor, scale: float
    ) -> tf.Tensor:
        return tf.complex(scale * (a * c + b * d), scale * (b * c - a * d))

    infinity = _signed(c, math.inf)
    by_zero = tf.complex(infinity * a, infinity * b)
    of_infinity = corrected(_unit(a), _unit(b), c, d, math.inf)
    by_infinity = corrected(a, b, _unit(c), _unit(d), 0.0)
    finite_z, finite_w = _is_finite(z), _is_finite(w)
    result = tf.complex(x, y)
    undefined = tf.math.is_nan(x) & tf.math.is_nan(y)
    result = tf.where(undefined & finite_z & _is_infinite(w), by_infinity, result)
    result = tf.where(undefined & finite_w & _is_infinite(z), of_infinity, result)
    return tf.where(undefined & tf.equal(w, 0) & ~(_is_nan(a) & _is_nan(b)), by_zero, result)


def reciprocal(z: tf.Tensor) -> tf.Tensor:
    """1 / z."""
    return divide(tf.ones_like(z), z)


def atan2(y: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """-i log((x + iy) / sqrt(x**2 + y**2))."""
    i = tf.constant(1j, x.dtype)
    return -i * log(divide(x + i * y, sqrt(x * x + y * y)))


def power(z: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """z**w = |z|**c e**(-d arg z), turned by c arg z + d log|z|, where w = c + id."""
    (a, b), (c, d) = _parts(z), _parts(w)
    size, angle = absolute(z), tf.math.atan2(b, a)
    new_size = tf.pow(size, c) * tf.exp(-d * angle)
    new_angle = c * angle + d * tf.math.log(size)
    result = tf.complex(new_size * tf.cos(new_angle), new_size * tf.sin(new_angle))
    # Where the angle is 0 * inf: real powers of zero and of infinity.
    real = tf.equal(b, 0) & tf.equal(d, 0)
    real &= (tf.equal(a, 0) & (c > 0)) | (tf.equal(a, math.inf) & ((c > 0) | (c < 0)))
    result = tf.where(real, tf.complex(tf.pow(size, c), tf.zeros_like(d)), result)
    return tf.where(tf.equal(w, 0) | tf.equal(z, 1), tf.ones_like(result), result)


def _parts(z: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.math.real(z), tf.math.imag(z)


def _is_nan(z: tf.Tensor) -> tf.Tensor:
    return tf.not_equal(z, z)


def _is_finite(z: tf.Tensor) -> tf.Tensor:
    return tf.math.is_finite(tf.math.real(z)) & tf.math.is_finite(tf.math.imag(z))


def _is_infinite(z: tf.Tensor) -> tf.Tensor:
    return tf.math.is_inf(tf.math.real(z)) | tf.math.is_inf(tf.math.imag(z))


def _is_negative(x: tf.Tensor) -> tf.Tensor:
    """Whether x has a sign, -0 included."""
    return tf.math.atan2(x, tf.constant(-1, x.dtype)) < 0


def _signed(sign: tf.Tensor, size: float) -> tf.Tensor:
    size = tf.constant(size, sign.dtype)
    return tf.where(_is_negative(sign), -size, size)


def _unit(x: tf.Tensor) -> tf.Tensor:
    """1 for infinities and 0 for the rest, of x's sign."""
    return tf.where(tf.math.is_inf(x), _signed(x, 1.0), _signed(x, 0.0))


def _nan(dtype: tf.DType) -> tf.Tensor:
    return tf.constant(complex(math.nan, math.nan) if dtype.is_complex else math.nan, dtype)


def _nan_for_nan(z: tf.Tensor, result: tf.Tensor) -> tf.Tensor:
    return tf.where(_is_nan(z), _nan(z.dtype), result)


def _nan_for_finite_nan(z: tf.Tensor, result: tf.Tensor) -> tf.Tensor:
    """NaN in both parts where one part of z is and the other is not infinite."""
    return tf.where(_is_nan(z) & ~_is_infinite(z), _nan(z.dtype), result)


def _above(z: tf.Tensor) -> tf.Tensor:
    """z, with the real axis as the numbers just above it."""
    return tf.complex(tf.math.real(z), _without_sign(tf.math.imag(z)))


def _right(z: tf.Tensor) -> tf.Tensor:
    """z, with the imaginary axis as the numbers just right of it."""
    return tf.complex(_without_sign(tf.math.real(z)), tf.math.imag(z))


def _without_sign(x: tf.Tensor) -> tf.Tensor:
    """x, and 0 where it is -0. TensorFlow takes x + 0 out of a graph."""
    return _zero_with(x, x)


def _zero_with(other: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """x, and 0 where `other` is 0."""
    return tf.where(tf.equal(other, 0), tf.zeros([], x.dtype), x)
