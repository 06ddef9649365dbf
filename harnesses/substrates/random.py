"""tf.random: the stateless samplers, whose numbers are TensorFlow's own, and seeds."""

import numpy as np

from harnesses.harness import Normal, Uniform
from harnesses.substrates.asking import FLOAT64, NO_DERIVATIVES, ask, ask_raises, call, indices

SEED = [3, 7]
# Box-Muller's logarithms and sines differ from program to program.
LOOSE = {"float32": 64, "float64": 64, "bfloat16": 4, "float16": 4}
_FLOATS = ("float32", "float64", "bfloat16", "float16")


def _sample(name: str, shape: list[int], **options: object) -> object:
    return call(f"random.{name}", shape, SEED, **options)


for _dtype in _FLOATS:
    ask("random.stateless_uniform", [], _sample("stateless_uniform", [2, 3], dtype=_dtype),
        dtypes=[_dtype], ulps=LOOSE)  # fmt: skip
    ask("random.stateless_normal", [], _sample("stateless_normal", [5], dtype=_dtype),
        dtypes=[_dtype], ulps=LOOSE)  # fmt: skip
for _dtype in ("int32", "int64", "uint32", "uint64"):
    ask("random.stateless_uniform", [],
        _sample("stateless_uniform", [5], dtype=_dtype, minval=None), case="every_bit",
        dtypes=[_dtype])  # fmt: skip
for _dtype in ("int32", "int64"):
    ask("random.stateless_uniform", [],
        _sample("stateless_uniform", [5], dtype=_dtype, minval=-5, maxval=10), case="range",
        dtypes=[_dtype])  # fmt: skip
for _dtype in FLOAT64:
    ask("random.stateless_truncated_normal", [],
        _sample("stateless_truncated_normal", [9], dtype=_dtype), dtypes=[_dtype],
        ulps=LOOSE)  # fmt: skip
    ask("random.stateless_uniform", lambda d: [Uniform((3,), d)],
        lambda tf, x: tf.random.stateless_uniform([2, 3], SEED, -x, 2 * x, x.dtype),
        case="limits", dtypes=[_dtype], ulps=LOOSE)  # fmt: skip
    ask("random.stateless_normal", lambda d: [Normal((3,), d)],
        lambda tf, x: tf.random.stateless_normal([2, 3], SEED, x, x * x, x.dtype),
        case="moments", dtypes=[_dtype], ulps=LOOSE)  # fmt: skip
    ask("random.stateless_gamma", lambda d: [Uniform((3,), d, 0.5, 3)],
        lambda tf, a: tf.random.stateless_gamma([2, 3], SEED, a, dtype=a.dtype),
        dtypes=[_dtype], ulps=LOOSE, tags=NO_DERIVATIVES)  # fmt: skip
    ask("random.stateless_categorical", lambda d: [Normal((2, 4), d)],
        lambda tf, x: tf.random.stateless_categorical(x, 5, SEED), dtypes=[_dtype],
        tags=NO_DERIVATIVES)  # fmt: skip
for _case, _scale in (("small", 3), ("large", 60)):
    ask("random.stateless_poisson", lambda d, scale=_scale: [Uniform((3,), d, 0.1, scale)],
        lambda tf, rate: tf.random.stateless_poisson([4, 3], SEED, rate, tf.int64),
        case=_case, dtypes=["float64"], tags=NO_DERIVATIVES)  # fmt: skip
    ask("random.stateless_binomial", lambda d, scale=_scale: [Uniform((3,), d, scale, 2 * scale)],
        lambda tf, n: tf.random.stateless_binomial([4, 3], SEED, n, 0.4 + 0.001 * n, tf.int64),
        case=_case, dtypes=["float64"], tags=NO_DERIVATIVES)  # fmt: skip
ask("random.stateless_uniform", [indices(SEED)],
    lambda tf, seed: tf.random.stateless_uniform([3], seed),
    case="seed", dtypes=["int32"])  # fmt: skip
ask("random.split", [indices(SEED)], lambda tf, seed: tf.random.split(seed, 3), dtypes=["int32"])
ask(
    "random.fold_in", [indices(SEED)], lambda tf, seed: tf.random.fold_in(seed, 9), dtypes=["int32"]
)

for _op in ("uniform", "normal", "truncated_normal"):
    ask(f"random.{_op}", [],
        lambda tf, op=_op: [tf.random.set_seed(5), getattr(tf.random, op)([3], seed=11)][1:],
        ulps=LOOSE, tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
for _op, _arguments in (
    ("shuffle", (np.arange(9),)),
    ("categorical", ([[0.1, 0.5, 0.9]], 4)),
    ("gamma", ([2], 1.5)),
    ("poisson", ([2], 1.5)),
):
    ask(f"random.{_op}", [],
        lambda tf, op=_op, args=_arguments: [
            tf.random.set_seed(5), getattr(tf.random, op)(*args, seed=11)][1:],
        ulps=LOOSE, tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip
ask("random.set_seed", [], lambda tf: [
    tf.random.set_seed(5), tf.random.uniform([2], seed=1), tf.random.set_seed(6),
    tf.random.uniform([2], seed=1)][1::2],
    tags=("not_jit", "not_vmap", "not_round_trip"))  # fmt: skip

for _op, _case, _program in (
    ("random.stateless_uniform", "seed", lambda tf: tf.random.stateless_uniform([2], [1, 2, 3])),
    ("random.stateless_uniform", "float_seed",
     lambda tf: tf.random.stateless_uniform([2], [1.0, 2.0])),
    ("random.stateless_uniform", "empty",
     lambda tf: tf.random.stateless_uniform([2], SEED, 3, 3, tf.int32)),
    ("random.stateless_uniform", "one_limit",
     lambda tf: tf.random.stateless_uniform([2], SEED, 0, None, tf.int32)),
    ("random.stateless_categorical", "vector",
     lambda tf: tf.random.stateless_categorical(tf.ones([2]), 4, SEED)),
):  # fmt: skip
    ask_raises(_op, _case, _program)
