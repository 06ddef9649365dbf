"""The formula of Black and Scholes, and its inverse."""

import numpy as np
import tensorflow.compat.v2 as tf


def option_price(volatilities, strikes, expiries, forwards, is_call=True, dtype=None, name=None):
    """Undiscounted prices of calls, or of puts where `is_call` is false."""
    with tf.name_scope(name or "option_price"):
        strikes = tf.convert_to_tensor(strikes, dtype=dtype)
        dtype = strikes.dtype
        volatilities, expiries, forwards = (
            tf.convert_to_tensor(x, dtype=dtype) for x in (volatilities, expiries, forwards)
        )
        tf.debugging.assert_positive(strikes, message="Strikes must be positive.")
        deviation = volatilities * tf.math.sqrt(expiries)
        d1 = tf.math.log(forwards / strikes) / deviation + deviation / 2
        call = forwards * _cdf(d1) - strikes * _cdf(d1 - deviation)
        return tf.where(is_call, call, call - forwards + strikes)


def implied_volatility(prices, strikes, expiries, forwards, steps=60):
    """The volatilities of call prices, by bisection between 0 and 4."""
    prices = tf.convert_to_tensor(prices)

    def halve(i, low, high):
        middle = (low + high) / 2
        is_low = option_price(middle, strikes, expiries, forwards, dtype=prices.dtype) < prices
        return i + 1, tf.where(is_low, middle, low), tf.where(is_low, high, middle)

    first = (tf.constant(0), tf.zeros_like(prices), 4 * tf.ones_like(prices))
    _, low, high = tf.while_loop(lambda i, *_: i < steps, halve, first)
    return (low + high) / 2


def _cdf(x):
    return (1 + tf.math.erf(x / np.sqrt(2.0))) / 2
