"""Special functions as JAX functions of elementary ones, in float32 and float64.

The rules of erf_inv, polygamma and zeta trace them for every target; the others serve targets that
lack TensorFlow's ops. The formulas are those of XLA, so that the results agree with JAX up to the
last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src.util.typing import aval_of

# digamma(0) is a pole (-inf) since JAX 0.11.2, and NaN before, as in TensorFlow.
DIGAMMA_HAS_POLE = jax.__version_info__ >= (0, 11, 2)

# C. Lanczos, A precision approximation of the gamma function (SIAM J. Numer. Anal. 1, 1964), with g
# = 7 and nine coefficients; the first one has no quotient.
_LANCZOS_G = 7.0
_LANCZOS_FIRST = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)


def lgamma(x: jax.Array) -> jax.Array:
    """Lanczos's formula; below one half, Euler's reflection of the formula at 1 - x."""
    is_reflected = x < 0.5
    z = jnp.where(is_reflected, -x, x - 1)
    total = _LANCZOS_FIRST + sum(c / (z + (i + 1)) for i, c in enumerate(_LANCZOS))
    shift = _LANCZOS_G + 0.5
    log_t = math.log(shift) + lax.log1p(z / shift)
    # (z + 1/2) log t - t, written so that it overflows only where the result does.
    size = (z + 0.5 - (z + shift) / log_t) * log_t
    size = size + (0.5 * math.log(2 * math.pi) + lax.log(total))
    distance = jnp.abs(x) - jnp.floor(jnp.abs(x))
    distance = jnp.where(distance > 0.5, 1 - distance, distance)
    sine = jnp.where(distance > 0, lax.sin(math.pi * distance), 1.0)
    reflected = math.log(math.pi) - lax.log(sine) - size
    # The poles, and where the reflected sum overflows too.
    is_pole = (x <= 0) & (distance == 0)
    result = jnp.where(is_reflected, reflected, size)
    result = jnp.where(is_pole | (jnp.abs(x) == math.inf), math.inf, result)
    return jnp.where(x != x, math.nan, result)


def digamma(x: jax.Array) -> jax.Array:
    """The derivative of Lanczos's formula; below one half, the derivative of the reflection."""
    is_reflected = x < 0.5
    z = jnp.where(is_reflected, -x, x - 1)
    total: jax.Array | float = _LANCZOS_FIRST
    slope: jax.Array | float = 0.0
    for i, coefficient in enumerate(_LANCZOS):
        total = total + coefficient / (z + (i + 1))
        slope = slope - coefficient / ((z + (i + 1)) * (z + (i + 1)))
    shift = _LANCZOS_G + 0.5
    t = z + shift
    log_t = math.log(shift) + lax.log1p(z / shift)
    size = log_t + slope / total - _LANCZOS_G / t
    distance = x + jnp.abs(jnp.floor(x + 0.5))
    is_pole = (x <= 0) & (x == jnp.floor(x))
    angle = math.pi * jnp.where(is_pole, 0.25, distance)
    reflected = size - math.pi * lax.cos(angle) / lax.sin(angle)
    result = jnp.where(is_reflected, reflected, size)
    result = jnp.where(is_pole, math.nan, result)
    return jnp.where(x == 0, -math.inf, result) if DIGAMMA_HAS_POLE else result


def _chebyshev(x: jax.Array, coefficients: Sequence[float]) -> jax.Array:
    """The sum of Chebyshev polynomials of x / 2, by Clenshaw's recurrence."""
    before, last = 0.0 * x, 0.0 * x
    previous = before
    for coefficient in coefficients:
        previous, before = before, last
        last = x * before - previous + coefficient
    return 0.5 * (last - previous)


# Cephes (S. Moshier), i1f.c: exp(-x) i1(x) / x up to 8, and exp(-x) sqrt(x) i1(x) beyond.
_I1E_UP_TO_EIGHT = (
    9.38153738649577178388e-9,
    -4.44505912879632808065e-8,
    2.00329475355213526229e-7,
    -8.56872026469545474066e-7,
    3.47025130813767847674e-6,
    -1.32731636560394358279e-5,
    4.78156510755005422638e-5,
    -1.61760815825896745588e-4,
    5.12285956168575772895e-4,
    -1.51357245063125314899e-3,
    4.15642294431288815669e-3,
    -1.05640848946261981558e-2,
    2.47264490306265168283e-2,
    -5.29459812080949914269e-2,
    1.02643658689847095384e-1,
    -1.76416518357834055153e-1,
    2.52587186443633654823e-1,
)
_I1E_BEYOND_EIGHT = (
    -3.83538038596423702205e-9,
    -2.63146884688951950684e-8,
    -2.51223623787020892529e-7,
    -3.88256480887769039346e-6,
    -1.10588938762623716291e-4,
    -9.76109749136146840777e-3,
    7.78576235018280120474e-1,
)


