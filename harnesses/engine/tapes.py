"""Derivatives that a program takes itself, by the classes of `tf`: the modes of the group "tapes".

The same code runs with TensorFlow, whose result is the law, and with a substrate. Derivatives are
those of floating results with respect to floating arguments, along `vjps.direction`. What is no
float is a constant of the program.

    tape           tf.GradientTape, op by op
    tape_jit       the same inside jax.jit, as the next two
    tape_while     in the body of a tf.while_loop
    tape_map       in the function of a tf.map_fn, over two examples
    accumulator    tf.autodiff.ForwardAccumulator, op by op
    tape_jacobian  tf.GradientTape.jacobian of up to four elements of a result
    tape_second    a tape in a tape
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harnesses.engine.vjps import direction, is_differentiable

Program = Callable[..., Any]
# Of the module `tf`, the program, its arguments as tensors, and which of them are floats.
Derivative = Callable[[Any, Program, Sequence[Any], Sequence[int]], list]

# Elements whose derivatives are a row of a Jacobian.
_ROWS = 4


def _results(tf: Any, program: Program, args: Sequence[Any]) -> list:
    tensors = [tf.convert_to_tensor(r) for r in tf.nest.flatten(program(*args)) if r is not None]
    floating = [r for r in tensors if is_differentiable(r)]
    if not floating:
        raise LookupError("it has no result that TensorFlow differentiates")
    return floating


def _gradients(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    wrt = [args[i] for i in floats]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(wrt)
        results = _results(tf, program, args)
    along = [tf.constant(direction(r)) for r in results]
    return _by_zeros(tf, tape, results, wrt, along)


def _by_zeros(tf: Any, tape: Any, results: list, wrt: list, along: list) -> list:
    zero = tf.UnconnectedGradients.ZERO
    found = tape.gradient(results, wrt, output_gradients=along, unconnected_gradients=zero)
    return [tf.convert_to_tensor(gradient) for gradient in found]


def _in_while_loop(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    def body(i: Any, *_: Any) -> tuple:
        return (i + 1, *_gradients(tf, program, args, floats))

    start = (tf.constant(0), *(tf.zeros_like(args[i]) for i in floats))
    return list(tf.while_loop(lambda i, *_: i < 2, body, start)[1:])


def _in_map(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    def of_example(example: Sequence[Any]) -> list:
        whole = list(args)
        for i, value in zip(floats, example, strict=True):
            whole[i] = value
        return _gradients(tf, program, whole, floats)

    examples = [tf.stack([args[i], _flipped(tf, args[i])]) for i in floats]
    return list(tf.map_fn(of_example, examples, [args[i].dtype for i in floats]))


def _flipped(tf: Any, x: Any) -> Any:
    return tf.reverse(x, list(range(len(x.shape)))) if len(x.shape) else x


def _forward(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    wrt = [args[i] for i in floats]
    tangents = [tf.constant(direction(x)) for x in wrt]
    with tf.autodiff.ForwardAccumulator(wrt, tangents) as accumulator:
        results = _results(tf, program, args)
    zero = tf.UnconnectedGradients.ZERO
    found = accumulator.jvp(results, unconnected_gradients=zero)
    return [tf.convert_to_tensor(tangent) for tangent in found]


def _jacobian(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    wrt = [args[i] for i in floats]
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(wrt)
        rows = tf.reshape(_results(tf, program, args)[0], [-1])[:_ROWS]
    zero = tf.UnconnectedGradients.ZERO
    return list(tape.jacobian(rows, wrt, unconnected_gradients=zero, experimental_use_pfor=False))


def _second(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    wrt = [args[i] for i in floats]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(wrt)
        first = _gradients(tf, program, args, floats)
    # Along another direction than the first: terms of products cancel where both are one.
    along = [tf.constant(np.flip(direction(gradient))) for gradient in first]
    return _by_zeros(tf, tape, first, wrt, along)


DERIVATIVES: Mapping[str, Derivative] = {
    "tape": _gradients,
    "tape_jit": _gradients,
    "tape_while": _in_while_loop,
    "tape_map": _in_map,
    "accumulator": _forward,
    "tape_jacobian": _jacobian,
    "tape_second": _second,
}
# Those that JAX compiles.
COMPILED = frozenset({"tape_jit", "tape_while", "tape_map"})


def _of_two_examples(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    flipped = [_flipped(tf, x) if i in floats else x for i, x in enumerate(args)]
    both = [_gradients(tf, program, example, floats) for example in (args, flipped)]
    return [tf.stack(list(pair)) for pair in zip(*both, strict=True)]


def _row_by_row(tf: Any, program: Program, args: Sequence[Any], floats: Sequence[int]) -> list:
    wrt = [args[i] for i in floats]
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(wrt)
        rows = tf.reshape(_results(tf, program, args)[0], [-1])[:_ROWS]
    units = tf.unstack(tf.eye(len(rows), dtype=rows.dtype))
    found = [_by_zeros(tf, tape, [rows], wrt, [unit]) for unit in units]
    return [tf.stack(list(pair)) for pair in zip(*found, strict=True)]


# How TensorFlow takes the same: for each example and each row, without a loop of its own.
_LAWS: Mapping[str, Derivative] = {
    **DERIVATIVES,
    "tape_while": _gradients,
    "tape_map": _of_two_examples,
    "tape_jacobian": _row_by_row,
}
# Whose law a mode shares.
LAWS: Mapping[str, str] = {"tape_jit": "tape", "tape_while": "tape"}


def law_of(mode: str, tf: Any, program: Program, args: tuple) -> Program:
    """As `derivative_of`, in the simplest way that TensorFlow has for it."""
    return _at(_LAWS[mode], tf, program, args)


def derivative_of(mode: str, tf: Any, program: Program, args: tuple) -> Program:
    """The derivative that a mode takes, as a function of the floating arguments.

    It raises a LookupError where TensorFlow has none.

    Args:
      mode: a key of `DERIVATIVES`.
      tf: TensorFlow's API.
      program: of tensors.
      args: where it is taken, as NumPy has them.
    """
    return _at(DERIVATIVES[mode], tf, program, args)


def _at(derivative: Derivative, tf: Any, program: Program, args: tuple) -> Program:
    floats = floats_of(args)

    def function(*moving: Any) -> list:
        whole = [tf.constant(x) for x in args]
        for i, value in zip(floats, moving, strict=True):
            whole[i] = value
        return derivative(tf, program, whole, floats)

    return function


def floats_of(args: tuple) -> list[int]:
    """The positions of the arguments that TensorFlow differentiates by."""
    return [i for i, x in enumerate(args) if is_differentiable(np.asarray(x))]
