"""TensorFlow's decorators with types: what they give is typed as what they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


def without_autograph(function: F) -> F:
    """The function, which AutoGraph does not rewrite."""
    made: F = tf.autograph.experimental.do_not_convert(function)
    return made


def custom_gradient(function: Callable[..., tuple[T, Callable[..., object]]]) -> Callable[..., T]:
    """The first result of the function, whose second one is the gradient."""
    made: Callable[..., T] = tf.custom_gradient(function)
    return made
