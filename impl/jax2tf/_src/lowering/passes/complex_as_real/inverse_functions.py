"""Inverse circular and hyperbolic functions of pairs, and the angle of two complex numbers.

The formulas are from Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine
functions using exception handling" (1997), without their cases of finite numbers. A factor is taken
out of a root before its square overflows or underflows. As in JAX, the sign of a zero does not
matter on a branch cut.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jax2tf._src.lowering.passes.complex_as_real.pair import (
    Pair,
    absolute,
    add,
    divide,
    is_finite,
    is_infinite,
    is_nan,
    log,
    log_of_size,
    multiply,
    nan_where,
    sqrt,
)
from jax2tf._src.util.typing import Array

# 1 is negligible next to the square of larger numbers.
_LARGE = 1e9


def acos(z: Pair) -> Pair:
    """Returns the angle whose cosine is z."""
    sides = _sides(z)
    imag = jnp.where(z.imag < 0, sides.growth, -sides.growth)
    return _nan_for_finite_nan(z, Pair(jnp.atan2(sides.height, z.real), imag))


def acosh(z: Pair) -> Pair:
    """Returns the inverse of cosh, which is acos turned to a positive real part."""
    sides = _sides(z)
    angle = jnp.atan2(sides.height, z.real)
    return _nan_for_finite_nan(z, Pair(sides.growth, jnp.where(z.imag < 0, -angle, angle)))


def asin(z: Pair) -> Pair:
    """Returns the angle whose sine is z."""
    sides = _sides(z)
    imag = jnp.where(z.imag < 0, -sides.growth, sides.growth)
    return _nan_for_finite_nan(z, Pair(jnp.atan2(z.real, sides.height), imag))


def asinh(z: Pair) -> Pair:
    """Returns the inverse of sinh, -i asin(iz). Cuts belong to the side of positive real parts."""
    turned = asin(Pair(-z.imag, z.real))
    return Pair(turned.imag, -turned.real)


def atan(z: Pair) -> Pair:
    """Returns the angle whose tangent is z, which is -i atanh(iz)."""
    turned = atanh(Pair(-z.imag, z.real))
    return Pair(turned.imag, -turned.real)


def atanh(z: Pair) -> Pair:
    """Returns the inverse of tanh; for numbers that are not finite its angle is a right angle."""
    x, y = jnp.abs(z.real), z.imag
    distance = absolute(Pair(1 - x, y))
    is_near = distance < 1 / _LARGE
    # The excess is |1 + z|**2 / |1 - z|**2 - 1, which overflows near z = 1.
    excess = 4 * (x / distance) / distance
    real = jnp.where(is_near, (math.log(2) - jnp.log(distance)) / 2, jnp.log1p(excess) / 4)
    real = jnp.where(is_infinite(z), 0, jnp.where(is_nan(z), math.nan, real))
    far = 4 / np.finfo(x.dtype).eps ** 2
    height = jnp.where(jnp.abs(y) < far, y, 0)
    angle = jnp.atan2(2 * y, (1 - x) * (1 + x) - height * height) / 2
    is_far = ~is_finite(z) | (jnp.abs(y) >= far) | (x >= far)
    angle = jnp.where(is_far, jnp.where(y >= 0, math.pi / 2, -math.pi / 2), angle)
    return Pair(jnp.where(z.real >= 0, real, -real), angle)


def atan2(y: Pair, x: Pair) -> Pair:
    """Returns -i log((x + iy) / sqrt(x**2 + y**2))."""
    size = sqrt(add(multiply(x, x), multiply(y, y)))
    turned = log(divide(Pair(x.real - y.imag, x.imag + y.real), size))
    return Pair(turned.imag, -turned.real)


class _Sides(NamedTuple):
    """Two functions of z = x + iy and of a, the mean distance of z from 1 and -1.

    height: sqrt(a**2 - x**2), the second side of the angle's triangle; the first side is x.
    growth: log(a + sqrt(a**2 - 1)).
    """

    height: Array
    growth: Array


def _sides(z: Pair) -> _Sides:
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    far, near = absolute(Pair(x + 1, y)), absolute(Pair(x - 1, y))
    mean = far / 2 + near / 2
    is_inside = x <= 1
    # These are the roots of a - x and a - 1, computed without cancellation.
    to_far, to_near = far + (x + 1), near + jnp.abs(x - 1)
    short = jnp.sqrt((y * (y / to_far) + to_near) / 2)
    long = y * jnp.sqrt((1 / to_far + 1 / jnp.where(to_near == 0, 1, to_near)) / 2)
    height = jnp.where(is_inside, short, long) * jnp.sqrt(mean + x)
    root = jnp.where(is_inside & (x < 1), long, short)
    growth = jnp.where(
        mean > _LARGE,
        log_of_size(z) + math.log(2),
        jnp.log1p(root * (root + jnp.sqrt(mean + 1))),
    )
    height = jnp.where(mean > _LARGE, y, height)
    has_infinity = is_infinite(z)
    height = jnp.where(has_infinity, jnp.where(y == math.inf, math.inf, 0), height)
    height = jnp.where(is_nan(z), math.nan, height)
    return _Sides(height, jnp.where(has_infinity, math.inf, growth))


def _nan_for_finite_nan(z: Pair, result: Pair) -> Pair:
    """Puts NaN in both parts if one part of z is NaN and the other is not infinite."""
    return nan_where(is_nan(z) & ~is_infinite(z), result)
