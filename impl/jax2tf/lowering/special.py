"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ...

Most are TensorFlow's op of the same name, with JAX's values put where TensorFlow's kernels, or the
versions of the algorithm that TensorFlow's XLA has, leave the domain otherwise. float16, bfloat16
and what is narrower are computed in float32 and rounded once, as JAX does.

JAX's own values at some poles changed between releases; what was tried is named beside each.
"""

from __future__ import annotations

import math

import jax
import numpy as np
import tensorflow as tf

from jax2tf.lowering.elementwise import FLOAT8, Function, in_kernel_dtype
from jax2tf.lowering.rules import register_table
from jax2tf.targets import XLA

raw = tf.raw_ops

IN_FLOAT32 = dict.fromkeys((*FLOAT8, "bfloat16", "float16"), tf.float32)

# JAX 0.11.2 gives digamma(0) its pole; before, it is NaN, as TensorFlow has it.
_DIGAMMA_HAS_POLE = jax.__version_info__ >= (0, 11, 2)
# Since JAX 0.11.0 igamma follows SciPy where its shape parameter is infinite.
_IGAMMA_OF_INFINITY = jax.__version_info__ >= (0, 11, 0)


def erf(x: tf.Tensor) -> tf.Tensor:
    """The op, kept from overflow."""
    if x.dtype == tf.float64:
        # TensorFlow's CPU kernel overflows to NaN; from 6 on the nearest float64 is 1.
        six = tf.constant(6, x.dtype)
        x = raw.Maximum(x=raw.Minimum(x=x, y=six), y=-six)
    return raw.Erf(x=x)


def erfc(x: tf.Tensor) -> tf.Tensor:
    """The op."""
    return raw.Erfc(x=x)


def _erf_inv(x: tf.Tensor) -> tf.Tensor:
    """As M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), and so JAX.

    TensorFlow's CPU kernel goes through the quantiles of the normal distribution at (x + 1) / 2
    and has no correct digit left near zero and near one.
    """
    bounds, shifts, coefficients = _GILES[x.dtype.name]
    w = -raw.Log1p(x=-x * x)
    below = [raw.Less(x=w, y=tf.constant(bound, x.dtype)) for bound in bounds]

    def choose(values: tuple[float, ...]) -> tf.Tensor:
        *others, value = (tf.constant(v, x.dtype) for v in values)
        for condition, other in zip(reversed(below), reversed(others), strict=True):
            value = raw.SelectV2(condition=condition, t=other, e=value)
        return value

    t = raw.SelectV2(condition=below[0], t=w, e=raw.Sqrt(x=w)) - choose(shifts)
    polynomial = choose(coefficients[0])
    for row in coefficients[1:]:
        polynomial = polynomial * t + choose(row)
    return tf.where(tf.equal(tf.abs(x), 1), x * math.inf, polynomial * x)


def _digamma(x: tf.Tensor) -> tf.Tensor:
    result = raw.Digamma(x=x)
    if _DIGAMMA_HAS_POLE:
        result = tf.where(tf.equal(x, 0), _scalar(-math.inf, x), result)
    return result


def _polygamma(n: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """(-1)^(n + 1) n! zeta(n + 1, x), and digamma for n = 0; not TensorFlow's, for its zeta."""
    order = n + 1
    sign = tf.where(_is_even(order), _scalar(1, x), _scalar(-1, x))
    result = sign * raw.Exp(x=raw.Lgamma(x=order)) * _zeta(order, x)
    result = tf.where(tf.equal(n, 0), _digamma(x), result)
    undefined = (n < 0) | tf.not_equal(n, tf.floor(n))
    return tf.where(undefined, _scalar(math.nan, x), result)


