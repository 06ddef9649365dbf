"""Random programs with tapes in traced code, of tf_substrates on JAX; TensorFlow's is the law.

A program nests contexts (tf.function, loops, maps, branches, jax.jit) around a tape. The tape's
block computes from a watched tensor with known operands on either side. A program's number seeds
the generator that draws it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow

DERIVATIVES = ("gradient", "forward", "persistent", "nested", "jacobian")
KNOWN = ("tensor", "variable", "array", "scalar", "number", "made inside")
SIZE = 3
# An operand may be 0.25 to 2: no poles, no steps of the modulo near them.
OPERATORS: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda x, y: x / (y * y + 1.0),
    "reflected /": lambda x, y: 2.0 / (x * x + 1.0) * y,
    "in place": operator.iadd,
    "times in place": operator.imul,
}
STEPS: dict[str, Callable] = {
    "power": lambda tf, x: (x * x + 1.0) ** 1.5,
    "power of a number": lambda tf, x: 1.5 ** tf.tanh(x),
    "negative": lambda tf, x: -x,
    "absolute": lambda tf, x: abs(x),
    "index": lambda tf, x: x * x[0],
    "slice": lambda tf, x: x[::-1] + x[1:2],
    "new axis": lambda tf, x: (x[:, None] @ x[None, :])[1],
    "ellipsis": lambda tf, x: x[..., :] - x[-1],
    "sine": lambda tf, x: tf.sin(x),
    "sum": lambda tf, x: x - tf.reduce_sum(x) / 8.0,
    "where": lambda tf, x: tf.where(x > 0.1, x, x / 2.0),
    "stopped": lambda tf, x: x + tf.stop_gradient(x),
    "a list": lambda tf, x: tf.stack([x[0], x[1] * 2.0, x[2]]),
    "inner while_loop": lambda tf, x: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y * 0.5 + x), (0, x)
    )[1],
    "inner map_fn": lambda tf, x: tf.map_fn(lambda row: row * x[0], x),
    "inner function": lambda tf, x: tf.function(lambda y: y * x)(x),
    "branch": lambda tf, x: tf.cond(x[0] > 0.3, lambda: x * x, lambda: tf.sin(x) * x[1]),
    "branches": lambda tf, x: tf.switch_case(
        tf.cast(x[1] * 3.0, tf.int32), [lambda: x, lambda: x * x[0]], default=lambda: -x / 2.0
    ),
    "branch in branch": lambda tf, x: tf.cond(
        x[0] > 0.2, lambda: STEPS["branch"](tf, x * 0.9), lambda: x
    ),
    "loop until": lambda tf, x: _until(tf, x, None),
    "limited loop until": lambda tf, x: _until(tf, x, 3),
    "branch in loop": lambda tf, x: tf.while_loop(
        lambda y: tf.reduce_sum(y) < 4.0,
        lambda y: (tf.cond(y[0] < y[1], lambda: y * 1.5, lambda: y * x) + 0.3,),
        (x,),
        maximum_iterations=5,
    )[0],
}
# TensorFlow's vectorized_map does not take the derivatives of loops and branches inside.
_CONTROL = (
    *("inner while_loop", "inner map_fn", "loop until", "limited loop until", "branch in loop"),
    *("branch", "branches", "branch in branch"),
)


def _until(tf: Any, x: Any, limit: int | None) -> Any:
    return tf.while_loop(
        lambda y: tf.reduce_sum(y) < 4.0,
        lambda y: (y + x * x * 0.3 + 0.2,),  # it grows, and so it ends
        (x,),
        maximum_iterations=limit,
    )[0]


CONTEXTS: dict[str, Callable] = {
    "function": lambda tf, f, x: tf.function(f)(x),
    "jit": lambda tf, f, x: _jit(tf, f)(x),
    "while_loop": lambda tf, f, x: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, f(y)), (0, x)
    )[1],
    "bounded while_loop": lambda tf, f, x: tf.while_loop(
        lambda y: tf.reduce_sum(y) < 1e9, lambda y: (f(y),), (x,), maximum_iterations=2
    )[0],
    "map_fn": lambda tf, f, x: tf.map_fn(f, tf.stack([x, x + 0.5]))[1],
    "vectorized_map": lambda tf, f, x: tf.vectorized_map(f, tf.stack([x, x + 0.5]))[1],
    "scan": lambda tf, f, x: tf.scan(lambda s, row: f(s) + row, tf.stack([x, x]))[1],
    "foldl": lambda tf, f, x: tf.foldl(lambda s, row: f(s) + row, tf.stack([x, x])),
    "cond": lambda tf, f, x: tf.cond(x[0] > -1e9, lambda: f(x), lambda: x),
    "nothing": lambda tf, f, x: f(x),
}


def _jit(tf: Any, f: Callable) -> Callable:
    """What compiles a function: jax.jit on the substrate."""
    return tf.function(f) if tf is tensorflow else jax.jit(f)


@dataclasses.dataclass(frozen=True)
class Program:
    """Contexts from the outside in, a derivative, and what the tape's block computes.

    A step is the name of one of STEPS, or an operator with the number of a known operand and
    whether that stands on the left.
    """

    contexts: tuple[str, ...]
    derivative: str
    known: tuple[str, ...]
    steps: tuple[Any, ...]
    values: tuple[float, ...]
    n_examples: int = 1

    def run(self, tf: Any) -> np.ndarray:
        """The derivative, as a NumPy array."""
        return np.asarray(self._called(tf, self._operands(tf), tf.constant(self._x())))

    def check(self) -> str:
        """Compares the substrate's derivative with TensorFlow's."""
        from tf_substrates.jax import tf

        actual = self.run(tf)
        try:
            expected = self.run(tensorflow)
        except Exception as error:
            # In graphs TensorFlow has no forward derivatives of many loops and nested branches.
            if self.derivative != "forward":
                raise
            return f"TensorFlow has no result: {type(error).__name__}"
        assert actual.dtype == expected.dtype, f"{actual.dtype}, TensorFlow has {expected.dtype}"
        scale = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(actual / scale, expected / scale, rtol=2e-5, atol=2e-5)
        return ""

    def _x(self) -> np.ndarray:
        return np.array(self.values[:SIZE], np.float32)

    def _operands(self, tf: Any) -> list:
        array = np.array(self.values[SIZE:], np.float32)
        makers: dict[str, Callable] = {
            "tensor": lambda: tf.constant(array),
            "variable": lambda: tf.Variable(array),
            "array": lambda: array,
            "scalar": lambda: array[0],
            "number": lambda: float(array[0]),
            "made inside": lambda: None,
        }
        return [makers[kind]() for kind in self.known]

    def _called(self, tf: Any, operands: list, x: Any) -> Any:
        def derivative(x: Any) -> Any:
            inside = tf.constant(self.values[SIZE:])
            known = [inside if operand is None else operand for operand in operands]
            found = _DERIVED[self.derivative](tf, lambda y: self._computed(tf, known, y), x)
            # What a loop carries on stays near 1.
            return tf.tanh(found / 4.0)

        function = derivative
        for name in reversed(self.contexts):
            function = _within(tf, CONTEXTS[name], function)
        return function(x)

    def _computed(self, tf: Any, known: list, x: Any) -> Any:
        y = x
        for step in self.steps:
            if isinstance(step, str):
                y = STEPS[step](tf, y)
            else:
                name, at, on_the_left = step
                apply = OPERATORS[name]
                swapped = on_the_left and "place" not in name
                y = apply(known[at], y) if swapped else apply(y, known[at])
            y = tf.tanh(y)
        return y


def _within(tf: Any, context: Callable, function: Callable) -> Callable:
    return lambda x: context(tf, function, x)


def _gradient(tf: Any, f: Callable, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, unconnected_gradients="zero")


def _forward(tf: Any, f: Callable, x: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x)
    return accumulator.jvp(y, unconnected_gradients="zero")


def _persistent(tf: Any, f: Callable, x: Any) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        z = y * y
    return tape.gradient(z, x) + tape.gradient(y, x) * tape.gradient(z, y)


def _nested(tf: Any, f: Callable, x: Any) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(x)
        first = _gradient(tf, f, x)
    return outer.gradient(first, x, unconnected_gradients="zero")


def _jacobian(tf: Any, f: Callable, x: Any) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    return tf.reduce_sum(tape.jacobian(y, x, experimental_use_pfor=False), 0)


_DERIVED = {
    "gradient": _gradient,
    "forward": _forward,
    "persistent": _persistent,
    "nested": _nested,
    "jacobian": _jacobian,
}


def program(number: int) -> Program:
    """The program with this number."""
    random = np.random.default_rng(number)

    def chosen(names: Any) -> Any:
        names = tuple(names)
        return names[random.integers(len(names))]

    contexts = tuple(chosen(CONTEXTS) for _ in range(random.integers(1, 3)))
    steps = [s for s in STEPS if s not in _CONTROL or "vectorized_map" not in contexts]
    known = tuple(chosen(KNOWN) for _ in range(2))
    operations = [
        chosen(steps)
        if random.random() < 0.4
        else (chosen(OPERATORS), int(random.integers(2)), bool(random.integers(2)))
        for _ in range(random.integers(1, 5))
    ]
    return Program(
        contexts=contexts,
        derivative=chosen(DERIVATIVES),
        known=known,
        steps=tuple(operations),
        values=tuple(float(v) for v in random.uniform(0.25, 2.0, 2 * SIZE)),
    )
