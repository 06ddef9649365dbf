"""Who makes the ops: TensorFlow, unless `made_by` has set another maker.

    with makers.made_by(MyMaker()):
        y = ops.add(x, 1.0)  # MyMaker().op("AddV2", {"x": x, "y": ...})

`asked.py` lists the ops and functions that a maker gets from the rules, with their arguments.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from jax2tf._src.util.lazy_imports import tf

# An operand, or an attribute, as the functions of tf.raw_ops take it.
OpArgument: TypeAlias = Any


class Maker(Protocol):
    """Makes ops from tensors of its own."""

    def op(self, name: str, arguments: Mapping[str, OpArgument]) -> Any:
        """Makes one op; the result is a tensor, or a tuple of those of several results.

        Args:
          name: TensorFlow's name of the op, as "AddV2".
          arguments: operands and attributes by their names in tf.raw_ops. An operand is a tensor of
            this maker, a number or an array; an attribute that is not there has its default.
        """

    def function(
        self, name: str, args: Sequence[OpArgument], options: Mapping[str, OpArgument]
    ) -> Any:
        """The result of a function of several ops, or of none.

        Args:
          name: its name in `tf`, as "linalg.qr" or "get_static_value".
          args: the positional arguments.
          options: the keyword arguments.
        """

    def is_tensor(self, value: OpArgument) -> bool:
        """Whether a value is a tensor of this maker."""


_maker: contextvars.ContextVar[Maker | None] = contextvars.ContextVar("maker", default=None)

# The maker that `made_by` has set; None for TensorFlow.
current = _maker.get


@contextlib.contextmanager
def made_by(maker: Maker) -> Iterator[None]:
    """A context in which another maker than TensorFlow makes the ops."""
    token = _maker.set(maker)
    try:
        yield
    finally:
        _maker.reset(token)


def is_tensor(value: OpArgument) -> bool:
    """Whether a value is a tensor of whoever makes the ops."""
    maker = current()
    return isinstance(value, tf.Tensor) if maker is None else maker.is_tensor(value)
