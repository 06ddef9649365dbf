"""tf.function and the derivatives that a program defines: tf.custom_gradient, tf.stop_gradient."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.functional_state import Held, array_of, current, held_of
from tf_substrates.numpy import dtypes, nest
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.random import no_values
from tf_substrates.numpy.recording import frame, is_recording, recorded
from tf_substrates.numpy.shapes import TensorShape, TensorSpec
from tf_substrates.numpy.tensors import convert, wrap
from tf_substrates.numpy.traced_variables import Again, MadeInFunction, Region

JAX_MODE = False
if JAX_MODE:
    import jax


@export("function")
def function(
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: Any = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: Any = None,
    experimental_follow_type_hints: Any = None,
) -> Any:
    """The function itself on NumPy, and compiled by jax.jit on JAX.

    Arguments that are no tensors, numbers or structures of these are static, as TensorFlow's are;
    Python's numbers are too. There is no autograph: Python's `if` and `for` are Python's.

    >>> from tf_substrates.numpy import tf
    >>> @tf.function
    ... def double(x):
    ...     return x * 2
    >>> print(double(tf.constant(3)))
    tf.Tensor(6, shape=(), dtype=int32)
    """
    if func is None:
        return functools.partial(
            function, input_signature=input_signature, autograph=autograph, jit_compile=jit_compile
        )
    compiled = _Jitted(func) if JAX_MODE else func

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        # A tape looks into it, and so do tf_substrates.functional and what has the variables.
        plain = is_recording() or _SETTINGS.run_functions_eagerly or current() is not None
        return func(*args, **kwargs) if plain else compiled(*args, **kwargs)

    call.python_function = func  # type: ignore[attr-defined]
    call.get_concrete_function = functools.partial(  # type: ignore[attr-defined]
        _concrete, call, input_signature
    )
    return call


class _Settings:
    run_functions_eagerly = False


_SETTINGS = _Settings()


@export("config.run_functions_eagerly")
def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether each tf.function is called as it is, without jax.jit. NumPy has nothing else."""
    _SETTINGS.run_functions_eagerly = bool(run_eagerly)


@export("config.functions_run_eagerly")
def functions_run_eagerly() -> bool:
    """What `tf.config.run_functions_eagerly` was called with last; False before."""
    return _SETTINGS.run_functions_eagerly


