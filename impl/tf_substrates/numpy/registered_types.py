"""What tf.register_tensor_conversion_function has registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# (priority, type, function), the lower priorities first.
_CONVERSIONS: list[tuple[int, Any, Callable]] = []


def register(kind: Any, function: Callable, priority: int) -> None:
    _CONVERSIONS.append((priority, kind, function))
    _CONVERSIONS.sort(key=lambda entry: entry[0])


def as_registered(value: Any, dtype: Any = None) -> Any:
    """The tensor of a value of a registered type; everything else is given back."""
    for _, kind, function in _CONVERSIONS:
        if isinstance(value, kind):
            return function(value, dtype=dtype)
    return value
