"""Functions of complex numbers that agree with JAX at infinities, NaNs and branch cuts.

TensorFlow's CPU kernels call C++'s std::complex functions, which follow C99's Annex G. Its compiled
code uses XLA's formulas, as JAX does, except that min and max drop NaNs. If the kernel agrees with
JAX on finite numbers, it is used and its other results are corrected. The remaining functions are
composed of real functions.
"""

from __future__ import annotations

import math

from jax2tf._src import ops
from jax2tf._src.ops import raw
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor


def absolute(z: Tensor) -> Tensor:
    """|z|; infinite if one part is infinite, even if the other is NaN."""
    size = ops.where(_is_nan(z), _nan(_parts(z)[0].dtype), ops.abs(z))
    return ops.where(_is_infinite(z), ops.constant(math.inf, size.dtype), size)


def sign(z: Tensor) -> Tensor:
    """z / |z| part by part, and z itself for zeros."""
    size = absolute(z)
    parts = ops.complex(ops.real(z) / size, ops.imag(z) / size)
    return ops.where(ops.equal(size, 0), z, parts)


def exp(z: Tensor) -> Tensor:
    """e**z; NaN where the imaginary part is not finite."""
    return ops.where(ops.is_finite(ops.imag(z)), raw.Exp(x=z), _nan(z.dtype))


def expm1(z: Tensor) -> Tensor:
    """e**z - 1, exact near zero: e**x cos y - 1 = (e**x - 1) cos y - 2 sin(y/2)**2."""
    x, y = _parts(z)
    real = raw.Expm1(x=x) * ops.cos(y) - 2 * ops.square(ops.sin(y / 2))
    return ops.complex(real, _zero_with(y, ops.exp(x) * ops.sin(y)))


def log(z: Tensor) -> Tensor:
    """The principal logarithm; NaN in both parts where one part of z is."""
    return _nan_for_nan(z, raw.Log(x=z))


def log2(z: Tensor) -> Tensor:
    """The principal logarithm in base 2."""
    x, y = _parts(log(z))
    return ops.complex(x * (1 / math.log(2)), y * (1 / math.log(2)))


def log1p(z: Tensor) -> Tensor:
    """log(1 + z); Log replaces Log1p where z is not finite, because Log1p gives no infinities."""
    return _nan_for_nan(z, ops.where(_is_finite(z), raw.Log1p(x=z), raw.Log(x=z)))


def logistic(z: Tensor) -> Tensor:
    """1 / (1 + e**-z); NaN where the imaginary part is not finite."""
    return ops.where(ops.is_finite(ops.imag(z)), raw.Sigmoid(x=z), _nan(z.dtype))


def sqrt(z: Tensor) -> Tensor:
    """The root with the positive real part; on the negative axis the upper root, also for -0."""
    x, y = _parts(z)
    width = ops.abs(y)
    larger = ops.sqrt(ops.abs(z) / 2 + ops.abs(x) / 2)
    # 2 * larger * smaller is |y|. The quotient is not computed where it is 0 / 0 or inf / inf.
    divisible = ops.is_finite(y) & ops.not_equal(y, 0)
    smaller = ops.where(divisible, width / (2 * larger), width)
    right = x >= 0
    imag = ops.where(right, smaller, larger)
    root = ops.complex(ops.where(right, larger, smaller), ops.where(y < 0, -imag, imag))
    return _nan_for_nan(z, root)


def rsqrt(z: Tensor) -> Tensor:
    """1 / sqrt(z); for a negative imaginary part (also -0), the conjugate of 1 / sqrt(conj(z))."""
    x, y = _parts(z)
    upper = raw.Rsqrt(x=ops.complex(x, ops.abs(y)))
    return ops.where(_is_negative(y), ops.conj(upper), upper)


def sin(z: Tensor) -> Tensor:
    """sin x cosh y + i cos x sinh y."""
    x, y = _parts(z)
    return ops.complex(_zero_with(x, ops.sin(x) * ops.cosh(y)), ops.cos(x) * ops.sinh(y))


