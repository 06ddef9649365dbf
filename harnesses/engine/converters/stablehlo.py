"""JAX's own export: StableHLO, serialised, read back and called."""

from collections.abc import Callable
from typing import Any

import jax
from jax import export

from harnesses.engine.converters import Converter


class RoundTrip(Converter):
    """The bytes of `jax.export` are the model."""

    def convert(self, fun: Callable[..., Any], args: tuple) -> bytearray:
        return export.export(jax.jit(fun))(*args).serialize()

    def call(self, model: bytearray, args: tuple) -> Any:
        return export.deserialize(model).call(*args)
