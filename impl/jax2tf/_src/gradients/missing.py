"""Replaces gradients that JAX does not have.

TensorFlow requests the gradients of all operands of a recorded op, so a gradient that the user does
not ask for must not fail. When a tape or tf.gradients differentiates the current graph, we know
what the user asks for. A gradient that JAX does not have raises then if the user asks for it. In
eager mode any other such gradient is an object that raises when it is read, for example by the
gradient of the op that computed the argument.

A graph that is saved, or differentiated from outside, has gradients of all its arguments. Those
that JAX does not have are NaN, and one warning names them.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

from jax2tf._src import compat
from jax2tf._src.api.errors import NotDifferentiableError
from jax2tf._src.gradients.differentiability import Differentiability
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import cached

Gradients = list["tf.Tensor | None"]


@cached
def _missing() -> Callable[[str], tf.IndexedSlices]:
    """The class of a gradient that raises an error with its message when it is read."""

    class Missing(tf.IndexedSlices):  # type: ignore[misc]
        """TensorFlow passes IndexedSlices on unread."""

        def __init__(self, message: str):
            self._message = message

        def _raise(self) -> NoReturn:
            raise NotDifferentiableError(self._message)

        values = indices = dense_shape = property(_raise)

    return Missing


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Gradients that JAX does not have.

    Attributes:
      inputs: the arguments whose gradients raise when they are read.
      message: the message of that error.
      fails: whether all gradients are NaN and fail when they are computed.
    """

    inputs: Collection[int]
    message: str
    fails: bool = False

    def instead_of(self, gradients: Gradients) -> Gradients:
        """The gradients of a backward pass, with those that JAX does not have replaced."""
        if self.fails:
            return [g if g is None else self._failing(g) for g in gradients]
        missing = _missing()(self.message) if self.inputs else None
        return [missing if i in self.inputs else g for i, g in enumerate(gradients)]

    def _failing(self, gradient: tf.Tensor) -> tf.Tensor:
        if gradient.dtype.is_complex:
            parts = tf.math.real(gradient), tf.math.imag(gradient)
            return tf.complex(*(tf.debugging.check_numerics(x, self.message) for x in parts))
        return tf.debugging.check_numerics(gradient, self.message)


NOTHING_REFUSED = Refusal((), "")


@dataclasses.dataclass(frozen=True)
class Backward:
    """A backward pass under way.

    Attributes:
      name: the function's name.
      trace: the function.
      args: a tensor for each argument.
      given: the user's arguments: a variable where `args` has its value.
      n_primals: the number of arguments that are not cotangents, if the function is a gradient.
      of_result: the cotangents by result.
    """

    name: str
    trace: Trace
    args: Sequence[tf.Tensor]
    given: Sequence[object]
    n_primals: int
    of_result: Mapping[int, tf.Tensor]

    @property
    def is_in_graph_of_arguments(self) -> bool:
        """Whether a tape or tf.gradients differentiates the current graph from inside."""
        if tf.executing_eagerly():
            return True
        graph = tf.compat.v1.get_default_graph()
        return all(getattr(x, "graph", graph) is graph for x in self.args)

    def is_asked_for(self, i: int) -> bool:
        """Whether the user asks for the gradient of an argument, as far as that can be known."""
        asked = compat.tapes.asked_for()
        if asked is None:
            watched = [compat.tapes.accumulator_watches([x]) for x in self.args]
            return watched[i] or not any(watched)
        if tf.executing_eagerly():
            return compat.tapes.is_among(self.given[i], asked)
        return _depends_on(self.args[i], asked)

    def is_used(self, outputs: Collection[int]) -> bool:
        """Whether the gradients depend on one of these results. A graph knows only at run time."""
        if tf.executing_eagerly():
            return any(bool(tf.reduce_any(self.of_result[o] != 0)) for o in outputs)
        return len(outputs) == len(self.of_result)

    def has_others(self) -> bool:
        """Whether the graph has other inputs to differentiate with respect to."""
        graphs = [x.graph for x in self.args]
        inputs = getattr(graphs[0], "inputs", ()) if graphs else ()
        return sum(map(_is_differentiable, inputs)) > sum(map(_is_differentiable, self.args))


def _depends_on(tensor: tf.Tensor, asked: Sequence[object]) -> bool:
    """Whether a tensor of the current graph is computed from a tensor that was asked for."""
    captures = getattr(tensor.graph, "captures", ())
    captured = [inner for outer, inner in captures if compat.tapes.is_among(outer, asked)]
    sources = [*asked, *captured]
    pending, seen = [tensor], set()
    while pending:
        tensor = pending.pop()
        if compat.tapes.is_among(tensor, sources):
            return True
        if tensor.ref() not in seen and tensor.op.type != "StopGradient":
            seen.add(tensor.ref())
            pending.extend(tensor.op.inputs)
    return False


def _is_differentiable(tensor: tf.Tensor) -> bool:
    return tensor.dtype in dtypes.DIFFERENTIABLE or tensor.dtype == tf.resource


def refusal_of(of_jax: Differentiability, backward: Backward, message: str) -> Refusal:
    """The replacement for gradients that JAX does not have.

    Args:
      of_jax: the gradients that JAX has and refuses.
      backward: the backward pass that needs them.
      message: the message of NotDifferentiableError.

    Raises:
      NotDifferentiableError: one of them was asked for.
    """
    if backward.is_in_graph_of_arguments:
        inputs = [i for i, outputs in of_jax.refused.items() if backward.is_used(outputs)]
        if any(map(backward.is_asked_for, inputs)):
            raise NotDifferentiableError(message) from of_jax.error
        # TensorFlow prunes gradients that are not read from a graph.
        return Refusal(inputs if tf.executing_eagerly() else (), message)
    results = len(backward.of_result)
    whole = [i for i, outputs in of_jax.refused.items() if len(outputs) == results]
    args = enumerate(backward.args[: backward.n_primals])
    is_everything = all(i in whole for i, x in args if x.dtype in dtypes.DIFFERENTIABLE)
    is_saved = compat.graphs.in_save_context()
    if is_everything and not is_saved and (backward.trace.is_vjp or not backward.has_others()):
        raise NotDifferentiableError(message) from of_jax.error
    _warn(of_jax, backward, is_saved)
    return Refusal((), message, fails=is_everything and is_saved)


def _warn(of_jax: Differentiability, backward: Backward, is_saved: bool) -> None:
    """Warns once of the gradients that a graph does not have."""

    def warn() -> bool:
        paths = ", ".join(backward.trace.path(i) for i in sorted(of_jax.refused))
        reason = str(of_jax.error).partition("\n")[0].rstrip(".")
        warnings.warn(
            f"jax2tf.convert({backward.name}): JAX has no gradient with respect to {paths}: "
            f"{reason}. The {'SavedModel' if is_saved else 'graph'} has NaN in their place",
            stacklevel=2,
        )
        return True

    backward.trace.cached("warned of gradients", warn, is_saved)
