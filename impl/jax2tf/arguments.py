"""The arguments of a converted function: leaves, what JAX should trace for them, their tensors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jax2tf import compat, dtypes


class Argument:
    """One leaf of the arguments.

    Attributes:
      path: where it stands among the arguments, as "args[0]['x']".
      where: function and path, for messages.
      shape: what TensorFlow knows of its shape.
      dtype: the dtype that JAX gives it.
      weak_type: whether JAX takes its dtype as weak (a Python scalar).

    Raises:
      TypeError: the value is no array, or of a dtype that JAX does not have.
      OverflowError: a Python int that does not fit its dtype.
    """

    __slots__ = ("_value", "dtype", "path", "shape", "weak_type", "where")

    def __init__(self, path: tuple[Any, ...], value: Any, function: str):
        self.path, self.where = names(path, function)
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{self.where}: got a JAX tracer; a converted function takes TensorFlow values. "
                "To call TensorFlow inside JAX, use call_tf"
            )
        if hasattr(value, "__tf_tensor__") and not _is_tensor(value):
            # TensorFlow's protocol for what stands for a tensor, as a Keras variable does.
            value = tf.convert_to_tensor(value)
        try:
            self.dtype = dtypes.jax_dtype(value)
        except (TypeError, OverflowError) as error:
            raise type(error)(f"{self.where}: {error}") from None
        self._value = value
        self.shape = _shape(value)
        self.weak_type = dtypes.is_python_scalar(value)

    def tensor(self) -> tf.Tensor:
        """The value as a tensor of the dtype that JAX sees."""
        dtype = dtypes.to_tf(self.dtype)
        value = self._value
        if _is_tensor(value):
            tensor = tf.convert_to_tensor(value)
            return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
        if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
            value = jax.random.key_data(value)
        if self.dtype == jax.dtypes.float0:
            value = np.zeros(np.shape(value), bool)
        return tf.constant(np.asarray(value).astype(dtype.as_numpy_dtype, copy=False))


def flatten(
    args: tuple[Any, ...], kwargs: dict[str, Any], function: str
) -> tuple[list[Argument], jax.tree_util.PyTreeDef]:
    """The leaves and the structure of `(args, kwargs)`."""
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    return [Argument(path, value, function) for path, value in paths], tree


def names(path: tuple[Any, ...], function: str) -> tuple[str, str]:
    """Where a leaf of `(args, kwargs)` stands, alone and with the function, for messages."""
    top, *rest = path
    root = "args" if top.idx == 0 else "kwargs"
    text = f"{root}{jax.tree_util.keystr(tuple(rest))}"
    return text, f"jax2tf.convert({function}): argument {text}"


def unwrap(tree: Any) -> Any:
    """The tree with the containers that tf.Module wraps replaced by plain ones, at any depth."""

    def unwrap_leaf(leaf: Any) -> Any:
        plain = compat.unwrap_module_container(leaf)
        return leaf if plain is leaf else unwrap(plain)

    return jax.tree.map(unwrap_leaf, tree)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, tf.Tensor | tf.Variable)


def _shape(value: Any) -> tf.TensorShape:
    if isinstance(value, tf.Variable) and tf.executing_eagerly():
        # One that was made for several shapes has one of them now.
        known = value.shape.is_fully_defined()
        return value.shape if known else tf.convert_to_tensor(value).shape
    return value.shape if _is_tensor(value) else tf.TensorShape(np.shape(value))
