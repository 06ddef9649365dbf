"""tf.random, the stateless functions: the same seed gives the same numbers everywhere."""

import tensorflow as tf

from harnesses.call_tf import family
from harnesses.call_tf.asking import NO_DERIVATIVES, ask, between, indices

_SEED = [indices(3, 4)]
_SHAPE = (3, 4)

_OF_A_SEED = {
    "stateless_uniform": lambda s: tf.random.stateless_uniform(_SHAPE, s),
    "stateless_uniform_int": lambda s: tf.random.stateless_uniform(_SHAPE, s, 0, 9, tf.int32),
    "stateless_normal": lambda s: tf.random.stateless_normal(_SHAPE, s),
    "stateless_truncated_normal": lambda s: tf.random.stateless_truncated_normal(_SHAPE, s),
    "stateless_gamma": lambda s: tf.random.stateless_gamma(_SHAPE, s, 2.0),
    "stateless_poisson": lambda s: tf.random.stateless_poisson(_SHAPE, s, 2.0),
    "stateless_binomial": lambda s: tf.random.stateless_binomial(_SHAPE, s, 4.0, 0.5),
    "stateless_categorical": lambda s: tf.random.stateless_categorical(tf.zeros([2, 3]), 4, s),
    "stateless_parameterized_truncated_normal": (
        lambda s: tf.random.stateless_parameterized_truncated_normal(_SHAPE, s, 0.0, 1.0, -1.0, 1.0)
    ),
    "split": lambda s: tf.random.split(s, 2),
    "fold_in": lambda s: tf.random.fold_in(s, 7),
    "stateless_shuffle": lambda s: tf.random.experimental.stateless_shuffle(tf.range(9), s),
}


@family.builder
def stateless_functions() -> None:
    """The stateless functions, the algorithm Philox, a mean that has a derivative."""
    for name, function in _OF_A_SEED.items():
        ask(f"tf.random.{name}", function, _SEED, dtypes=["int32"], tags=NO_DERIVATIVES)
    ask("tf.random.stateless_uniform",
        lambda s: tf.random.stateless_uniform(_SHAPE, s, alg="philox"),
        _SEED, dtypes=["int32"], case="philox")  # fmt: skip
    ask("tf.random.stateless_normal",
        lambda m: tf.random.stateless_normal(_SHAPE, [1, 2], m, alg="philox"),
        between(1, 2, _SHAPE), case="of_a_mean")  # fmt: skip
