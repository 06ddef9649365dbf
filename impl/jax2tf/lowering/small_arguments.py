"""expm1 and log1p of float32 in ops that every reader of graphs has, for the op set without XLA."""

from __future__ import annotations

import tensorflow as tf

from jax2tf.lowering.elementwise import WITH_XLA_ALONE
from jax2tf.lowering.rules import NO_XLA, register_table

# log(1 + x) = x - x**2 / 2 + x**3 * P(x) from sqrt(1/2) - 1 to sqrt(2) - 1 (Moshier, Cephes, logf).
_LOG1P = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LOG1P_RANGE = (-0.29, 0.41)


def _expm1(x: tf.Tensor) -> tf.Tensor:
    if x.dtype != tf.float32:
        return WITH_XLA_ALONE["expm1"](x)
    # Nothing cancels, and nothing is chosen: infinities and NaNs come out as they should.
    return tf.tanh(x / 2) * (tf.exp(x) + 1)


def _log1p(x: tf.Tensor) -> tf.Tensor:
    if x.dtype != tf.float32:
        return WITH_XLA_ALONE["log1p"](x)
    least, largest = _LOG1P_RANGE
    # Finite, also where the other side is chosen: there are readers that choose by products.
    near = tf.minimum(tf.maximum(x, least), largest)
    polynomial = tf.constant(_LOG1P[0], x.dtype)
    for coefficient in _LOG1P[1:]:
        polynomial = polynomial * near + coefficient
    near += tf.square(near) * (near * polynomial - 0.5)
    is_near = tf.logical_and(x > least, x < largest)
    return tf.where(is_near, near, tf.math.log(1 + x))


register_table({"expm1": _expm1, "log1p": _log1p}, op_sets=(NO_XLA,))
