"""What makes a function of one or two operands a function of tf.math."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import OPERATORS, convert, operands, require

# TensorFlow's names, the function, the dtypes it takes, TensorFlow's operation for messages.
Row = tuple[str, Callable, tuple, str]


def register_unary(rows: Iterable[Row], static: Container[str] = ()) -> None:
    """Registers functions of one operand; those of `static` are arithmetic of shapes."""
    for names, function, allowed, op_name in rows:
        _unary(names.split(), function, allowed, op_name, static)


def _unary(
    names: list[str], function: Callable, allowed: tuple, op_name: str, static: Container[str]
) -> None:
    first = names[0]

    def call(x: Any, name: Any = None) -> Any:
        return function(require(op_name, convert(x), allowed))

    named(call, first.rpartition(".")[2], f"tf.{first}: elementwise, of {', '.join(allowed)}.")
    op(*names, static=first in static)(call)


def register_binary(rows: Iterable[Row], never_static: Container[str] = ()) -> None:
    """Registers functions of two operands; but for `never_static` they are arithmetic of shapes."""
    for names, function, allowed, op_name in rows:
        _binary(names.split(), function, allowed, op_name, never_static)


def _binary(
    names: list[str], function: Callable, allowed: tuple, op_name: str, never_static: Container[str]
) -> None:
    first = names[0]

    def call(x: Any, y: Any, name: Any = None) -> Any:
        return binary(op_name, function, allowed, x, y)

    named(
        call,
        first.rpartition(".")[2],
        f"tf.{first}: elementwise with broadcasting, of {', '.join(allowed)}.",
    )
    called = op(*names, static=first not in never_static)(call)
    OPERATORS[call.__name__] = called


def binary(op_name: str, function: Callable, allowed: tuple, x: Any, y: Any) -> Any:
    """A function of two operands of one dtype that broadcast."""
    x, y = operands(op_name, x, y)
    require(op_name, x, allowed)
    broadcast_shapes(x.shape, y.shape, op_name)
    return function(x, y)
