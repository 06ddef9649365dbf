"""Gradients of functions that read TensorFlow's variables through call_tf."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from jax2tf._src import compat
from jax2tf._src.call_tf.variables import value_of
from jax2tf._src.gradients.missing import Gradients
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree


@dataclasses.dataclass(frozen=True)
class Unwritten:
    """Variables that must keep their values until the backward pass.

    The backward pass runs the called TensorFlow function again, which reads them again.
    """

    name: str
    variables: Sequence[tf.Variable]
    values: Sequence[tf.Tensor]

    def checks(self) -> list[tf.Operation]:
        """Ops that fail if a variable was written since the forward pass."""
        return [
            tf.debugging.Assert(
                _is_same(value_of(variable), value),
                [
                    f"jax2tf.convert({self.name}): the variable {variable.name} was written "
                    "between the call and its gradient, which computes the TensorFlow function "
                    "that reads it again. Take the gradient before, or pass the variable as an "
                    "argument"
                ],
            )
            for variable, value in zip(self.variables, self.values, strict=True)
        ]


def beside_variables(
    gradient: Callable[..., Gradients], unwritten: Unwritten
) -> Callable[..., PyTree]:
    """The gradient in the form that tf.custom_gradient needs for functions that read variables.

    The variables are among the arguments, and TensorFlow asks for their gradients a second time,
    because the function reads them inside. The second ones are None.
    """

    def with_variables(*cotangents: tf.Tensor, variables: Sequence[tf.Variable] = ()) -> PyTree:
        compat.graphs.read_variables_of_control_flow()
        with tf.control_dependencies(unwritten.checks()):
            gradients = [
                tf.identity(g) if isinstance(g, tf.Tensor) else g for g in gradient(*cotangents)
            ]
        return (gradients, [None] * len(variables)) if variables else gradients

    return with_variables


def _is_same(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    same = tf.equal(one, other)
    if one.dtype in dtypes.DIFFERENTIABLE:
        same |= tf.not_equal(one, one) & tf.not_equal(other, other)  # NaN
    return tf.reduce_all(same)
