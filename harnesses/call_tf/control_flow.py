"""Conditionals, loops, functions called by functions."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import NO_DERIVATIVES, ask, normal

_X = normal((3, 4))


def _switch(x):
    return tf.switch_case(tf.constant(1), [lambda: x, lambda: tf.sin(x), lambda: tf.cos(x)])


def _repeat(x):
    body = lambda i, y: (i + 1, tf.sin(y))  # noqa: E731
    return tf.while_loop(lambda i, y: i < 3, body, (0, x), maximum_iterations=3)[1]


@tf.custom_gradient
def _clipped(x):
    return x * x, lambda upstream: tf.clip_by_value(upstream * 2 * x, -1.0, 1.0)


_OF_ONE_ARRAY = {
    "tf.cond": lambda x: tf.cond(x[0, 0] > 0, lambda: tf.sin(x), lambda: tf.cos(x)),
    "tf.case": lambda x: tf.case([(x[0, 0] > 9, lambda: x)], default=lambda: x * 2),
    "tf.switch_case": _switch,
    "tf.while_loop": _repeat,
    "tf.map_fn": lambda x: tf.map_fn(tf.sin, x),
    "tf.scan": lambda x: tf.scan(lambda a, b: a + tf.sin(b), x),
    "tf.foldl": lambda x: tf.foldl(lambda a, b: a * 0.5 + b, x),
    "tf.foldr": lambda x: tf.foldr(lambda a, b: a * 0.5 + b, x),
    "tf.vectorized_map": lambda x: tf.vectorized_map(tf.sin, x),
    "tf.function": tf.function(lambda x: tf.sin(x) * 2, autograph=False),
    "tf.custom_gradient": _clipped,
    "tf.recompute_grad": lambda x: tf.recompute_grad(tf.sin)(x),
    "tf.grad_pass_through": lambda x: tf.grad_pass_through(tf.round)(x),
    "tf.group": lambda x: (tf.group(x, x * 2), x * 3)[1],
    "tf.tuple": lambda x: tf.tuple([x, x * 2]),
}


@family.builder
def functions_of_functions() -> None:
    """Conditionals, loops, functions that call others, and checks."""
    for name, function in _OF_ONE_ARRAY.items():
        ask(name, function, _X)
    ask("tf.debugging.check_numerics", lambda x: tf.debugging.check_numerics(x, "nan"), _X)
    ask("tf.debugging.assert_equal", lambda x: (tf.debugging.assert_equal(x, x), x)[1], _X)


@family.builder
def functions_of_the_host() -> None:
    """Ops of which XLA knows nothing: strings, and functions of Python."""
    ask("tf.strings.length", lambda x: tf.strings.length(tf.strings.as_string(x)), _X,
        tags=NO_DERIVATIVES)  # fmt: skip
    ask("tf.numpy_function", lambda x: tf.numpy_function(lambda a: a, [x], tf.float32), _X,
        tags=NO_DERIVATIVES)  # fmt: skip
