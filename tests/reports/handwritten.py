"""An implementation that knows one program: the MLP, written by hand in TensorFlow."""

import tensorflow as tf


def convert(fun, *, with_gradient, enable_xla, native_serialization, polymorphic_shapes=None):
    """The MLP, whatever `fun` is."""

    def mlp(layers, x):
        *hidden, last = layers
        for layer in hidden:
            x = tf.nn.relu(x @ layer["kernel"] + layer["bias"])
        return tf.nn.log_softmax(x @ last["kernel"] + last["bias"])

    return mlp
