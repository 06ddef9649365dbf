"""JAX's own export: StableHLO, serialised, read back and called."""

from collections.abc import Callable
from typing import Any

import jax
from jax import export
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from harnesses.engine.converters import Converter


class RoundTrip(Converter):
    """The bytes of `jax.export` are the model."""

    def convert(self, fun: Callable[..., Any], args: tuple) -> bytearray:
        return export.export(jax.jit(fun))(*args).serialize()

    def call(self, model: bytearray, args: tuple) -> Any:
        exported = export.deserialize(model)
        return exported.call(*_on_devices(args, exported.nr_devices))


def _on_devices(args: tuple, count: int) -> tuple:
    """The arguments on each of so many devices: what was exported for several is called on them."""
    if count == 1:
        return args
    mesh = jax.make_mesh((count,), ("devices",), axis_types=(AxisType.Auto,))
    return jax.device_put(args, NamedSharding(mesh, PartitionSpec()))
