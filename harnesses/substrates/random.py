"""tf.random: the stateless samplers, whose numbers are TensorFlow's own, and seeds."""

import numpy as np

from harnesses.harness import Normal, Uniform
from harnesses.substrates import family
from harnesses.substrates.asking import FLOAT64, NO_DERIVATIVES, ask, ask_raises, call, indices

SEED = [3, 7]
# Box-Muller's logarithms and sines differ from program to program.
LOOSE = {"float32": 64, "float64": 64, "bfloat16": 4, "float16": 4}
_FLOATS = ("float32", "float64", "bfloat16", "float16")


def _sample(name: str, shape: list[int], **options: object) -> object:
    return call(f"random.{name}", shape, SEED, **options)


@family.builder
def uniform_and_normal_numbers() -> None:
    """Uniform and normal numbers of each dtype."""
    for dtype in _FLOATS:
        ask("random.stateless_uniform", [], _sample("stateless_uniform", [2, 3], dtype=dtype),
            dtypes=[dtype], ulps=LOOSE)  # fmt: skip
        ask("random.stateless_normal", [], _sample("stateless_normal", [5], dtype=dtype),
            dtypes=[dtype], ulps=LOOSE)  # fmt: skip
    for dtype in ("int32", "int64", "uint32", "uint64"):
        ask("random.stateless_uniform", [],
            _sample("stateless_uniform", [5], dtype=dtype, minval=None), case="every_bit",
            dtypes=[dtype])  # fmt: skip
    for dtype in ("int32", "int64"):
        ask("random.stateless_uniform", [],
            _sample("stateless_uniform", [5], dtype=dtype, minval=-5, maxval=10), case="range",
            dtypes=[dtype])  # fmt: skip


@family.builder
def numbers_with_parameters() -> None:
    """Truncated normal numbers, and those whose parameters are tensors."""
    for dtype in FLOAT64:
        ask("random.stateless_truncated_normal", [],
            _sample("stateless_truncated_normal", [9], dtype=dtype), dtypes=[dtype],
            ulps=LOOSE)  # fmt: skip
        ask("random.stateless_uniform", lambda d: [Uniform((3,), d)],
            lambda tf, x: tf.random.stateless_uniform([2, 3], SEED, -x, 2 * x, x.dtype),
            case="limits", dtypes=[dtype], ulps=LOOSE)  # fmt: skip
        ask("random.stateless_normal", lambda d: [Normal((3,), d)],
            lambda tf, x: tf.random.stateless_normal([2, 3], SEED, x, x * x, x.dtype),
            case="moments", dtypes=[dtype], ulps=LOOSE)  # fmt: skip
        ask("random.stateless_gamma", lambda d: [Uniform((3,), d, 0.5, 3)],
            lambda tf, a: tf.random.stateless_gamma([2, 3], SEED, a, dtype=a.dtype),
            dtypes=[dtype], ulps=LOOSE, tags=NO_DERIVATIVES)  # fmt: skip
        ask("random.stateless_categorical", lambda d: [Normal((2, 4), d)],
            lambda tf, x: tf.random.stateless_categorical(x, 5, SEED), dtypes=[dtype],
            tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def counts() -> None:
    """Poisson and binomial counts, small and large."""
    for case, scale in (("small", 3), ("large", 60)):
        ask("random.stateless_poisson", lambda d, scale=scale: [Uniform((3,), d, 0.1, scale)],
            lambda tf, rate: tf.random.stateless_poisson([4, 3], SEED, rate, tf.int64),
            case=case, dtypes=["float64"], tags=NO_DERIVATIVES)  # fmt: skip
        ask("random.stateless_binomial",
            lambda d, scale=scale: [Uniform((3,), d, scale, 2 * scale)],
            lambda tf, n: tf.random.stateless_binomial([4, 3], SEED, n, 0.4 + 0.001 * n, tf.int64),
            case=case, dtypes=["float64"], tags=NO_DERIVATIVES)  # fmt: skip


@family.builder
def seeds_as_operands() -> None:
    """Seeds that are tensors."""
    ask("random.stateless_uniform", [indices(SEED)],
        lambda tf, seed: tf.random.stateless_uniform([3], seed),
        case="seed", dtypes=["int32"])  # fmt: skip
    ask(
        "random.split", [indices(SEED)], lambda tf, seed: tf.random.split(seed, 3), dtypes=["int32"]
    )
    ask(
        "random.fold_in",
        [indices(SEED)],
        lambda tf, seed: tf.random.fold_in(seed, 9),
        dtypes=["int32"],
    )


@family.builder
def samplers_with_state() -> None:
    """Samplers that draw from a state, after `tf.random.set_seed`."""
    for op in ("uniform", "normal", "truncated_normal"):
        ask(f"random.{op}", [],
            lambda tf, op=op: [tf.random.set_seed(5), getattr(tf.random, op)([3], seed=11)][1:],
            ulps=LOOSE, tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
    for op, arguments in (
        ("shuffle", (np.arange(9),)),
        ("categorical", ([[0.1, 0.5, 0.9]], 4)),
        ("gamma", ([2], 1.5)),
        ("poisson", ([2], 1.5)),
    ):
        ask(f"random.{op}", [],
            lambda tf, op=op, args=arguments: [
                tf.random.set_seed(5), getattr(tf.random, op)(*args, seed=11)][1:],
            ulps=LOOSE, tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
    ask("nn.dropout", [],
        lambda tf: [tf.random.set_seed(5), tf.nn.dropout(tf.ones([3, 4]), 0.5, seed=11),
                    tf.nn.dropout(tf.ones([3, 4]), 0.5, noise_shape=[3, 1])][1:],
        tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
    ask("random.set_seed", [], lambda tf: [
        tf.random.set_seed(5), tf.random.uniform([2], seed=1), tf.random.set_seed(6),
        tf.random.uniform([2], seed=1)][1::2],
        tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip


@family.builder
def refused_programs() -> None:
    """Programs with seeds, limits or shapes that do not fit."""
    for op, case, program in (
        ("random.stateless_uniform", "seed",
         lambda tf: tf.random.stateless_uniform([2], [1, 2, 3])),
        ("random.stateless_uniform", "float_seed",
         lambda tf: tf.random.stateless_uniform([2], [1.0, 2.0])),
        ("random.stateless_uniform", "empty",
         lambda tf: tf.random.stateless_uniform([2], SEED, 3, 3, tf.int32)),
        ("random.stateless_uniform", "one_limit",
         lambda tf: tf.random.stateless_uniform([2], SEED, 0, None, tf.int32)),
        ("random.stateless_categorical", "vector",
         lambda tf: tf.random.stateless_categorical(tf.ones([2]), 4, SEED)),
    ):  # fmt: skip
        ask_raises(op, case, program)


@family.builder
def initial_values() -> None:
    """First values of variables; those with a seed are TensorFlow's own."""
    for op, options in {
        "zeros_initializer": {},
        "ones_initializer": {},
        "constant_initializer": {"value": 2.5},
        "random_uniform_initializer": {"minval": -1.0, "maxval": 2.0, "seed": 5},
        "random_normal_initializer": {"mean": 1.0, "stddev": 2.0, "seed": 5},
    }.items():
        for dtype in FLOAT64:
            ask(op, [], lambda tf, op=op, options=options, dtype=dtype: getattr(tf, op)(
                **options)([3, 4], tf.as_dtype(dtype)), dtypes=(dtype,))  # fmt: skip
