"""`load` gives the right sine. `convert` makes a wrong function of it."""

import jax.numpy as jnp
import tensorflow as tf


def load(blob):
    return jnp.sin


def convert(fun, **options):
    return lambda x: tf.math.sin(x) + 1
