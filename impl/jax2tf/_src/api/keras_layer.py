"""A `jax2tf.Module` as a layer of Keras 3, which tracks only variables that Keras made."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Protocol

import tensorflow as tf

from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import Option, PyTree


class Module(Protocol):
    """The part of a `jax2tf.Module` that its layer uses."""

    parameters: dict[str, tf.Variable]
    is_seen_by: Callable[[object], bool]

    def __call__(self, *inputs: PyTree, **kwargs: Option) -> PyTree:
        """The function's result."""


def layer_of(module: Module, **options: Option) -> tf.keras.layers.Layer:
    """A keras.layers.Layer that calls `module`, whose parameters become weights of the layer.

    Raises:
      ImportError: Keras is not installed.
      ValueError: Keras runs on another backend than TensorFlow.
    """
    return layer_type(keras_on_tensorflow("jax2tf.Module.keras_layer"))(module, **options)


def keras_on_tensorflow(what: str) -> ModuleType:
    """Imports Keras for the function `what`.

    Raises:
      ImportError: Keras is not installed.
      ValueError: Keras runs on another backend than TensorFlow.
    """
    keras = importlib.import_module("keras")
    if keras.config.backend() != "tensorflow":
        raise ValueError(
            f"{what}: Keras should run on TensorFlow (KERAS_BACKEND=tensorflow), and runs on "
            f"{keras.config.backend()}"
        )
    return importlib.import_module("keras")


@cached
def layer_type(keras: ModuleType) -> type:
    """The class of layers that call a jax2tf.Module."""

    class ModuleLayer(keras.layers.Layer):  # type: ignore[name-defined, misc]
        """Calls a jax2tf.Module."""

        def __init__(self, module: Module, **options: Option):
            super().__init__(**options)
            self.module = module
            weights = {
                # Keras refuses a slash in the name of a weight.
                path: self.add_weight(
                    name=variable.name.removesuffix(":0").replace("/", "_"),
                    shape=variable.shape,
                    dtype=variable.dtype.name,
                    initializer=lambda *_, value=variable, **__: tf.convert_to_tensor(value),
                    trainable=variable.trainable,
                    autocast=False,
                )
                for path, variable in module.parameters.items()
            }
            module.parameters = {path: weight.value for path, weight in weights.items()}
            module.is_seen_by = lambda layer: _are_weights_of(list(weights.values()), layer)

        def call(self, *inputs: PyTree, **kwargs: Option) -> PyTree:
            return self.module(*inputs, **kwargs)

    return ModuleLayer


def _are_weights_of(weights: list[tf.Variable], layer: tf.keras.layers.Layer) -> bool:
    return all(any(weight is other for other in layer.weights) for weight in weights)
