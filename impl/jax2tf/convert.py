"""`convert`: a JAX function as a function of TensorFlow tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jax2tf import compat, dtypes, gradients
from jax2tf.lowering import Lowering, rules
from jax2tf.lowering.callbacks import CALLBACKS
from jax2tf.trace import Trace, Tracer


def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    native_serialization: bool = False,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Makes a JAX function callable from TensorFlow: eagerly, in graphs, compiled.

    The result takes what `fun_jax` takes, positional and keyword, with tensors at the leaves of the
    arguments' pytrees, and gives the tree that `fun_jax` gives, of tf.Tensors. Dtypes follow JAX's
    rules under the current jax_enable_x64: where they ask for it, arguments are cast. A function
    that is jitted (`convert(jax.jit(f))`) is compiled with XLA by itself, unless enable_xla=False.

    >>> import jax.numpy as jnp
    >>> f = convert(lambda x, scale: {"y": jnp.sin(x) * scale})
    >>> f(tf.zeros([2, 3]), scale=2.0)["y"].shape
    TensorShape([2, 3])

    Args:
      fun_jax: any function that jax.jit takes.
      polymorphic_shapes: not supported yet.
      polymorphic_constraints: not supported yet.
      with_gradient: whether TensorFlow can differentiate the result, by JAX's vjp of `fun_jax`.
        With False, differentiating raises a LookupError.
      enable_xla: whether TensorFlow's XLA ops may be used where no standard op has the semantics.
      native_serialization: not supported yet.
      native_serialization_platforms: not supported yet.
      native_serialization_disabled_checks: not supported yet.

    Returns:
      A function of the same name and documentation, to be called with tensors.

    Raises:
      NotImplementedError: an argument that is not supported yet was given.
      TypeError: `fun_jax` is not callable.

    The result raises, when called: TypeError for an argument that is no array, ValueError for one
    of unknown shape, jax2tf.ConversionError for what has no lowering. Each names the argument or
    the primitive and the line of `fun_jax` it comes from.
    """
    if not callable(fun_jax):
        raise TypeError(
            f"jax2tf.convert: fun_jax should be a function, got {type(fun_jax).__name__}"
        )
    _refuse_unsupported(
        polymorphic_shapes=any(
            spec is not None
            for spec in jax.tree.leaves(polymorphic_shapes, is_leaf=lambda x: x is None)
        ),
        polymorphic_constraints=bool(polymorphic_constraints),
        native_serialization=bool(native_serialization),
        native_serialization_platforms=native_serialization_platforms is not None,
        native_serialization_disabled_checks=bool(native_serialization_disabled_checks),
    )
    tracer = Tracer(fun_jax)
    op_set = rules.XLA if enable_xla else rules.NO_XLA
    name = getattr(fun_jax, "__name__", type(fun_jax).__name__)

    def lower(trace: Trace, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        if enable_xla and tracer.is_jitted and not CALLBACKS & trace.primitives():
            return list(
                trace.cached(("compiled", op_set), lambda: _compiled(trace, op_set))(*tensors)
            )
        return Lowering(trace, op_set).run(trace.jaxpr, tensors)

    @tf.autograph.experimental.do_not_convert
    @functools.wraps(fun_jax)
    def converted_fun(*args: Any, **kwargs: Any) -> Any:
        paths, in_tree = jax.tree_util.tree_flatten_with_path(_unwrapped((args, kwargs)))
        arguments = [_Argument(path, value, name) for path, value in paths]
        trace = tracer.trace(in_tree, tuple(a.spec for a in arguments))
        results = gradients.differentiable(
            trace, lower, [a.tensor() for a in arguments], with_gradient, name
        )
        return jax.tree.unflatten(trace.out_tree, results)

    converted_fun.__signature__ = _without_defaults(converted_fun)
    return converted_fun


def _without_defaults(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of `fun` with *args and **kwargs for the parameters that have defaults.

    tf.function passes the default of a parameter that the caller left out. JAX would trace it like
    any argument, but leaves a Python value (`train=False`) where the caller leaves it out.
    """
    parameters = inspect.signature(fun).parameters.values()
    kinds = {p.kind for p in parameters}
    optional = {p.kind for p in parameters if p.default is not p.empty}
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kept = [p for p in parameters if p.default is p.empty and p.kind in by_position]
    if optional.intersection(by_position) or inspect.Parameter.VAR_POSITIONAL in kinds:
        kept.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
    kept += [p for p in parameters if p.default is p.empty and p.kind == p.KEYWORD_ONLY]
    if optional or inspect.Parameter.VAR_KEYWORD in kinds:
        kept.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(kept)


class _Argument:
    """One leaf of the arguments: what JAX should trace for it, and its tensor."""

    __slots__ = ("_value", "spec")

    def __init__(self, path: tuple[Any, ...], value: Any, function: str):
        try:
            dtype = dtypes.jax_dtype(value)
        except (TypeError, OverflowError) as error:
            raise type(error)(f"{_where(path, function)}: {error}") from None
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{_where(path, function)}: got a JAX tracer; a converted function takes "
                "TensorFlow values. To call TensorFlow inside JAX, use call_tf"
            )
        self._value = value
        shape = np.shape(value) if not isinstance(value, tf.Tensor | tf.Variable) else value.shape
        if isinstance(shape, tf.TensorShape) and not shape.is_fully_defined():
            raise ValueError(
                f"{_where(path, function)}: its shape {shape} is not fully known; give the "
                "tf.function an input_signature of known shapes"
            )
        self.spec = jax.ShapeDtypeStruct(
            tuple(shape), dtype, weak_type=dtypes.is_python_scalar(value)
        )

    def tensor(self) -> tf.Tensor:
        """The value as a tensor of the dtype that JAX sees."""
        dtype = dtypes.to_tf(self.spec.dtype)
        value = self._value
        if isinstance(value, tf.Tensor | tf.Variable):
            tensor = tf.convert_to_tensor(value)
            return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
        if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
            value = jax.random.key_data(value)
        if self.spec.dtype == jax.dtypes.float0:
            value = np.zeros(self.spec.shape, bool)
        return tf.constant(np.asarray(value).astype(dtype.as_numpy_dtype, copy=False))


def _unwrapped(tree: Any) -> Any:
    """The tree with the containers that tf.Module wraps replaced by plain ones, at any depth."""

    def unwrap(leaf: Any) -> Any:
        plain = compat.unwrap_module_container(leaf)
        return leaf if plain is leaf else _unwrapped(plain)

    return jax.tree.map(unwrap, tree)


def _compiled(trace: Trace, op_set: str) -> Callable[..., Any]:
    def run(*tensors: tf.Tensor) -> list[tf.Tensor]:
        return Lowering(trace, op_set).run(trace.jaxpr, tensors)

    return tf.function(run, autograph=False, jit_compile=True)


def _where(path: tuple[Any, ...], function: str) -> str:
    (top, *rest) = path
    root = "args" if top.idx == 0 else "kwargs"
    return f"jax2tf.convert({function}): argument {root}{jax.tree_util.keystr(tuple(rest))}"


def _refuse_unsupported(**given: bool) -> None:
    names = [name for name, is_given in given.items() if is_given]
    if names:
        raise NotImplementedError(
            f"jax2tf.convert: {', '.join(names)} not supported yet; leave "
            f"{'them' if len(names) > 1 else 'it'} out"
        )