def bessel_i1e(x: jax.Array) -> jax.Array:
    """The modified Bessel function of order one, scaled by exp(-|x|), for float32."""
    size = jnp.abs(x)
    near = jnp.minimum(size, 8.0)
    far = jnp.maximum(size, 8.0)
    up_to_eight = near * _chebyshev(0.5 * near - 2, _I1E_UP_TO_EIGHT)
    beyond = _chebyshev(32.0 / far - 2, _I1E_BEYOND_EIGHT) / lax.sqrt(far)
    return lax.sign(x) * jnp.where(size <= 8.0, up_to_eight, beyond)


def erf_inv(x: jax.Array) -> jax.Array:
    """M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), as JAX computes it.

    TensorFlow's CPU kernel uses the quantiles of the normal distribution at (x + 1) / 2, which has
    no correct digit left near zero and near one.
    """
    # Only lax functions: JAX traces each jnp function as a function of its own, which takes longer
    # and hides which values are scalars.
    bounds, shifts, coefficients = _GILES[x.dtype.name]
    number = x.dtype.type
    w = lax.neg(lax.log1p(lax.mul(lax.neg(x), x)))
    is_below = [lax.lt(w, number(bound)) for bound in bounds]

    def choose(values: Sequence[float]) -> jax.Array:
        *others, value = values
        chosen: jax.Array = lax.full_like(x, value)
        for below, other in zip(reversed(is_below), reversed(others), strict=True):
            chosen = lax.select(below, lax.full_like(x, other), chosen)
        return chosen

    bound = number(bounds[0])
    root = lax.sqrt(lax.max(w, bound))
    t = lax.sub(lax.select(is_below[0], lax.min(w, bound), root), choose(shifts))
    polynomial = choose(coefficients[0])
    for row in coefficients[1:]:
        polynomial = lax.add(lax.mul(polynomial, t), choose(row))
    size = lax.abs(x)
    at_one = lax.mul(x, number(math.inf))
    result = lax.select(lax.eq(size, number(1)), at_one, lax.mul(polynomial, x))
    return lax.select(lax.le(size, number(1)), result, lax.full_like(x, math.nan))


def polygamma(n: jax.Array, x: jax.Array) -> jax.Array:
    """(-1)^(n + 1) n! zeta(n + 1, x), and digamma for n = 0; TensorFlow's op uses its own zeta."""
    order = n + 1
    sign = jnp.where(_is_even(order), 1.0, -1.0)
    result = sign * lax.exp(lax.lgamma(order)) * lax.zeta(order, x)
    result = jnp.where(n == 0, lax.digamma(x), result)
    return jnp.where((n >= 0) & (n == jnp.floor(n)), result, math.nan)


def zeta(s: jax.Array, q: jax.Array, flushed: bool = False) -> jax.Array:
    """Ten terms of the sum, then Euler and Maclaurin's formula for the rest, as JAX does it.

    The results agree with JAX also where the formula does not converge (q below -10); TensorFlow's
    kernel adds more terms there. The poles at q = 0, -1, -2, ... are infinite for even s. `flushed`
    says that the smallest number counts as zero, as on a CPU, where XLA flushes subnormal numbers.
    """
    # One reduction: TensorFlow would add a chain of sums in another order.
    offsets = jnp.arange(10, dtype=s.dtype).reshape(10, *(1 for _ in s.shape))
    powers = lax.pow(*jnp.broadcast_arrays(q + offsets, -s))
    total = jnp.sum(powers, 0)
    a = q + 10
    term = lax.pow(a, -s)
    inverse_square = 1 / (a * a)
    *others, correction = (jnp.full_like(s, coefficient) for coefficient in _EULER_MACLAURIN)
    for k in reversed(range(len(others))):
        factor = (s + (2 * k + 2)) * (s + (2 * k + 1))
        correction = factor * (inverse_square * correction) + others[k]
    rest = total + term * a / (s - 1) + term * (s / a * correction + 0.5)
    if flushed:
        result = rest
    else:
        smallest = jnp.finfo(s.dtype).smallest_subnormal
        result = jnp.where(jnp.abs(term) < jnp.abs(total) * smallest, total, rest)
    is_real = (s >= 1) & ((q > 0) | (s == jnp.floor(s)))
    result = jnp.where(is_real, result, math.nan)
    is_pole = (q <= 0) & (q == jnp.floor(q))
    result = jnp.where(is_pole, jnp.where(_is_even(s), math.inf, math.nan), result)
    return jnp.where(s == 1, math.inf, result)


