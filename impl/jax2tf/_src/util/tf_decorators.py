"""TensorFlow's decorators, with types for mypy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from jax2tf._src.util.lazy_imports import tf

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


def without_autograph(function: F) -> F:
    """The function, marked so that AutoGraph does not rewrite it."""
    return tf.autograph.experimental.do_not_convert(function)


def custom_gradient(function: Callable[..., tuple[T, Callable[..., object]]]) -> Callable[..., T]:
    """tf.custom_gradient: the first result of `function`, whose second result is the gradient."""
    return tf.custom_gradient(function)