def cos(z: Tensor) -> Tensor:
    """cos x cosh y - i sin x sinh y."""
    x, y = _parts(z)
    return ops.complex(ops.cos(x) * ops.cosh(y), _zero_with(x, -ops.sin(x) * ops.sinh(y)))


def tan(z: Tensor) -> Tensor:
    """sin z / cos z; NaN in both parts where the real part is NaN; the real part is never -0."""
    x, y = _parts(raw.Tan(x=z))
    return ops.complex(_without_sign(x), ops.where(ops.is_nan(x), x, y))


def tanh(z: Tensor) -> Tensor:
    """sinh z / cosh z; NaN in both parts where the imaginary part is NaN, which is never -0."""
    x, y = _parts(raw.Tanh(x=z))
    return ops.complex(ops.where(ops.is_nan(y), y, x), _without_sign(y))


def sinh(z: Tensor) -> Tensor:
    """sinh x cos y + i cosh x sin y; zeros are positive."""
    x, y = _parts(z)
    real = _without_sign(ops.sinh(x) * ops.cos(y))
    return ops.complex(real, _zero_with(y, ops.cosh(x) * ops.sin(y)))


def cosh(z: Tensor) -> Tensor:
    """cosh x cos y + i sinh x sin y; zeros are positive."""
    x, y = _parts(z)
    imag = _without_sign(ops.sinh(x) * ops.sin(y))
    return ops.complex(ops.cosh(x) * ops.cos(y), _zero_with(y, imag))


# The inverse functions. A C99 zero's sign selects the side of a branch cut; JAX uses one side.


def acos(z: Tensor) -> Tensor:
    """The arc cosine; on the cuts, the value of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Acos(x=_above(z)))


def acosh(z: Tensor) -> Tensor:
    """The inverse of cosh; on the cut, the value of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Acosh(x=_above(z)))


def asin(z: Tensor) -> Tensor:
    """The arc sine; on the cuts, the value of the numbers above the real axis."""
    return _nan_for_finite_nan(z, raw.Asin(x=_above(z)))


def asinh(z: Tensor) -> Tensor:
    """The inverse of sinh; on the cuts, the value of the numbers right of the imaginary axis."""
    return _nan_for_finite_nan(z, raw.Asinh(x=_right(z)))


def atanh(z: Tensor) -> Tensor:
    """The inverse of tanh; its imaginary part is +-pi/2 where z is not finite."""
    x, y = _parts(z)
    zero = ops.zeros_like(x)
    quarter_turn = ops.fill(ops.shape(x), ops.constant(math.pi / 2, x.dtype))
    far = ops.complex(
        ops.where(_is_infinite(z), ops.where(x >= 0, zero, -zero), _nan(x.dtype)),
        ops.where(y >= 0, quarter_turn, -quarter_turn),
    )
    return ops.where(_is_finite(z), raw.Atanh(x=_right(z)), far)


def atan(z: Tensor) -> Tensor:
    """The arc tangent: -i atanh(iz)."""
    x, y = _parts(z)
    x, y = _parts(atanh(ops.complex(-y, x)))
    return ops.complex(y, -x)


def divide(z: Tensor, w: Tensor) -> Tensor:
    """z / w, by Smith's method, with C99's quotients (Annex G.5.1) of zeros and infinities."""
    (a, b), (c, d) = _parts(z), _parts(w)
    wide = ops.abs(c) >= ops.abs(d)
    ratio = ops.where(wide, d, c) / ops.where(wide, c, d)
    denominator = ops.where(wide, c + d * ratio, c * ratio + d)
    x = ops.where(wide, a + b * ratio, a * ratio + b) / denominator
    y = ops.where(wide, b - a * ratio, b * ratio - a) / denominator

    def corrected(a: Tensor, b: Tensor, c: Tensor, d: Tensor, scale: float) -> Tensor:
        return ops.complex(scale * (a * c + b * d), scale * (b * c - a * d))

    infinity = _signed(c, math.inf)
    by_zero = ops.complex(infinity * a, infinity * b)
    of_infinity = corrected(_unit(a), _unit(b), c, d, math.inf)
    by_infinity = corrected(a, b, _unit(c), _unit(d), 0.0)
    finite_z, finite_w = _is_finite(z), _is_finite(w)
    result = ops.complex(x, y)
    undefined = ops.is_nan(x) & ops.is_nan(y)
    result = ops.where(undefined & finite_z & _is_infinite(w), by_infinity, result)
    result = ops.where(undefined & finite_w & _is_infinite(z), of_infinity, result)
    return ops.where(undefined & ops.equal(w, 0) & ~(_is_nan(a) & _is_nan(b)), by_zero, result)


