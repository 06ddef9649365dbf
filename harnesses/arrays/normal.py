"""Harnesses whose arguments are shapes: arrays of normal values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from harnesses.harness import Normal, define

# Where a dtype could make a difference.
SOME = tuple(np.dtype(d) for d in (np.float32, np.int32, np.bool_))


def define_normal(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    *args: Any,
    dtype: Any = np.float32,
    params: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """`define` with shapes in place of arguments: each is one of normal values of `dtype`."""
    arguments = [Normal(arg, dtype) if isinstance(arg, tuple) else arg for arg in args]
    define(primitive, case, fun, arguments, dtype=dtype, params=params, **kwargs)
