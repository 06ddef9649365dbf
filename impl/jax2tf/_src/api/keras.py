"""The class behind `jax2tf.keras.Layer`: made, and Keras imported, when it is first asked for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src.api import keras_layer
from jax2tf._src.api.convert import convert
from jax2tf._src.api.module import Module
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import Option, PyTree

# The key of an array in what Keras saves of the tree of parameters.
_ARRAY = "jax2tf_array"


def __getattr__(name: str) -> object:
    if name == "Layer":
        return _layer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has Layer")


@dataclasses.dataclass(frozen=True)
class _Arguments:
    """What a layer was made with; Keras wraps dicts that are attributes, but no such object.

    Attributes:
      params: the tree of parameters, each as `_saved` has it.
    """

    fun_jax: Callable[..., PyTree]
    params: PyTree
    polymorphic_shapes: PyTree
    convert_options: dict[str, Option] | None


@functools.cache
def _layer() -> type:
    keras = keras_layer.keras_on_tensorflow("jax2tf.keras.Layer")

    class Layer(keras_layer.layer_type(keras)):  # type: ignore[misc]
        """Calls a JAX function, whose parameters are weights that Keras trains and saves.

        `model.save("model.keras")` saves it where Keras can name the function: one of a module,
        registered with keras.saving.register_keras_serializable, or given to load_model in
        custom_objects. The parameters have to be dicts, lists and tuples of arrays.

        Args:
          fun_jax: `fun_jax(params, *inputs, **kwargs)`, as `jax2tf.convert` takes it.
          params: a pytree of arrays: the weights' first values.
          polymorphic_shapes: as `jax2tf.convert` takes it, for the inputs alone.
          convert_options: other options of `jax2tf.convert`, as {"enable_xla": False}.
          **options: those of keras.layers.Layer, as name, dtype and trainable.

        Raises:
          ImportError: Keras is not installed.
          ValueError: Keras runs on another backend than TensorFlow.
        """

        def __init__(
            self,
            fun_jax: Callable[..., PyTree],
            params: PyTree,
            *,
            polymorphic_shapes: PyTree = None,
            convert_options: dict[str, Option] | None = None,
            **options: Option,
        ):
            option_checks.callable_(
                fun_jax, "jax2tf.keras.Layer: fun_jax", " of parameters and inputs"
            )
            options_of_convert = _convert_options(convert_options)
            params = jax.tree.map(_array, params, is_leaf=_is_saved_array)
            module = Module(
                fun_jax, params, polymorphic_shapes=polymorphic_shapes, **options_of_convert
            )
            super().__init__(module, **options)
            specs = jax.tree.map(_saved, params)
            self._arguments = _Arguments(fun_jax, specs, polymorphic_shapes, convert_options)

        def get_config(self) -> dict[str, object]:
            """What Keras saves beside the weights."""
            given = self._arguments
            return {
                **super().get_config(),
                "fun_jax": keras.saving.serialize_keras_object(given.fun_jax),
                "params": keras.saving.serialize_keras_object(given.params),
                "polymorphic_shapes": given.polymorphic_shapes,
                "convert_options": given.convert_options,
            }

        @classmethod
        def from_config(cls, config: dict[str, Option]) -> tf.keras.layers.Layer:
            """The layer of a config, with zeros for weights."""
            config = dict(config)
            for name in ("fun_jax", "params"):
                config[name] = keras.saving.deserialize_keras_object(config[name])
            return cls(**config)

    result: type = keras.saving.register_keras_serializable("jax2tf")(Layer)
    return result


def _convert_options(options: object) -> dict[str, Option]:
    if options is None:
        return {}
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise TypeError(
            "jax2tf.keras.Layer: convert_options should be a dict of options of jax2tf.convert, "
            f"such as {{'enable_xla': False}}, got {option_checks.shown(options)}"
        )
    own = ["polymorphic_shapes"]
    option_checks.options_of(convert, options, "jax2tf.keras.Layer: convert_options", own)
    return options


def _saved(array: PyTree) -> dict[str, object]:
    return {_ARRAY: [np.asarray(array).dtype.name, list(np.shape(array))]}


def _is_saved_array(node: PyTree) -> bool:
    return isinstance(node, dict) and node.keys() == {_ARRAY}


def _array(leaf: PyTree) -> PyTree:
    """A leaf of the parameters; zeros for one of a config."""
    if not _is_saved_array(leaf):
        return leaf
    dtype, shape = leaf[_ARRAY]
    return np.zeros(shape, jax.numpy.dtype(dtype))
