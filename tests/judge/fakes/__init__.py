"""Wrong implementations, each wrong in one way, for the judge to object to.

They run JAX itself and then spoil what it gave, so nothing but the one wrong thing is wrong.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow as tf

Convert = Callable[..., Callable[..., Any]]


def spoiled_by(spoil: Callable[[Any], Any]) -> Convert:
    """A `convert` whose functions return `spoil` of JAX's result, a pytree of NumPy arrays.

    The functions run in eager mode alone.
    """

    def convert(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        def converted(*args: tf.Tensor) -> Any:
            arrays = jax.tree.map(lambda tensor: tensor.numpy(), args)
            return jax.tree.map(tf.constant, spoil(jax.tree.map(np.asarray, jax.jit(fun)(*arrays))))

        return converted

    return convert
