"""Gives results that are one too large, but on the devices of a mesh alone."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax2tf
from jax2tf.dtensor import convert as _convert

convert = jax2tf.convert


def _on_mesh(fun: Callable[..., Any], mesh: Any, **options: Any) -> Callable[..., Any]:
    def off_by_one(*args: Any) -> Any:
        return fun(*args) + 1

    return _convert(off_by_one, mesh, **options)


dtensor = SimpleNamespace(convert=_on_mesh)
