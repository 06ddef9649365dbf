"""The class `jax2tf.keras.Layer`, which is made when it is first used, as it imports Keras."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
import tensorflow as tf

from jax2tf._src.api import keras_layer
from jax2tf._src.api.convert import convert
from jax2tf._src.api.module import Module
from jax2tf._src.util import option_checks
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Option, PyTree

# Marks an array in the tree of parameters that Keras saves.
_ARRAY = "jax2tf_array"


def __getattr__(name: str) -> object:
    if name == "Layer":
        return _layer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has Layer")


@dataclasses.dataclass(frozen=True)
class _Arguments:
    """The arguments of a layer, in an object because Keras wraps dicts that are attributes.

    Attributes:
      params: the tree of parameters, with the result of `_saved` for each array.
    """

    fun_jax: Callable[..., PyTree]
    params: PyTree
    polymorphic_shapes: PyTree
    convert_options: dict[str, Option] | None


@cached
def _layer() -> type:
    keras = keras_layer.keras_on_tensorflow("jax2tf.keras.Layer")

    class Layer(keras_layer.layer_type(keras)):  # type: ignore[misc]
        """Calls a JAX function, whose parameters are weights that Keras trains and saves.

        `model.save("model.keras")` saves it where Keras can name the function: one of a module,
        registered with keras.saving.register_keras_serializable, or passed to load_model in
        custom_objects. The parameters must be dicts, lists and tuples of arrays.

        Args:
          fun_jax: `fun_jax(params, *inputs, **kwargs)`, as `jax2tf.convert` takes it.
          params: a pytree of arrays: the weights' first values.
          polymorphic_shapes: as `jax2tf.convert` takes it, but only for the inputs.
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
            """The config that Keras saves beside the weights."""
            arguments = self._arguments
            return {
                **super().get_config(),
                "fun_jax": keras.saving.serialize_keras_object(arguments.fun_jax),
                "params": keras.saving.serialize_keras_object(arguments.params),
                "polymorphic_shapes": arguments.polymorphic_shapes,
                "convert_options": arguments.convert_options,
            }

        @classmethod
        def from_config(cls, config: dict[str, Option]) -> tf.keras.layers.Layer:
            """The layer of a config, whose weights are zeros."""
            config = dict(config)
            for name in ("fun_jax", "params"):
                config[name] = keras.saving.deserialize_keras_object(config[name])
            return cls(**config)

    return keras.saving.register_keras_serializable("jax2tf")(Layer)


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
    """A leaf of the parameters, or zeros for a leaf of a config."""
    if not _is_saved_array(leaf):
        return leaf
    dtype, shape = leaf[_ARRAY]
    return np.zeros(shape, jax.numpy.dtype(dtype))