def atan2(y: jax.Array, x: jax.Array) -> jax.Array:
    """The arctangent of the smaller magnitude divided by the larger one, which is at most 1."""
    width, height = jnp.abs(x), jnp.abs(y)
    is_steep = height > width
    small, large = jnp.where(is_steep, width, height), jnp.where(is_steep, height, width)
    # Two zeros have the angle 0; two infinities have the angle of two equal numbers.
    ratio = jnp.where(small == large, jnp.where(large == 0, 0.0, 1.0), small / large)
    angle = lax.atan(ratio)
    angle = jnp.where(is_steep, math.pi / 2 - angle, angle)
    angle = jnp.where(_has_sign(x), math.pi - angle, angle)
    return jnp.where(_has_sign(y), -angle, angle)


def _has_sign(x: jax.Array) -> jax.Array:
    return (x < 0) | ((x == 0) & (1 / x < 0))


# B_2k / (2k)! for k = 1 ... 12, with the Bernoulli numbers B_2k.
_EULER_MACLAURIN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)


def _is_even(x: jax.Array) -> jax.Array:
    half = x * 0.5
    return (half == jnp.floor(half)) & (jnp.abs(x) < math.inf)


# The polynomials of `erf_inv`, one per column, highest power first: one for w below each bound, and
# one above the last. The first is in w - shift, the others in sqrt(w) - shift. Shorter polynomials
# begin with zeros.
_GILES = {
    "float32": (
        (5.0,),
        (2.5, 3.0),
        (
            (2.81022636e-08, -0.000200214257),
            (3.43273939e-07, 0.000100950558),
            (-3.5233877e-06, 0.00134934322),
            (-4.39150654e-06, -0.00367342844),
            (0.00021858087, 0.00573950773),
            (-0.00125372503, -0.0076224613),
            (-0.00417768164, 0.00943887047),
            (0.246640727, 1.00167406),
            (1.50140941, 2.83297682),
        ),
    ),
    "float64": (
        (6.25, 16.0),
        (3.125, 3.25, 5.0),
        (
            (-3.64441206401782e-21, 0.0, 0.0),
            (-1.6850591381820166e-19, 0.0, 0.0),
            (1.28584807152564e-18, 0.0, 0.0),
            (1.1157877678025181e-17, 0.0, 0.0),
            (-1.333171662854621e-16, 2.2137376921775787e-09, 0.0),
            (2.0972767875968562e-17, 9.075656193888539e-08, 0.0),
            (6.637638134358324e-15, -2.7517406297064545e-07, -2.7109920616438573e-11),
            (-4.054566272975207e-14, 1.8239629214389228e-08, -2.555641816996525e-10),
            (-8.151934197605472e-14, 1.5027403968909828e-06, 1.5076572693500548e-09),
            (2.6335093153082323e-12, -4.013867526981546e-06, -3.789465440126737e-09),
            (-1.2975133253453532e-11, 2.9234449089955446e-06, 7.61570120807834e-09),
            (-5.415412054294628e-11, 1.2475304481671779e-05, -1.496002662714924e-08),
            (1.0512122733215323e-09, -4.7318229009055734e-05, 2.914795345090108e-08),
            (-4.112633980346984e-09, 6.828485145957318e-05, -6.771199775845234e-08),
            (-2.9070369957882005e-08, 2.4031110387097894e-05, 2.2900482228026655e-07),
            (4.2347877827932404e-07, -0.0003550375203628475, -9.9298272942317e-07),
            (-1.3654692000834679e-06, 0.0009532893797373805, 4.526062597223154e-06),
            (-1.3882523362786469e-05, -0.0016882755560235047, -1.968177810553167e-05),
            (0.00018673420803405714, 0.002491442096107851, 7.599527703001776e-05),
            (-0.000740702534166267, -0.003751208507569241, -0.00021503011930044477),
            (-0.006033670871430149, 0.005370914553590064, -0.00013871931833623122),
            (0.24015818242558962, 1.0052589676941592, 1.0103004648645344),
            (1.6536545626831027, 3.0838856104922208, 4.849906401408584),
        ),
    ),
}


def in_wide_dtype(
    function: Callable[..., jax.Array], eqn: jex_core.JaxprEqn, *operands: jax.Array
) -> list[jax.Array]:
    """The results of a JAX function for an equation, computed in float32 or float64."""
    aval = aval_of(eqn.outvars[0])
    wide = np.float64 if aval.dtype == np.float64 else np.float32
    # A literal stays a scalar beside arrays.
    whole = (jnp.broadcast_to(x, aval.shape) for x in operands)
    result = function(*(lax.convert_element_type(x, wide) for x in whole))
    return [lax.convert_element_type(result, aval.dtype)]
