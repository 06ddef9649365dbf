"""jax.jit on another device: how far two devices of JAX are from each other.

JAX's result, which is the law, is that of the device of the cell. This converter takes the first
accelerator beside it; where there is none, the second device of the CPU.
"""

from collections.abc import Callable
from typing import Any

import jax

from harnesses.engine.converters import Converter


class OtherDevice(Converter):
    """The function compiled for another device of this process."""

    # Which argument it was that a program of a mesh did not find on its devices.
    noise = ((r"(?<=for jitted computation)\. Got argument .*", ""),)

    def convert(self, fun: Callable[..., Any], args: tuple) -> tuple[Any, jax.Device]:
        device = _other()
        return jax.jit(fun).lower(*jax.device_put(args, device)).compile(), device

    def call(self, model: tuple[Any, jax.Device], args: tuple) -> Any:
        compiled, device = model
        return compiled(*jax.device_put(args, device))


def _other() -> jax.Device:
    (law,) = jax.numpy.zeros(()).devices()
    others = [device for device in (*jax.devices(), *jax.devices("cpu")) if device != law]
    return next((device for device in others if device.platform != law.platform), others[0])
