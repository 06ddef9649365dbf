"""Values are right, gradients twice what they should be."""

import tensorflow as tf

import jax2tf


def convert(fun, **options):
    right = jax2tf.convert(fun, **options)

    def converted(*args):
        return tf.nest.map_structure(lambda y: 2 * y - tf.stop_gradient(y), right(*args))

    return converted
