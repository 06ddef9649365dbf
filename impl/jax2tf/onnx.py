"""ONNX files of TensorFlow functions that `jax2tf.convert` made.

`jax2tf.export` writes the file of a JAX function. This module is for who puts TensorFlow's own ops
around it, and for who measures the writer.

>>> import jax.numpy as jnp
>>> import tensorflow as tf
>>> import jax2tf.onnx
>>> tanh = jax2tf.convert(jnp.tanh, target=jax2tf.onnx.TARGET, polymorphic_shapes="b, _")
>>> x = tf.TensorSpec([None, 3], tf.float32, "x")
>>> tf_function = tf.function(lambda x: {"y": tanh(2 * x)}, autograph=False, input_signature=[x])
>>> file = jax2tf.onnx.file_of(tf_function)
"""

from __future__ import annotations

from jax2tf._src.util import lazy_imports as _lazy_imports

__getattr__, __dir__ = _lazy_imports.names(
    __name__,
    {
        "TARGET": "jax2tf._src.export.onnx.engine",
        "file_of": "jax2tf._src.export.onnx.functions",
        "file_of_jax": "jax2tf._src.export.onnx.own_graphs",
    },
)

del _lazy_imports
