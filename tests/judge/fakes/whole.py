"""Makes native modules for one device: the mesh of a function is gone from them."""

from collections.abc import Callable
from typing import Any

import jax2tf


def convert(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """As jax2tf's, for platforms on which a program of each device is one over whole arrays."""
    if "native_serialization_platforms" in options:
        options["native_serialization_platforms"] = ("cpu", "tpu")
    return jax2tf.convert(fun, **options)
