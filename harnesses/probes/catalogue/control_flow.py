"""Branches, loops and lists of arrays: a use is of a few ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from harnesses.probes.probe import ALL, NUMBERS, Of, Probe

_YES = Of((), "bool", values=True, edges=False)
_STEPS = Of((), "int32", values=3, edges=False)
_SECOND = Of((), "int32", values=1, edges=False)


def probes() -> list[Probe]:
    """Branches, loops, lists."""
    pair = (Of(edges=False), Of(edges=False))
    return [
        Probe("StatelessIf", _branch, (_YES, *pair), ALL),
        Probe("StatelessCase", _branches, (_SECOND, *pair), ALL),
        Probe("StatelessWhile", _loop, (_STEPS, *pair), NUMBERS),
        Probe("StatelessWhile", _swap, (_STEPS, *pair), NUMBERS, "that moves its arguments"),
        Probe(
            "StatelessWhile", _bounded, (_STEPS, *pair), NUMBERS, "with a largest number of steps"
        ),
        Probe("TensorListReserve", _list, (Of((3, 4), edges=False),), ALL),
        Probe(
            "TensorListReserve",
            _reversed_list,
            (Of((3, 4), edges=False),),
            ("int32", "float32"),
            "written backwards",
        ),
    ]


def _branch(condition: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
    return tf.cond(condition, lambda: (x, y), lambda: (y, x))


def _branches(index: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
    return tf.switch_case(index, [lambda: (x, y), lambda: (y, x), lambda: (y, y)])


def _loop(steps: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
    return tf.while_loop(lambda i, _: i < steps, lambda i, c: (i + 1, c + y), (0, x))[1]


def _swap(steps: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
    return tf.while_loop(lambda i, *_: i < steps, lambda i, a, b: (i + 1, a + b, a), (0, x, y))[1:]


def _bounded(steps: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> Any:
    return tf.while_loop(
        lambda i, _: i < steps, lambda i, c: (i + 1, c + y), (0, x), maximum_iterations=2
    )[1]


def _list(rows: tf.Tensor) -> tf.Tensor:
    """The rows, written one after the other into a list."""
    return _written(rows, lambda i: i)


def _reversed_list(rows: tf.Tensor) -> tf.Tensor:
    """The rows, the last one first, each written into its own place of a list."""
    return _written(rows, lambda i: 2 - i)


def _written(rows: tf.Tensor, at: Callable[[Any], Any]) -> tf.Tensor:
    written = tf.TensorArray(rows.dtype, 3, element_shape=[4])
    _, written = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, out: (i + 1, out.write(at(i), tf.gather(rows, at(i)))),
        (0, written),
    )
    return written.stack()
