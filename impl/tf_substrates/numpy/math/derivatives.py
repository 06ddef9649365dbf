"""Functions whose derivatives TensorFlow defines otherwise than JAX, at single points.

TensorFlow takes 0 for the slope of the absolute value at 0, gives the whole gradient of an extremum
of equal operands to one of them, and 0 for the gradient of a root wherever 0 comes from upstream,
though its slope there is infinite. The last is what makes `tf.where(x > 0, tf.sqrt(x), 0)` have a
finite gradient at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.tensors import traced

JAX_MODE = False
if JAX_MODE:
    import jax


def with_tangent(function: Callable, tangent: Callable) -> Callable:
    """A function of floats with a derivative of its own: `tangent(*primals, *tangents)`.

    Operands that broadcast are broadcast before.
    """
    if not JAX_MODE:
        return function
    own = jax.custom_jvp(function)

    @own.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple:
        return own(*primals), tangent(*primals, *tangents)

    def call(*operands: Any) -> Any:
        floats = xp.issubdtype(operands[0].dtype, np.inexact)
        return own(*xp.broadcast_arrays(*operands)) if floats else function(*operands)

    return call


def quotient_of_tangent(tangent: Any, divisor: Any) -> Any:
    """A tangent divided by what may be 0 or NaN: 0 wherever the tangent is 0.

    It is the solution of a linear system, so it has its transpose and derivatives of higher order.
    """

    def solve(_: Callable, upstream: Any) -> Any:
        return xp.where(upstream == 0, xp.zeros_like(upstream), upstream / divisor)

    return jax.lax.custom_linear_solve(
        lambda solution: divisor * solution, tangent, solve, transpose_solve=solve
    )


def product_of_tangent(tangent: Any, factor: Any) -> Any:
    """A tangent times what may be infinite or NaN: 0 wherever the tangent is 0."""
    finite = xp.isfinite(factor)
    one, zero = xp.ones_like(factor), xp.zeros_like(factor)
    divisor = jax.lax.stop_gradient(xp.where(finite, one, 1 / factor))
    elsewhere = xp.where(finite, zero, quotient_of_tangent(tangent, divisor))
    return xp.where(finite, factor, zero) * tangent + elsewhere


def _rsqrt(x: Any) -> Any:
    return jax.lax.rsqrt(x) if JAX_MODE else 1 / xp.sqrt(x)


def _reciprocal(x: Any) -> Any:
    if x.dtype.kind in "iu":
        return xp.floor_divide(x.dtype.type(1), x)
    result = 1 / x
    return result if result.dtype == x.dtype else result.astype(x.dtype)


sqrt: Callable = with_tangent(xp.sqrt, lambda x, dx: quotient_of_tangent(dx, 2 * sqrt(x)))
rsqrt: Callable = with_tangent(_rsqrt, lambda x, dx: quotient_of_tangent(dx, -2 * x * sqrt(x)))
reciprocal = with_tangent(_reciprocal, lambda x, dx: quotient_of_tangent(dx, -x * x))


def _absolute_tangent(x: Any, dx: Any) -> Any:
    if x.dtype.kind == "c":
        return xp.real(dx * xp.conj(xp.sign(x)))
    return dx * xp.sign(x)


absolute = with_tangent(xp.abs, _absolute_tangent)
softsign = with_tangent(
    lambda x: x / (1 + xp.abs(x)), lambda x, dx: dx / xp.square(1 + absolute(x))
)


def _power_tangent(x: Any, y: Any, dx: Any, dy: Any) -> Any:
    result, along_x = jax.jvp(lambda base: xp.power(base, y), (x,), (dx,))
    has_logarithm = x != 0 if x.dtype.kind == "c" else x > 0
    logarithm = xp.log(xp.where(has_logarithm, x, xp.ones_like(x)))
    return along_x + dy * (result * logarithm)


_power = with_tangent(xp.power, _power_tangent)


def power(x: Any, y: Any) -> Any:
    """x to the power of y; where x has no real logarithm, its derivative in y is 0."""
    return _power(x, y) if traced(y) else xp.power(x, y)


# Where both are equal, TensorFlow's derivative is that of the first, and JAX's half of each.
maximum = with_tangent(xp.maximum, lambda x, y, dx, dy: xp.where(x >= y, dx, dy))
minimum = with_tangent(xp.minimum, lambda x, y, dx, dy: xp.where(x <= y, dx, dy))
