"""The public function call_tf: it flattens the arguments and unflattens the results."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import jax
import numpy as np

from jax2tf._src.api.errors import CallTfError
from jax2tf._src.call_tf import exchange, variables
from jax2tf._src.call_tf.functions import UNSPECIFIED, Options, Root
from jax2tf._src.call_tf.primitive import bind
from jax2tf._src.util import dtypes, option_checks
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.typing import PyTree


def call_tf(
    callable_tf: Callable[..., PyTree],
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: PyTree = UNSPECIFIED,
    call_tf_graph: bool = False,
    *,
    compile: bool = True,
) -> Callable[..., PyTree]:
    """Makes a TensorFlow function callable from JAX, under every transformation.

    Outside of jax.jit TensorFlow runs it eagerly; on one device arrays share their memory with the
    tensors. Inside (jit, scan, while_loop, cond, remat), TensorFlow compiles it with XLA and the
    result becomes part of JAX's module. TensorFlow differentiates it, in reverse and in forward
    mode, to any order: custom gradients hold, integers have none, arguments that are not connected
    have zeros. vmap is tf.vectorized_map, or a loop where that has no rule for an op.

    >>> import jax.numpy as jnp
    >>> f = call_tf(lambda x: {"y": tf.math.cos(x)})
    >>> jax.jit(lambda x: jnp.sin(f(x)["y"]))(1.0)
    Array(0.51439524, dtype=float32)

    Without jax_enable_x64, arguments that the function wants in 64 bits (token ids in int64) are
    widened on the way in, and its results of 64 bits have 32 in JAX.

    Variables that the function captures are read each time it runs. A compiled module reads them
    by a host callback, which copies them: pass large ones as arguments where speed matters. JAX has
    no gradients with respect to them, as they are not arguments. A tf.GradientTape around a
    function that jax2tf.convert made of the call has these gradients, for variables that the
    function does not write; the variables have to keep their values until the gradient is taken.
    Writing to a variable works eagerly and with compile=False. A derivative computes the function
    again: random numbers of a stateful generator will differ.

    Args:
      callable_tf: a function of TensorFlow values, a tf.function, a ConcreteFunction, a signature
        of a SavedModel, a Keras model. It takes pytrees of tensors and returns one.
      has_side_effects: whether a staged call stays where nobody uses its results. Only a function
        that has stateful ops is kept for it.
      ordered: whether staged calls with side effects keep their order. Needs has_side_effects.
      output_shape_dtype: a pytree of values with the shapes and dtypes of the results
        (jax.ShapeDtypeStruct); None for a function that returns nothing. Needed only where
        TensorFlow cannot tell the shapes before the run.
      call_tf_graph: True never compiles the function into JAX's module, for functions that XLA does
        not compile. Then only jax2tf.convert can stage it. A native module calls its graph, which
        TensorFlow compiles with the module, and which must not capture variables.
      compile: False runs staged calls on the host, eagerly, through a callback: for functions that
        XLA does not compile.

    Returns:
      A function of JAX values; of tensors, tf.Variables and numpy arrays too, by their value.

    The returned function raises CallTfError, with the function's name and the cause, where JAX or
    XLA cannot handle the function. Errors of TensorFlow get a note with the function's name.
    """
    option_checks.callable_(callable_tf, "jax2tf.call_tf: callable_tf")
    option_checks.switches(
        "jax2tf.call_tf",
        has_side_effects=has_side_effects,
        ordered=ordered,
        call_tf_graph=call_tf_graph,
        compile=compile,
    )
    if ordered and not has_side_effects:
        raise ValueError("jax2tf.call_tf: ordered=True needs has_side_effects=True")
    name = getattr(callable_tf, "__name__", None) or type(callable_tf).__name__
    output = output_shape_dtype if output_shape_dtype is UNSPECIFIED else _specs(output_shape_dtype)
    options = Options(has_side_effects, ordered, call_tf_graph, compile, output)
    functions: dict[jax.tree_util.PyTreeDef, Root] = {}
    lock = threading.Lock()

    def function_of(in_tree: jax.tree_util.PyTreeDef) -> Root:
        with lock:
            return functions.setdefault(in_tree, Root(callable_tf, in_tree, name, options))

    @functools.wraps(callable_tf, updated=())
    def called_tf(*args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, in_tree = jax.tree.flatten((args, kwargs))
        function = functions.get(in_tree) or function_of(in_tree)
        operands = [
            x if isinstance(x, jax.Array) else _operand(x, i, function)
            for i, x in enumerate(leaves)
        ]
        function.forget_tree()
        passed = variables.current()
        if passed is None:
            results = bind(operands, function)
        else:
            with_variables, values = passed.to(function, operands)
            results = bind(values, with_variables)
        tree = function.out_tree(lambda: [jax.typeof(x) for x in operands])
        return jax.tree.unflatten(tree, results)

    return called_tf


def _operand(value: jax.Array, i: int, function: Root) -> PyTree:
    """The argument as a value that JAX takes: tensors and variables become arrays."""
    is_number = isinstance(value, bool | int | float | complex)
    if is_number and not dtypes.is_python_scalar(value):  # a NumPy scalar or a member of an enum
        return value
    try:
        dtype = dtypes.jax_dtype(value)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{_where(function, i)}: {error}") from None
    if is_number:
        return value
    if isinstance(value, tf.Tensor | tf.Variable):
        if not tf.executing_eagerly():
            raise TypeError(
                f"{_where(function, i)}: got a symbolic tensor; call_tf takes JAX values. Call "
                "the TensorFlow function itself, or convert the JAX function around it"
            )
        tensor = tf.convert_to_tensor(value)
        return exchange.to_array(exchange.canonical(tensor, _where(function, i)))
    return np.asarray(value, dtype)


def _where(function: Root, i: int) -> str:
    return f"jax2tf.call_tf({function.name}): {function.argument(i)}"


def _specs(output: PyTree) -> PyTree:
    try:
        return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype), output)
    # TypeError: a tf.TensorSpec has a TensorFlow dtype, which JAX refuses.
    except (AttributeError, TypeError):
        raise CallTfError(
            "jax2tf.call_tf: output_shape_dtype should be a pytree of values with shape and dtype "
            "of JAX's, such as jax.ShapeDtypeStruct((2, 3), jax.numpy.float32), got "
            f"{option_checks.shown(output)}"
        ) from None
