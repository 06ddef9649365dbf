"""The converted function builds an op that fails when it runs."""

import tensorflow as tf


def convert(fun, **options):
    def converted(x):
        with tf.control_dependencies([tf.debugging.Assert(tf.size(x) < 0, ["no kernel"])]):
            return tf.identity(x)

    return converted
