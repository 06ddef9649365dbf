"""TensorFlow's part of the engine: tensors, devices, and the execution modes.

A mode is how a converted function is run, in two steps. The first makes something callable of it;
an exception in it belongs to the phase "lower". The second calls it; an exception there belongs to
the phase "run". Eager mode lowers and runs in one, so there the judge looks at the exception.
"""

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from harnesses.engine.devices import DeviceError

# A judge makes a new tf.function for each cell, which TensorFlow takes for a mistake and warns of.
tf.get_logger().setLevel("ERROR")

Mode = Callable[[Callable[..., Any], tuple], Callable[..., Any]]


def device(name: str) -> contextlib.AbstractContextManager:
    """A context in which TensorFlow's ops run on the device: "cpu", "gpu" or "tpu".

    Raises:
      DeviceError: if TensorFlow does not have it; left alone, it would silently take the CPU.
    """
    if not tf.config.list_logical_devices(name.upper()):
        raise DeviceError(f"--device {name}: TensorFlow finds none here")
    return tf.device(f"/{name.upper()}:0")


def constant(array: np.ndarray) -> tf.Tensor:
    """The array as a tensor of the same dtype."""
    return tf.constant(array)


def to_numpy(leaf: Any) -> np.ndarray:
    """A leaf of a result as an array."""
    return np.asarray(leaf.numpy() if isinstance(leaf, tf.Tensor) else leaf)


def whole(leaf: Any) -> np.ndarray:
    """A leaf of a result that is spread over the devices of a mesh as one array."""
    if not tf.experimental.dtensor.is_dtensor(leaf):
        return to_numpy(leaf)
    mesh = tf.experimental.dtensor.fetch_layout(leaf).mesh
    layout = tf.experimental.dtensor.Layout.replicated(mesh, leaf.shape.rank)
    return tf.experimental.dtensor.relayout(leaf, layout).numpy()


def make_logical_devices(count: int) -> None:
    """Makes so many devices of the CPU, before anything in the process has used TensorFlow."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, devices)


def is_op_error(error: BaseException) -> bool:
    """Whether an op raised it while it ran."""
    return isinstance(error, tf.errors.OpError)


def _eager(converted: Callable[..., Any], args: tuple) -> Callable[..., Any]:
    return converted


def _graph(converted: Callable[..., Any], args: tuple) -> Callable[..., Any]:
    return _traced(tf.function(converted, autograph=False), args)


def _compiled(converted: Callable[..., Any], args: tuple) -> Callable[..., Any]:
    return _traced(tf.function(converted, autograph=False, jit_compile=True), args)


def _traced(function: Any, args: tuple) -> Callable[..., Any]:
    function.get_concrete_function(*args)
    return function


def graph_of(callable_: Callable[..., Any], args: tuple) -> tf.Graph | None:
    """The graph that a mode traced for the arguments; None where it traced none."""
    if not isinstance(callable_, tf.types.experimental.PolymorphicFunction):
        return None
    return callable_.get_concrete_function(*args).graph


def restored(converted: Callable[..., Any], args: tuple) -> Callable[..., Any]:
    """The function after a round trip through a SavedModel that holds its gradient."""
    module = tf.Module()
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in args]
    module.call = tf.function(converted, autograph=False, input_signature=specs)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    with tempfile.TemporaryDirectory(prefix="saved-") as folder:
        tf.saved_model.save(module, folder, options=options)
        return tf.saved_model.load(folder).call


MODES: Mapping[str, Mode] = {"eager": _eager, "graph": _graph, "compiled": _compiled}
