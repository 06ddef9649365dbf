"""`eval_polymorphic_shape` finds the shapes of a function's results without running it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import export

from jax2tf._src.tracing import arguments
from jax2tf._src.tracing.functions import Function
from jax2tf._src.tracing.tracer import Tracer
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.lazy_imports import classes, tf
from jax2tf._src.util.typing import KeyPath, PyTree


def eval_polymorphic_shape(
    fun_jax: Callable[..., PyTree],
    *,
    polymorphic_shapes: PyTree = None,
    polymorphic_constraints: Sequence[str] | export.SymbolicScope = (),
) -> Callable[..., tuple[PyTree, PyTree]]:
    """Makes a function that gives shapes and dtypes of `fun_jax`'s results, like jax.eval_shape.

    >>> shapes, specs = eval_polymorphic_shape(
    ...     lambda a, b: a.reshape(-1) @ b, polymorphic_shapes=["b, 4", "4*b"]
    ... )(tf.TensorSpec([None, 4]), tf.TensorSpec([None]))
    >>> shapes.shape, specs
    ((), '()')

    Args:
      fun_jax: as `jax2tf.convert` takes it.
      polymorphic_shapes: as `jax2tf.convert` takes it.
      polymorphic_constraints: as `jax2tf.convert` takes it.

    Returns:
      A function of `fun_jax`'s arguments, whose leaves may be jax.ShapeDtypeStructs,
      tf.TensorSpecs, or any argument of `jax2tf.convert`. It returns the tree of results twice:
      with a jax.ShapeDtypeStruct at each leaf, whose shape may be symbolic, and with the shape as
      text, which is a polymorphic shape for a function of these results.

    Raises:
      TypeError: `fun_jax` is not callable.

    The result raises ValueError for an argument whose shape is unknown or contradicts
    polymorphic_shapes, and TypeError for one that is not an array.
    """
    option_checks.callable_(fun_jax, "jax2tf.eval_polymorphic_shape: fun_jax")
    tracer = Tracer(Function(fun_jax), polymorphic_shapes, polymorphic_constraints)

    def shapes_of(*args: PyTree, **kwargs: PyTree) -> tuple[PyTree, PyTree]:
        trace, _ = tracer.trace(args, kwargs, described)
        avals = trace.jaxpr.out_avals
        structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        texts = [f"({', '.join(map(str, aval.shape))})" for aval in avals]
        return trace.results(structs), trace.results(texts)

    return shapes_of


@dataclasses.dataclass(frozen=True)
class _Described:
    """A leaf with a shape and a dtype, and without a value."""

    path: str
    where: str
    shape: tf.TensorShape
    dtype: np.dtype
    weak_type: bool = False


def described(path: KeyPath, value: PyTree, function: Function) -> PyTree:
    """The argument that a jax.ShapeDtypeStruct, a tf.TensorSpec or an array describes."""
    where = arguments.where(path, function)
    if isinstance(value, str):
        raise TypeError(
            f"{where}: expected a jax.ShapeDtypeStruct, a tf.TensorSpec or an array, got the text "
            f"{value!r}. What to do: describe the argument by tf.TensorSpec([None, 4]), and name "
            'its open dimensions in polymorphic_shapes, as "b, 4"'
        )
    is_spec = isinstance(value, classes("TensorSpec"))
    if not (is_spec or isinstance(value, jax.ShapeDtypeStruct)):
        return arguments.Argument(path, value, function)
    if is_spec and not dtypes.is_of_jax(value.dtype):
        raise TypeError(f"{where}: JAX has no dtype {value.dtype.name}")
    dtype = value.dtype.as_numpy_dtype if is_spec else value.dtype
    return _Described(
        function.parameters.path(path),
        where,
        tf.TensorShape(value.shape),
        dtype if dtypes.is_key(dtype) else jax.dtypes.canonicalize_dtype(dtype),
    )
