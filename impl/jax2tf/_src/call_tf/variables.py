"""Captured variables of TensorFlow functions, as arguments of the JAX function that calls them.

JAX differentiates only with respect to arguments. So jax2tf.convert traces a function that calls
TensorFlow once more, with the values of the captured variables as arguments: inside of `passing`,
call_tf makes them operands of its calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import jax

from jax2tf._src.call_tf.functions import Function, Root
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.lazy_imports import tf


class Passed:
    """Variables and the values that JAX has for them while it traces.

    Attributes:
      missing: variables that the calls capture and that have no value here.
    """

    def __init__(self, variables: Sequence[tf.Variable], values: Sequence[jax.Array]):
        self._values = {Identity(v.handle): x for v, x in zip(variables, values, strict=True)}
        self._missing: dict[Identity, tf.Variable] = {}

    @property
    def missing(self) -> list[tf.Variable]:
        return list(self._missing.values())

    def forget_values(self) -> None:
        """Drops the values: JAX keeps this object as the key of its caches of traces."""
        self._values.clear()

    def to(self, function: Root, operands: list[jax.Array]) -> tuple[Function, list[jax.Array]]:
        """The function and its operands, extended by the variables that have a value here."""
        variables = function.signature([jax.typeof(x) for x in operands]).variables
        self._missing |= {
            Identity(v.handle): v for v in variables if Identity(v.handle) not in self._values
        }
        passed = [v for v in variables if Identity(v.handle) in self._values]
        if not passed:
            return function, operands
        values = [self._values[Identity(v.handle)] for v in passed]
        return function.with_variables(len(operands), passed), [*operands, *values]


def value_of(variable: tf.Variable) -> tf.Tensor:
    """The variable's value in the dtype that JAX gives it; gradients reach the variable."""
    return tf.cast(tf.convert_to_tensor(variable), dtypes.dtype_of_val(variable))


# A user context is part of the keys of JAX's caches, so a function that was traced outside of
# `passing` is traced again inside.
_current = jax.make_user_context(default_value=None)


def current() -> Passed | None:
    """The variables of the enclosing `passing`, if there is one."""
    return _current.value


@contextlib.contextmanager
def passing(variables: Sequence[tf.Variable], values: Sequence[jax.Array]) -> Iterator[Passed]:
    """A context in which call_tf passes these variables by their values."""
    passed = Passed(variables, values)
    try:
        with _current(passed):
            yield passed
    finally:
        passed.forget_values()
