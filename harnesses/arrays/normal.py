"""Harnesses whose arguments are shapes: arrays of normal values."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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


def define_cases(
    primitive: str,
    fun: Callable[..., Any],
    names: Sequence[str],
    cases: Mapping[str, tuple[Any, ...]],
) -> None:
    """A harness a case: the shape of the one operand, then the params of those names."""
    for case, (shape, *values) in cases.items():
        params = dict(zip(names, values, strict=True))
        define_normal(primitive, case, partial(fun, **params), shape, params=params)
