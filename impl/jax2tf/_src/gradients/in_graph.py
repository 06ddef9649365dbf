"""Gradients of our own in a graph, which live as long as the graph.

tf.custom_gradient registers each gradient until the process ends, which would keep every graph in
memory. Here the graph holds its gradients, and TensorFlow's registry has weak references that end
with the graph. After that an imported copy of the graph has no gradient, and TensorFlow raises an
error that says so.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from jax2tf._src import compat
from jax2tf._src.ops import writing
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.tf_decorators import without_autograph

# Maps cotangents of results to gradients of arguments.
Gradient: TypeAlias = Callable[..., list[Tensor | None]]
# Maps arguments and cotangents of results to gradients of arguments.
GradientOf: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor | None]]

_ids = itertools.count()

# The attribute of a graph that holds its gradients.
_GRADIENTS = "_jax2tf_gradients"


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
      results: tensors computed from `args`, of dtypes that TensorFlow differentiates.
      args: tensors.
      gradient: the gradients of `args`, given the cotangents of `results`.
      gradient_of: the same as a function of arguments, too, for tf.vectorized_map.
      name: the name of the function, for messages.
      is_differentiated: whether a SavedModel should hold derivatives of the gradient.
    """
    count = len(results)

    def backward(of_results: Gradient, cotangents: Sequence[tf.Tensor]) -> list[tf.Tensor | None]:
        # The op below returns the arguments, too, so that it has gradients for them.
        return [*[None] * count, *of_results(*cotangents[:count])]

    graph = tf.compat.v1.get_default_graph()
    reference = weakref.proxy(gradient)

    # To save the gradient, TensorFlow makes it a tf.function. AutoGraph would spend minutes on
    # rewriting the code that it calls, in this package and in JAX.
    @without_autograph
    def registered(op: tf.Operation, *cotangents: tf.Tensor) -> list[tf.Tensor | None]:
        del op
        return backward(reference, cotangents)

    registered.__name__ = compat.tapes.REGISTERED_GRADIENT_NAME
    op_type = f"jax2tf.{name}.{next(_ids)}"
    tf.RegisterGradient(op_type)(registered)
    _keep(graph, gradient, op_type)
    inputs = [*results, *args]
    with graph.gradient_override_map({"IdentityN": op_type}), compat.tapes.nothing_recorded():
        outputs = _identities(inputs)
    recorded = list(outputs[:count])
    # A tape makes a zero cotangent for each unread output, so it records only the results.
    compat.tapes.record(name, recorded, inputs, lambda *cotangents: backward(gradient, cotangents))

    if recorded:
        map_rows(recorded[0].op, count, len(args), gradient_of, name, is_differentiated)
    return recorded


def map_rows(
    op: tf.Operation,
    n_results: int,
    n_args: int,
    gradient_of: GradientOf,
    name: str,
    is_differentiated: bool,
) -> None:
    """Makes tf.vectorized_map keep the gradient of an op that returns results and arguments.

    tf.vectorized_map would otherwise differentiate the ops behind the results, without JAX's rules.
    """

    def mapped(
        results: Sequence[tf.Tensor], others: Sequence[tf.Tensor], have_rows: Sequence[bool]
    ) -> list[tf.Tensor]:
        args = others[:n_args]
        of_rows: GradientOf = partial(_gradient_by_rows, gradient_of, have_rows[:n_args])
        if is_differentiated:
            of_rows = _as_calls(of_rows, args, results)
        return with_gradient(
            results,
            args,
            lambda *cotangents: of_rows(args, cotangents),
            of_rows,
            name,
            is_differentiated,
        )

    compat.vectorized.map_op_by(op, n_results, mapped)


def _gradient_by_rows(
    gradient_of: GradientOf,
    have_rows: Sequence[bool],
    args: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor],
) -> list[tf.Tensor | None]:
    """The gradient of a program that tf.vectorized_map maps over rows.

    The cotangents have rows, and `have_rows` says which arguments do. The gradient of an argument
    without rows is the sum over all rows.
    """
    differentiated: list[int] = []

    def of_one(row: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        n_cotangents = len(row) - sum(have_rows)
        cotangents, arg_rows = row[:n_cotangents], iter(row[n_cotangents:])
        args_of_row = [
            next(arg_rows) if has_rows else arg
            for arg, has_rows in zip(args, have_rows, strict=True)
        ]
        gradients = gradient_of(args_of_row, cotangents)
        differentiated[:] = [i for i, g in enumerate(gradients) if g is not None]
        return [gradients[i] for i in differentiated]

    mapped = [arg for arg, has_rows in zip(args, have_rows, strict=True) if has_rows]
    of_rows = tf.vectorized_map(of_one, [*map(tf.convert_to_tensor, cotangents), *mapped])
    gradients: list[tf.Tensor | None] = [None] * len(args)
    for i, gradient in zip(differentiated, of_rows, strict=True):
        gradients[i] = gradient if have_rows[i] else tf.reduce_sum(gradient, 0)
    return gradients


def _identities(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
    """tf.identity_n, written without TensorFlow's Python layer where possible."""
    if writing.writes() and writing.is_writable():
        graph = tf.compat.v1.get_default_graph()
        return writing.write_node(graph, "IdentityN", [tensors], [])
    return tf.identity_n(tensors)


def in_this_graph(args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The tensors, with an Identity in the current graph for each tensor of an outer graph.

    A gradient reads the arguments again. TensorFlow's gradient of a tf.cond finds only tensors of
    the branch itself, and not those of the graph around it.
    """
    if tf.executing_eagerly():
        return list(args)
    graph = tf.compat.v1.get_default_graph()
    return [x if getattr(x, "graph", graph) is graph else tf.identity(x) for x in args]


def _keep(graph: tf.Graph, gradient: Gradient, op_type: str) -> None:
    """Keeps a gradient, and its entry in TensorFlow's registry, as long as the graph lives."""
    gradients = getattr(graph, _GRADIENTS, None)
    if gradients is None:
        gradients = []
        setattr(graph, _GRADIENTS, gradients)
    gradients.append(gradient)
    weakref.finalize(graph, compat.tapes.forget_gradient, op_type).atexit = False


def _as_calls(
    gradient_of: GradientOf, args: Sequence[tf.Tensor], results: Sequence[tf.Tensor]
) -> GradientOf:
    """The same gradient as calls of a function that the current graph holds.

    TensorFlow saves only the gradients of ops that are in the graph before it is saved.
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
