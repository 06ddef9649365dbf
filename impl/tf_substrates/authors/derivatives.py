"""Derivatives that an author gives, and derivatives that an author takes, on every back end."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

JAX_MODE = False
NUMPY_MODE = False


def custom_gradient(
    vjp_fwd: Callable,
    vjp_bwd: Callable,
    jvp_fn: Callable | None = None,
    nondiff_argnums: Sequence[int] = (),
) -> Callable:
    """A decorator that gives a function the derivatives of its author.

    Under TensorFlow `vjp_bwd` is what tapes take, and forward accumulators take its transpose; both
    can be nested. On JAX `jvp_fn` is the forward derivative and its transpose the reverse one;
    without it both follow from `vjp_bwd`. On NumPy the function has its values.

    What the derivatives depend on has to be an argument: a tf.Variable is passed, not closed over.

    Args:
      vjp_fwd: `vjp_fwd(*args)` gives `(result, aux)`, the result that the function has and whatever
        `vjp_bwd` needs.
      vjp_bwd: `vjp_bwd(aux, upstream)` gives the gradient of each argument, in its structure; None
        is zero. For one argument it need not be a tuple. It is linear in `upstream`.
      jvp_fn: `jvp_fn(primals, tangents)`, two tuples, gives `(result, tangent of the result)`. It
        is linear in the tangents. The tangent of an argument of integers is None.
      nondiff_argnums: positions of arguments that are no tensors. `vjp_bwd` and `jvp_fn` have them
        in front of the others, and gradients and tangents have no place for them.

    Raises:
      ValueError: when a derivative is taken, `vjp_bwd` gave another number of gradients than there
        are arguments.

    >>> import tensorflow as tf
    >>> from tf_substrates import authors
    >>> def fwd(x):
    ...     return tf.math.log1p(tf.exp(x)), tf.sigmoid(x)
    >>> def jvp(primals, tangents):
    ...     result, slope = fwd(*primals)
    ...     return result, slope * tangents[0]
    >>> @authors.custom_gradient(vjp_fwd=fwd, vjp_bwd=lambda slope, dy: slope * dy, jvp_fn=jvp)
    ... def softplus(x):
    ...     return fwd(x)[0]
    >>> float(authors.value_and_gradient(softplus, tf.constant(0.0))[1])
    0.5
    """

    def decorate(function: Callable) -> Callable:
        rules = _Rules(function, vjp_fwd, vjp_bwd, jvp_fn, frozenset(nondiff_argnums))
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise TypeError(
                    f"{function.__name__}: a function of authors.custom_gradient has no"
                    f" keyword-only arguments, and it was given {', '.join(bound.kwargs)}."
                    " What to do: define it with positional ones, which may be given by name."
                )
            return rules.apply(bound.args)

        return call

    return decorate


class _Rules:
    """A function, and its derivatives as functions of flat lists of tensors."""

    def __init__(
        self,
        function: Callable,
        vjp_fwd: Callable,
        vjp_bwd: Callable,
        jvp_fn: Callable | None,
        fixed: frozenset[int],
    ):
        self.function, self.vjp_fwd, self.vjp_bwd, self.jvp_fn = function, vjp_fwd, vjp_bwd, jvp_fn
        self.fixed = fixed

    def apply(self, args: tuple) -> Any:
        constants = [arg for i, arg in enumerate(args) if i in self.fixed]
        moving = tuple(arg for i, arg in enumerate(args) if i not in self.fixed)
        moving = tf.nest.map_structure(_as_tensor, moving)

        def whole(tensors: tuple) -> list:
            given, left = iter(tensors), iter(constants)
            return [next(left) if i in self.fixed else next(given) for i in range(len(args))]

        if NUMPY_MODE:
            return self.function(*whole(moving))
        if JAX_MODE and self.jvp_fn is not None:
            from tf_substrates.jax.given_derivatives import with_tangents

            jvp_fn = functools.partial(self.jvp_fn, *constants)
            return with_tangents(lambda *tensors: self.function(*whole(tensors)), jvp_fn, moving)

        @tf.custom_gradient
        def flat(*tensors: Any) -> Any:
            packed = tf.nest.pack_sequence_as(moving, list(tensors))
            result, aux = self.vjp_fwd(*whole(packed))

            def grad(*upstream: Any) -> list:
                dy = tf.nest.pack_sequence_as(result, list(upstream))
                return self._flat_gradients(self.vjp_bwd(*constants, aux, dy), packed)

            structures.append(result)
            # Without it a forward accumulator has the tangent of what `vjp_fwd` computed.
            return [tf.stop_gradient(leaf) for leaf in tf.nest.flatten(result)], grad

        structures: list = []
        # In a graph TensorFlow's forward accumulators know the derivative of a function that is
        # called, and not that of tf.custom_gradient.
        run = flat if tf.executing_eagerly() else tf.function(flat, autograph=False)
        results = run(*tf.nest.flatten(moving))
        return tf.nest.pack_sequence_as(structures[-1], tf.nest.flatten(results))

    def _flat_gradients(self, found: Any, moving: tuple) -> list:
        gradients = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(moving) == 1 and len(gradients) != 1:
            gradients = [found]
        if len(gradients) != len(moving):
            raise ValueError(
                f"{self.function.__name__}: `vjp_bwd` gave {len(gradients)} gradients for"
                f" {len(moving)} arguments. What to do: give one for each, None where it is zero."
            )
        flat: list = []
        for gradient, argument in zip(gradients, moving, strict=True):
            leaves = tf.nest.flatten(argument)
            flat += [None] * len(leaves) if gradient is None else tf.nest.flatten(gradient)
        return flat


def _as_tensor(value: Any) -> Any:
    return tf.convert_to_tensor(value)


def value_and_gradient(
    f: Callable, *args: Any, output_gradients: Any = None, has_aux: bool = False
) -> Any:
    """What a function gives, and its gradient with respect to every argument.

    Args:
      f: a function of tensors of floats. Its result is a tensor, or a structure of them, of which
        the sum is derived unless `output_gradients` is given.
      *args: its arguments, tensors or structures of them; a list is a structure.
      output_gradients: the gradient of the result, in its structure.
      has_aux: whether `f` gives `(result, aux)`, of which `aux` is given back as it is.

    Returns:
      `(result, gradient)`; the gradient of one argument has its structure, that of several is a
      tuple. An argument that the result does not depend on has zeros. With `has_aux` the first of
      the two is `(result, aux)`.

    Raises:
      NotImplementedError: on NumPy, which has no derivatives.
      TypeError: there is no argument, or one is not of floats.
    """
    if NUMPY_MODE:
        raise NotImplementedError(
            "value_and_gradient: NumPy has no derivatives. What to do: use the library on JAX or"
            " TensorFlow."
        )
    if not args:
        raise TypeError(
            "value_and_gradient: there is no argument to differentiate with respect to."
        )
    tensors = tf.nest.map_structure(_as_tensor, args)
    for i, argument in enumerate(tensors):
        for leaf in tf.nest.flatten(argument):
            dtype = tf.as_dtype(leaf.dtype)
            if not (dtype.is_floating or dtype.is_complex):
                raise TypeError(
                    f"value_and_gradient: argument {i} is of {dtype.name}, and derivatives are of"
                    " floats. What to do: give it to `f` by a closure, or tf.cast it."
                )
    made = None
    if JAX_MODE:
        from tf_substrates.jax.given_derivatives import derived

        made = derived(f, tensors, output_gradients, has_aux)
    value, packed = made or _by_tape(f, tensors, output_gradients, has_aux)
    return value, packed[0] if len(args) == 1 else packed


def _by_tape(f: Callable, tensors: tuple, output_gradients: Any, has_aux: bool) -> tuple:
    # Others may watch the same tensors: these are the tape's own.
    tensors = tf.nest.map_structure(tf.identity, tensors)
    with tf.GradientTape() as tape:
        tape.watch(tf.nest.flatten(tensors))
        found = f(*tensors)
        result = tf.nest.map_structure(_as_tensor, found[0] if has_aux else found)
    gradients = tape.gradient(
        tf.nest.flatten(result),
        tf.nest.flatten(tensors),
        None if output_gradients is None else tf.nest.flatten(output_gradients),
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    value = (result, found[1]) if has_aux else result
    return value, tf.nest.pack_sequence_as(tensors, gradients)
