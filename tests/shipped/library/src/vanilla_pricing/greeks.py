"""Derivatives of prices, which need a substrate that has derivatives."""

import tensorflow as tf

from .formulas import option_price


def delta_and_gamma(volatility, strike, expiry, forward):
    """The first and second derivative of a call price with respect to the forward."""
    forward = tf.convert_to_tensor(forward)
    with tf.GradientTape() as outer:
        outer.watch(forward)
        with tf.GradientTape() as inner:
            inner.watch(forward)
            price = option_price(volatility, strike, expiry, forward, dtype=forward.dtype)
        delta = inner.gradient(price, forward)
    return delta, outer.gradient(delta, forward)
