"""Prices by random paths, which two integers determine."""

import tensorflow as tf


def price_by_paths(payoff, spot, volatility, expiry, steps, samples, seed, dtype=tf.float64):
    """The mean payoff of paths in steps of equal length, and its standard error.

    Args:
      payoff: a function of the prices at the steps, [samples, steps].
      spot: the price at the start.
      volatility: of the logarithm, a year.
      expiry: in years.
      steps: how many steps a path has.
      samples: how many paths there are.
      seed: two integers.
      dtype: of the result.
    """
    spot, volatility, expiry = (tf.convert_to_tensor(x, dtype) for x in (spot, volatility, expiry))
    dt = expiry / steps
    normals = tf.random.stateless_normal([steps, samples], seed, dtype=dtype)

    def step(i, logarithm, prices):
        change = volatility * tf.sqrt(dt) * normals[i] - volatility**2 / 2 * dt
        logarithm += change
        return i + 1, logarithm, prices.write(i, spot * tf.exp(logarithm))

    prices = tf.TensorArray(dtype, size=steps, element_shape=[samples])
    start = (tf.constant(0), tf.zeros([samples], dtype), prices)
    _, _, prices = tf.while_loop(lambda i, *_: i < steps, step, start, maximum_iterations=steps)
    payoffs = payoff(tf.transpose(prices.stack()))
    error = tf.math.reduce_std(payoffs) / tf.sqrt(tf.cast(samples, dtype))
    return tf.reduce_mean(payoffs), error
