"""`jax2tf.keras.Layer`: a JAX function of parameters and inputs as a layer of Keras 3.

Keras is imported when `Layer` is first asked for. That registers the class with Keras: do it before
a model is loaded that has such layers.

>>> import jax.numpy as jnp
>>> from jax2tf.keras import Layer
>>> layer = Layer(lambda p, x: x @ p["w"], {"w": jnp.ones([3, 2])}, polymorphic_shapes="b, _")
>>> layer(jnp.ones([4, 3])).shape
TensorShape([4, 2])
"""

from __future__ import annotations

from jax2tf._src.util import lazy_imports as _lazy_imports

__getattr__, __dir__ = _lazy_imports.names(__name__, {"Layer": "jax2tf._src.api.keras"})

del _lazy_imports
