"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ..."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from jax2tf.lowering.rules import Context, register


def _in_float32(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """A rule that computes in float32 what is narrower, as JAX does, and rounds once at the end."""

    def rule(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
        dtype = operands[0].dtype
        if dtype in (tf.float32, tf.float64):
            return function(*operands)
        return tf.cast(function(*(tf.cast(x, tf.float32) for x in operands)), dtype)

    return rule


_TABLE = {
    "bessel_i0e": tf.math.special.bessel_i0e,
    "bessel_i1e": tf.math.special.bessel_i1e,
    "digamma": tf.math.digamma,
    "erf": tf.math.erf,
    "erf_inv": tf.math.erfinv,
    "erfc": tf.math.erfc,
    "igamma": tf.math.igamma,
    "igamma_grad_a": lambda a, x: tf.raw_ops.IgammaGradA(a=a, x=x),
    "igammac": tf.math.igammac,
    "lgamma": tf.math.lgamma,
    "polygamma": tf.math.polygamma,
    "random_gamma_grad": lambda a, x: tf.raw_ops.RandomGammaGrad(alpha=a, sample=x),
    "regularized_incomplete_beta": tf.math.betainc,
    "zeta": tf.math.zeta,
}

for _primitive, _function in _TABLE.items():
    register(_primitive)(_in_float32(_function))
