"""Programs of tf_quant_finance.math.qmc and tf_quant_finance.math.random: samplers."""

from __future__ import annotations

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.places import ONLY_EAGER, VALUES, WIDE

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


@program("math.qmc.sobol_sample")
def _(tf, tff):
    return tff.math.qmc.sobol_sample(3, 50)


@program("math.qmc.sobol_generating_matrices")
def _(tf, tff):
    return tff.math.qmc.sobol_generating_matrices(4, 500, 9)


@program("math.qmc.digital_net_sample")
def _(tf, tff):
    qmc = tff.math.qmc
    return qmc.digital_net_sample(qmc.sobol_generating_matrices(2, 100, 10), 100, 10)


@program("math.qmc.random_digital_shift")
def _(tf, tff):
    return tff.math.qmc.random_digital_shift(2, 10, seed=(2, 3))


@program("math.qmc.random_scrambling_matrices")
def _(tf, tff):
    return tff.math.qmc.random_scrambling_matrices(2, 10, seed=(2, 3))


@program("math.qmc.random_scrambling_vectors")
def _(tf, tff):
    return tff.math.qmc.random_scrambling_vectors(2, seed=(2, 3))


@program("math.qmc.scramble_generating_matrices")
def _(tf, tff):
    qmc = tff.math.qmc
    return qmc.scramble_generating_matrices(
        qmc.sobol_generating_matrices(2, 100, 10),
        qmc.random_scrambling_matrices(2, 10, seed=(2, 3)),
        10,
    )


@program("math.qmc.lattice_rule_sample")
def _(tf, tff):
    vectors = tf.constant([1, 387275, 314993, 50301], dtype=tf.int32)
    return tff.math.qmc.lattice_rule_sample(vectors, 2, 100)


for _of, _arguments in {
    "exp2": ([0, 1, 2, 3],),
    "log2": ([1.0, 2.0, 5.0],),
    "tent_transform": ([0.0, 0.2, 0.6],),
    "filter_tensor": ([5, 6, 7, 8], [1, 2, 3, 4], [1, 1, 2, 2]),
}.items():

    @program(f"math.qmc.utils.{_of}")
    def _(tf, tff, _of=_of, _arguments=_arguments):
        return getattr(tff.math.qmc.utils, _of)(*map(tf.constant, _arguments))


@program("math.random.halton.sample")
def _(tf, tff):
    return tff.math.random.halton.sample(3, num_results=20, randomized=False)[0]


@program("math.random.halton.sample: randomized", places=ONLY_EAGER)
def _(tf, tff):
    tf.random.set_seed(4)
    return tff.math.random.halton.sample(3, num_results=20, seed=127, dtype=tf.float64)[0]


@program("math.random.sobol.sample")
def _(tf, tff):
    return tff.math.random.sobol.sample(3, 20, skip=5)


@program("math.random.stateless_random_shuffle")
def _(tf, tff):
    return tff.math.random.stateless_random_shuffle(tf.range(20), seed=(42, 2))


for _type in ("STATELESS", "STATELESS_ANTITHETIC", "SOBOL", "HALTON"):

    @program(f"math.random.uniform: {_type}")
    def _(tf, tff, _type=_type):
        random = tff.math.random
        return random.uniform(
            4, [10], getattr(random.RandomType, _type), dtype=tf.float64, seed=[3, 7]
        )

    @program(f"math.random.mv_normal_sample: {_type}", [0.1, 0.2], places=WIDE)
    def _(tf, tff, mean, _type=_type):
        random = tff.math.random
        return random.mv_normal_sample(
            [10],
            mean=mean,
            scale_matrix=np.array([[1.0, 0.0], [0.3, 0.8]]),
            random_type=getattr(random.RandomType, _type),
            seed=[3, 7],
            dtype=tf.float64,
        )
