"""A surface of volatilities over expiries."""

import tensorflow as tf


class Surface(tf.Module):
    """Volatilities that are linear between the expiries where they are known, constant beyond."""

    def __init__(self, expiries, volatilities, name="surface"):
        super().__init__(name=name)
        self.expiries = tf.convert_to_tensor(expiries)
        if self.expiries.shape.rank != 1:
            raise ValueError(f"expiries have rank {self.expiries.shape.rank}, and should have 1")
        self.volatilities = tf.Variable(volatilities, dtype=self.expiries.dtype)

    def __call__(self, expiry):
        expiry = tf.convert_to_tensor(expiry, self.expiries.dtype)
        last = self.expiries.shape.as_list()[0] - 1
        right = tf.clip_by_value(tf.searchsorted(self.expiries, expiry), 1, last)
        x0, x1 = tf.gather(self.expiries, right - 1), tf.gather(self.expiries, right)
        y0, y1 = tf.gather(self.volatilities, right - 1), tf.gather(self.volatilities, right)
        share = tf.clip_by_value((expiry - x0) / (x1 - x0), 0.0, 1.0)
        return y0 + share * (y1 - y0)