def _zeta(s: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
    """Ten terms of the sum, then Euler and Maclaurin's formula for the rest, as JAX does.

    So its numbers are JAX's also where the formula does not converge (q below -10); TensorFlow's
    kernel adds more terms there. The poles at q = 0, -1, -2, ... are infinite for even s.
    """
    offsets = tf.reshape(tf.range(10, dtype=s.dtype), [10] + [1] * max(s.shape.rank, q.shape.rank))
    total = tf.reduce_sum(raw.Pow(x=q + offsets, y=-s), axis=0)
    a = q + 10
    term = raw.Pow(x=a, y=-s)
    inverse_square = 1 / (a * a)
    *others, correction = (_scalar(coefficient, s) for coefficient in _EULER_MACLAURIN)
    for k in reversed(range(len(others))):
        factor = (s + (2 * k + 2)) * (s + (2 * k + 1))
        correction = factor * (inverse_square * correction) + others[k]
    rest = total + term * a / (s - 1) + term * (s / a * correction + 0.5)
    negligible = tf.abs(term) < tf.abs(total) * np.finfo(s.dtype.as_numpy_dtype).smallest_subnormal
    infinity, nan = _scalar(math.inf, s), _scalar(math.nan, s)
    result = tf.where(negligible, total, rest)
    result = tf.where((s < 1) | ((q <= 0) & tf.not_equal(s, tf.floor(s))), nan, result)
    pole = (q <= 0) & tf.equal(q, tf.floor(q))
    result = tf.where(pole, tf.where(_is_even(s), infinity, nan), result)
    return tf.where(tf.equal(s, 1), infinity, result)


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


def _is_even(x: tf.Tensor) -> tf.Tensor:
    half = x * 0.5
    return tf.equal(half, tf.floor(half)) & (tf.abs(x) < math.inf)


def _igamma(a: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    # At a = 0 JAX takes its series below x = 1, and has no value there.
    return _at_igamma_limits(a, x, raw.Igamma(a=a, x=x), 0.0, 1.0, tf.equal(a, 0) & (x < 1))


def _igammac(a: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return _at_igamma_limits(a, x, raw.Igammac(a=a, x=x), 1.0, 0.0)


def _at_igamma_limits(
    a: tf.Tensor,
    x: tf.Tensor,
    inside: tf.Tensor,
    lower: float,
    upper: float,
    undefined: tf.Tensor | bool = False,
) -> tf.Tensor:
    """`inside` for positive finite a and x, `lower` and `upper` at the limits, NaN elsewhere."""
    a_infinite, x_infinite = tf.equal(a, math.inf), tf.equal(x, math.inf)
    at_lower = tf.equal(x, 0) | a_infinite
    at_upper = tf.equal(a, 0) | x_infinite
    if not _IGAMMA_OF_INFINITY:
        at_lower &= ~x_infinite
        undefined |= a_infinite & (x >= 1) & ~x_infinite
    undefined |= ~((a >= 0) & (x >= 0)) | (at_lower & at_upper)
    result = tf.where(at_upper, _scalar(upper, x), inside)
    result = tf.where(at_lower, _scalar(lower, x), result)
    return tf.where(undefined, _scalar(math.nan, x), result)


def _igamma_grad_a(a: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    finite = tf.math.is_finite(a) & tf.math.is_finite(x)
    nan = _scalar(math.nan, x)
    inside = tf.where(finite & (x >= 0), raw.IgammaGradA(a=a, x=x), nan)
    return tf.where(a > 0, tf.where(tf.equal(x, 0), _scalar(0, x), inside), nan)


def _betainc(a: tf.Tensor, b: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """TensorFlow's op where a and b are positive and finite; else a step at x = 1 or x = 0."""
    step_at_one = tf.equal(a, math.inf) | tf.equal(b, 0)
    step_at_zero = tf.equal(b, math.inf) | tf.equal(a, 0)
    inside = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    result = tf.where(step_at_zero, tf.cast(x > 0, x.dtype), raw.Betainc(a=a, b=b, x=x))
    result = tf.where(step_at_one, tf.cast(x >= 1, x.dtype), result)
    return tf.where(inside & ~(step_at_one & step_at_zero), result, _scalar(math.nan, x))


def _scalar(value: float, like: tf.Tensor) -> tf.Tensor:
    return tf.constant(value, like.dtype)


# The polynomials of `_erf_inv`, highest power first: for w below each bound (and above the last),
# in w - shift below the first and in sqrt(w) - shift above. One column a polynomial; the shorter
# ones begin with zeros.
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

_TABLE: dict[str, Function] = {
    "bessel_i0e": lambda x: raw.BesselI0e(x=x),
    "bessel_i1e": lambda x: raw.BesselI1e(x=x),
    "digamma": _digamma,
    "erf_inv": _erf_inv,
    "igamma": _igamma,
    "igamma_grad_a": _igamma_grad_a,
    "igammac": _igammac,
    "lgamma": lambda x: raw.Lgamma(x=x),
    "polygamma": _polygamma,
    "regularized_incomplete_beta": _betainc,
    "zeta": _zeta,
}

register_table({name: in_kernel_dtype(rule, IN_FLOAT32) for name, rule in _TABLE.items()})

# Without XLA ops these two are compositions: error_functions.py.
_ERRORS = {"erf": erf, "erfc": erfc}
register_table(
    {name: in_kernel_dtype(rule, IN_FLOAT32) for name, rule in _ERRORS.items()}, op_sets=(XLA,)
)
