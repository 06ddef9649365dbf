"""`load` makes a wrong function of a file of the sine. `convert` gives the right one."""

import jax.numpy as jnp
import tensorflow as tf


def load(blob):
    return lambda x: jnp.sin(x) + 1


def convert(fun, **options):
    return tf.math.sin
