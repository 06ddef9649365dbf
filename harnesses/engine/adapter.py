"""The only way from the judge to the implementation that it judges."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

DEFAULT_IMPLEMENTATION = "jax2tf"

# A lowering is a way through `convert`.
LOWERINGS: Mapping[str, Mapping[str, bool]] = {
    "xla": {"enable_xla": True, "native_serialization": False},
    "no_xla": {"enable_xla": False, "native_serialization": False},
    "native": {"enable_xla": True, "native_serialization": True},
}

# What a run takes without `--lowering`.
DEFAULT_LOWERINGS = ("xla",)


class Adapter:
    """An implementation under its module's name: any module with `convert` (and `call_tf`)."""

    def __init__(self, module: str = DEFAULT_IMPLEMENTATION):
        self.name = module
        self._module = importlib.import_module(module)

    def convert(
        self, fun: Callable[..., Any], lowering: str, *, with_gradient: bool = False
    ) -> Callable[..., Any]:
        """The TensorFlow function that the implementation makes of `fun`."""
        return self._module.convert(fun, with_gradient=with_gradient, **LOWERINGS[lowering])