class ConcreteFunction:
    """A tf.function for arguments of given shapes and dtypes.

    Attributes:
      structured_outputs: a tf.TensorSpec for each tensor that it returns, in its structure.
    """

    def __init__(self, function: Callable, args: tuple, kwargs: dict, structured_outputs: Any):
        self._function = function
        self.structured_input_signature = (args, kwargs)
        self.structured_outputs = structured_outputs

    @property
    def output_shapes(self) -> Any:
        """A tf.TensorShape for each tensor that it returns, in their structure."""
        return nest.map_structure(lambda spec: TensorShape(spec.shape), self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the same."""
        return nest.map_structure(lambda spec: spec.dtype, self.structured_outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _concrete(function: Callable, signature: Any, *args: Any, **kwargs: Any) -> ConcreteFunction:
    """The function for arguments, or for a tf.TensorSpec in the place of tensors.

    Raises:
      ValueError: a dimension of a specification is not known.
    """
    if not args and not kwargs and signature is not None:
        args = tuple(signature)
    specs = [leaf for leaf in nest.flatten((args, kwargs)) if isinstance(leaf, TensorSpec)]
    for spec in specs:
        if not TensorShape(spec.shape).is_fully_defined():
            raise ValueError(
                f"tf.function.get_concrete_function: every dimension of {spec} must be known here."
                " What to do: pass a tf.TensorSpec with the sizes that the function is called with."
            )

    def of_tensors(tensors: list) -> Any:
        given = iter(tensors)
        filled = nest.map_structure(
            lambda leaf: next(given) if isinstance(leaf, TensorSpec) else leaf, (args, kwargs)
        )
        with Region().entered():
            result = function.python_function(*filled[0], **filled[1])  # type: ignore[attr-defined]
        return nest.map_structure(lambda leaf: None if leaf is None else convert(leaf), result)

    zeros = [
        np.zeros(TensorShape(spec.shape).as_list(), dtypes.numpy_dtype(spec.dtype))
        for spec in specs
    ]
    with no_values():
        if JAX_MODE:
            outputs = jax.eval_shape(of_tensors, zeros)
        else:
            outputs = of_tensors([wrap(array) for array in zeros])
    described = nest.map_structure(
        lambda leaf: None if leaf is None else TensorSpec(leaf.shape, dtypes.dtype_of(leaf)),
        outputs,
    )
    return ConcreteFunction(function, args, kwargs, described)


class _Jitted:
    """jax.jit over the arrays among the leaves; everything else decides which trace it is.

    Short vectors of integers that are known are no arrays: they may be shapes. The variables that a
    trace reads or assigns are arguments of it too.
    """

    def __init__(self, function: Callable):
        self._function = function
        self._traced = jax.jit(self._trace, static_argnums=(0, 1))
        # By what decides the trace: the variables in the order in which they were met.
        self._variables: dict[tuple, dict[int, Held]] = {}
        self._made: set[tuple] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if _is_array(leaf)]
        static = tuple(_ARRAY if _is_array(leaf) else _kept(leaf) for leaf in leaves)
        while True:
            variables = list(self._met(structure, static).values())
            values = [held_of(variable) for variable in variables]
            try:
                result, assigned = self._traced(structure, static, arrays, values)
            except Again:
                continue
            except MadeInFunction:
                return self._first_call(structure, static, args, kwargs)
            for position, value in assigned.items():
                variables[position].assign(value)
            return result

    def _met(self, structure: Any, static: tuple) -> dict[int, Held]:
        try:
            return self._variables.setdefault((structure, static), {})
        except TypeError:
            return {}  # jax.jit says which leaf it is that has no hash

    def _trace(self, structure: Any, static: tuple, arrays: list, values: list) -> tuple:
        at = iter(arrays)
        leaves = [next(at) if value is _ARRAY else _given(value) for value in static]
        args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
        met = self._met(structure, static)
        variables = list(met.values())[: len(values)]
        region = Region(is_function=True)
        for variable, value in zip(variables, values, strict=True):
            region.give(variable, value)
        with region.entered():
            result = jax.tree_util.tree_map(array_of, self._function(*args, **kwargs))
        if region.missed:
            met.update(region.missed)
            raise Again
        positions = [i for i, v in enumerate(variables) if id(v) in region.assigned]
        after = region.after([variables[i] for i in positions])
        return result, dict(zip(positions, after, strict=True))

    def _first_call(self, structure: Any, static: tuple, args: tuple, kwargs: dict) -> Any:
        """The call that makes the function's variables, without jax.jit."""
        if (structure, static) in self._made:
            raise ValueError(
                f"tf.function: {getattr(self._function, '__name__', self._function)} makes a"
                " tf.Variable in each call, and may make it in the first one alone. What to do:"
                " make it once, outside of the function or where an attribute is still None."
            )
        self._made.add((structure, static))
        return self._function(*args, **kwargs)


# What stands for an array among the static leaves.
_ARRAY = object()
_SHAPE_RANK_LIMIT = 32


@dataclasses.dataclass(frozen=True)
class _Known:
    """An array of integers by its values, which a trace is made for."""

    values: tuple
    scalar: bool
    dtype: np.dtype


def _kept(leaf: Any) -> Any:
    if not isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    return _Known(tuple(np.atleast_1d(leaf).tolist()), np.ndim(leaf) == 0, leaf.dtype)


def _given(value: Any) -> Any:
    if not isinstance(value, _Known):
        return value
    array = np.array(value.values, value.dtype)
    return array[0] if value.scalar else array


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "iub":
        return leaf.ndim > 1 or leaf.size > _SHAPE_RANK_LIMIT
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


@op("stop_gradient")
def stop_gradient(input: Any, name: Any = None) -> Any:
    """The same value, which derivatives take for a constant."""
    x = convert(input)
    return jax.lax.stop_gradient(x) if JAX_MODE else x


@export("grad_pass_through")
def grad_pass_through(f: Callable) -> Callable:
    """`f`, of which the derivative is that of the identity."""

    def call(x: Any) -> Any:
        x = wrap(convert(x))
        return x + stop_gradient(f(x) - x)

    return call


@export("custom_gradient")
def custom_gradient(f: Any = None) -> Any:
    """A function that returns its result and the function of its gradient.

    `f(*args)` returns `(result, grad)`, and `grad(*upstream)` the gradient of each argument. On JAX
    both directions follow from it: the gradient is linear in what comes from upstream, so its
    transpose is the forward derivative. NumPy has no derivatives, and gives the result.

    >>> from tf_substrates.numpy import tf
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
    >>> print(log1pexp(tf.constant(0.0)))
    tf.Tensor(0.6931472, shape=(), dtype=float32)
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        outside = [wrap(convert(leaf)) for leaf in nest.flatten(args)]
        if not JAX_MODE:
            return f(*nest.pack_sequence_as(args, outside), **kwargs)[0]
        return recorded(functools.partial(_with_own_derivative, f, outside))(*args, **kwargs)

    return call


def _with_own_derivative(f: Callable, outside: list, *args: Any, **kwargs: Any) -> Any:
    """The result of `f`, of which JAX knows the derivative.

    Args:
      outside: the arguments as the caller of `f` has them, whom a tape may give others in `args`.
    """
    flat = [wrap(convert(leaf)) for leaf in nest.flatten(args)]
    seen: list = []

    def called(leaves: Any) -> tuple:
        # `f` may use an argument by the name that it has outside, which is the trace's in here.
        with frame(outside, list(leaves)):
            return f(*nest.pack_sequence_as(args, list(leaves)), **kwargs)

    def primal(*leaves: Any) -> list:
        result, _ = called(leaves)
        seen.append(result)
        return [jax.numpy.asarray(convert(leaf)) for leaf in nest.flatten(result)]

    derivable = jax.custom_jvp(primal)

    @derivable.defjvp
    def tangents_of(primals: Any, tangents: Any) -> tuple:
        result, grad = called(primals)
        seen.append(result)
        outputs = [jax.numpy.asarray(convert(leaf)) for leaf in nest.flatten(result)]
        inexact = [jax.numpy.issubdtype(p.dtype, jax.numpy.inexact) for p in primals]

        def pulled(*upstream: Any) -> tuple:
            if "variables" in inspect.signature(grad).parameters:
                found = grad(*upstream, variables=[])[0]
            else:
                found = grad(*upstream)
            gradients = found if isinstance(found, (list, tuple)) else [found]
            gradients = nest.flatten(gradients)
            if len(gradients) != len(primals):
                raise ValueError(
                    f"tf.custom_gradient: the gradient function returned {len(gradients)} gradients"
                    f" for {len(primals)} arguments"
                )
            return tuple(
                jax.numpy.zeros_like(p)
                if g is None
                else jax.numpy.asarray(convert(g)).astype(p.dtype)
                for g, p, floats in zip(gradients, primals, inexact, strict=True)
                if floats
            )

        transpose = jax.linear_transpose(pulled, *outputs)
        moving = tuple(t for t, floats in zip(tangents, inexact, strict=True) if floats)
        return outputs, list(transpose(moving))

    leaves = derivable(*[jax.numpy.asarray(convert(leaf)) for leaf in flat])
    return nest.pack_sequence_as(seen[-1], leaves)


@export("recompute_grad")
def recompute_grad(f: Callable) -> Callable:
    """`f`, whose intermediate results are computed again for its gradient."""
    if not JAX_MODE:
        return f

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs) if is_recording() else jax.checkpoint(f)(*args, **kwargs)

    return call
