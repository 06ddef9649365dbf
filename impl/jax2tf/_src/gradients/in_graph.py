"""Gradients of our own in a graph, which live no longer than the graph.

tf.custom_gradient registers each gradient for as long as the process runs, and with it the graph:
a process that converts time and again would keep every graph. Here the graph holds the gradient.
TensorFlow's registry has a weak reference, and that goes when the graph goes. An imported copy of
the graph has no gradient any more then, and TensorFlow says so.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import tensorflow as tf

from jax2tf._src import compat
from jax2tf._src.ops import writing
from jax2tf._src.util.tf_decorators import without_autograph

# From cotangents of results to gradients of arguments.
Gradient: TypeAlias = Callable[..., "list[tf.Tensor | None]"]
# The same, from arguments and cotangents of results.
GradientOf: TypeAlias = Callable[
    [Sequence[tf.Tensor], Sequence[tf.Tensor]], "list[tf.Tensor | None]"
]

_ids = itertools.count()

# The attribute of a graph that holds its gradients.
_HELD = "_jax2tf_gradients"


def with_gradient(
    results: Sequence[tf.Tensor],
    args: Sequence[tf.Tensor],
    gradient: Gradient,
    gradient_of: GradientOf,
    name: str,
    is_differentiated: bool = False,
) -> list[tf.Tensor]:
    """The results in the graph under construction, with `gradient` as their gradient.

    Args:
      results: what was computed from `args`, of dtypes that TensorFlow differentiates.
      args: tensors.
      gradient: the gradients of `args`, given the cotangents of `results`.
      gradient_of: the same as a function of other arguments too, for tf.vectorized_map.
      name: what is differentiated, for messages.
      is_differentiated: whether a SavedModel is to hold derivatives of the gradient.
    """
    count = len(results)

    def backward(of_results: Gradient, cotangents: Sequence[tf.Tensor]) -> list[tf.Tensor | None]:
        # The op below passes the arguments on too, so that its gradients can be those of them.
        return [*[None] * count, *of_results(*cotangents[:count])]

    graph = tf.compat.v1.get_default_graph()
    held = weakref.proxy(gradient)

    # To save it, TensorFlow makes a tf.function of it, and would have AutoGraph rewrite all that it
    # calls: this package and JAX, for minutes.
    @without_autograph
    def registered(op: tf.Operation, *cotangents: tf.Tensor) -> list[tf.Tensor | None]:
        del op
        return backward(held, cotangents)

    registered.__name__ = compat.tapes.REGISTERED_GRADIENT_NAME
    op_type = f"jax2tf.{name}.{next(_ids)}"
    tf.RegisterGradient(op_type)(registered)
    _keep(graph, gradient, op_type)
    inputs = [*results, *args]
    with graph.gradient_override_map({"IdentityN": op_type}), compat.tapes.nothing_recorded():
        outputs = _identities(inputs)
    given = list(outputs[:count])
    # A tape makes zeros for the cotangent of each output that nobody reads: it hears of no others.
    compat.tapes.record(name, given, inputs, lambda *cotangents: backward(gradient, cotangents))

    if given:
        map_rows(given[0].op, count, len(args), gradient_of, name, is_differentiated)
    return given


def map_rows(
    op: tf.Operation,
    n_results: int,
    n_args: int,
    gradient_of: GradientOf,
    name: str,
    is_differentiated: bool,
) -> None:
    """Has tf.vectorized_map keep the gradient of an op that passes results and arguments on.

    It would otherwise differentiate what made the results: without the rules of JAX.
    """

    def mapped(
        results: Sequence[tf.Tensor], others: Sequence[tf.Tensor], have_rows: Sequence[bool]
    ) -> list[tf.Tensor]:
        args = others[:n_args]
        of_rows: GradientOf = partial(_of_rows, gradient_of, have_rows[:n_args])
        if is_differentiated:
            of_rows = _in_graph(of_rows, args, results)
        return with_gradient(
            results,
            args,
            lambda *cotangents: of_rows(args, cotangents),
            of_rows,
            name,
            is_differentiated,
        )

    compat.vectorized.map_op_by(op, n_results, mapped)


def _of_rows(
    gradient_of: GradientOf,
    have_rows: Sequence[bool],
    args: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor],
) -> list[tf.Tensor | None]:
    """The gradient of the program that tf.vectorized_map makes, by the gradient of each row.

    The cotangents have rows, and of the arguments those that are said to. An argument that is the
    same in all rows has the sum of their gradients.
    """
    differentiated: list[int] = []

    def of_one(row: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        n_cotangents = len(row) - sum(have_rows)
        cotangents, given = row[:n_cotangents], iter(row[n_cotangents:])
        own = [
            next(given) if has_rows else arg for arg, has_rows in zip(args, have_rows, strict=True)
        ]
        gradients = gradient_of(own, cotangents)
        differentiated[:] = [i for i, g in enumerate(gradients) if g is not None]
        return [gradients[i] for i in differentiated]

    mapped = [arg for arg, has_rows in zip(args, have_rows, strict=True) if has_rows]
    of_rows = tf.vectorized_map(of_one, [*map(tf.convert_to_tensor, cotangents), *mapped])
    gradients: list[tf.Tensor | None] = [None] * len(args)
    for i, gradient in zip(differentiated, of_rows, strict=True):
        gradients[i] = gradient if have_rows[i] else tf.reduce_sum(gradient, 0)
    return gradients


def _identities(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
    """tf.identity_n."""
    if writing.writes() and writing.is_writable():
        graph = tf.compat.v1.get_default_graph()
        return writing.write_node(graph, "IdentityN", [tensors], [])
    identities: list[tf.Tensor] = tf.identity_n(tensors)
    return identities


def in_this_graph(args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The tensors, each by an op of the graph under construction if another graph around it has it.

    A gradient computes with the arguments again. TensorFlow's gradient of a tf.cond takes what it
    reads from the branch that read it before, and not from the graph around the branch.
    """
    if tf.executing_eagerly():
        return list(args)
    graph = tf.compat.v1.get_default_graph()
    return [x if getattr(x, "graph", graph) is graph else tf.identity(x) for x in args]


def _keep(graph: tf.Graph, gradient: Gradient, op_type: str) -> None:
    """Keeps a gradient, and its place in TensorFlow's registry, for as long as the graph lives."""
    held = getattr(graph, _HELD, None)
    if held is None:
        held = []
        setattr(graph, _HELD, held)
    held.append(gradient)
    weakref.finalize(graph, compat.tapes.forget_gradient, op_type).atexit = False


def _in_graph(
    gradient_of: GradientOf, args: Sequence[tf.Tensor], results: Sequence[tf.Tensor]
) -> GradientOf:
    """The same as calls of a function that the graph under construction holds.

    TensorFlow saves the gradients of what a graph holds before it is saved.
    """
    n_args = len(args)
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in [*args, *results]]

    @partial(tf.function, autograph=False)
    def function(*operands: tf.Tensor) -> list[tf.Tensor | None]:
        return gradient_of(operands[:n_args], operands[n_args:])

    with compat.tapes.nothing_recorded():
        concrete = function.get_concrete_function(*specs)
    concrete.add_to_graph(tf.compat.v1.get_default_graph())

    def called(
        args: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        operands = zip([*args, *cotangents], specs, strict=True)
        return list(concrete(*(tf.ensure_shape(x, spec.shape) for x, spec in operands)))

    return called