def reciprocal(z: Tensor) -> Tensor:
    """1 / z."""
    return divide(ops.ones_like(z), z)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """-i log((x + iy) / sqrt(x**2 + y**2))."""
    i = ops.constant(1j, x.dtype)
    return -i * log(divide(x + i * y, sqrt(x * x + y * y)))


def power(z: Tensor, w: Tensor) -> Tensor:
    """z**w = |z|**c e**(-d arg z), turned by c arg z + d log|z|, where w = c + id."""
    (a, b), (c, d) = _parts(z), _parts(w)
    size, angle = absolute(z), ops.atan2(b, a)
    new_size = ops.pow(size, c) * ops.exp(-d * angle)
    new_angle = c * angle + d * ops.log(size)
    result = ops.complex(new_size * ops.cos(new_angle), new_size * ops.sin(new_angle))
    # The angle is 0 * inf for real powers of zero and of infinity.
    real = ops.equal(b, 0) & ops.equal(d, 0)
    real &= (ops.equal(a, 0) & (c > 0)) | (ops.equal(a, math.inf) & ((c > 0) | (c < 0)))
    result = ops.where(real, ops.complex(ops.pow(size, c), ops.zeros_like(d)), result)
    return ops.where(ops.equal(w, 0) | ops.equal(z, 1), ops.ones_like(result), result)


def _parts(z: Tensor) -> tuple[Tensor, Tensor]:
    return ops.real(z), ops.imag(z)


def _is_nan(z: Tensor) -> Tensor:
    return ops.not_equal(z, z)


def _is_finite(z: Tensor) -> Tensor:
    return ops.is_finite(ops.real(z)) & ops.is_finite(ops.imag(z))


def _is_infinite(z: Tensor) -> Tensor:
    return ops.is_inf(ops.real(z)) | ops.is_inf(ops.imag(z))


def _is_negative(x: Tensor) -> Tensor:
    """Whether x is negative or -0."""
    return ops.atan2(x, ops.constant(-1, x.dtype)) < 0


def _signed(sign: Tensor, size: float) -> Tensor:
    size = ops.constant(size, sign.dtype)
    return ops.where(_is_negative(sign), -size, size)


def _unit(x: Tensor) -> Tensor:
    """1 for infinities and 0 for other numbers, with the sign of x."""
    return ops.where(ops.is_inf(x), _signed(x, 1.0), _signed(x, 0.0))


def _nan(dtype: DType) -> Tensor:
    return ops.constant(complex(math.nan, math.nan) if dtype.is_complex else math.nan, dtype)


def _nan_for_nan(z: Tensor, result: Tensor) -> Tensor:
    return ops.where(_is_nan(z), _nan(z.dtype), result)


def _nan_for_finite_nan(z: Tensor, result: Tensor) -> Tensor:
    """NaN in both parts where one part of z is NaN and the other is not infinite."""
    return ops.where(_is_nan(z) & ~_is_infinite(z), _nan(z.dtype), result)


def _above(z: Tensor) -> Tensor:
    """z with a positive zero for a zero imaginary part: just above the real axis."""
    return ops.complex(ops.real(z), _without_sign(ops.imag(z)))


def _right(z: Tensor) -> Tensor:
    """z with a positive zero for a zero real part: just right of the imaginary axis."""
    return ops.complex(_without_sign(ops.real(z)), ops.imag(z))


def _without_sign(x: Tensor) -> Tensor:
    """x, with 0 for -0; not by x + 0, which TensorFlow removes from a graph."""
    return _zero_with(x, x)


def _zero_with(other: Tensor, x: Tensor) -> Tensor:
    """x, and 0 where `other` is 0."""
    return ops.where(ops.equal(other, 0), ops.zeros([], x.dtype), x)
