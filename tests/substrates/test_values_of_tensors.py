"""Values that are made of tensors, in loops, branches and maps, and in a library that has them."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import pytest

import tf_substrates
from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of


def _operator(tf):
    diagonal = tf.linalg.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True)
    return tf.linalg.LinearOperatorKronecker([diagonal, tf.linalg.LinearOperatorIdentity(2)])


def _doubled(tf, operator):
    return tf.linalg.LinearOperatorDiag(operator.diag * 2.0)


CASES = {
    "leaves": lambda tf: tf.nest.flatten([_operator(tf), 1], expand_composites=True)[0],
    "without composites": lambda tf: len(tf.nest.flatten([_operator(tf), 1])),
    "mapped": lambda tf: tf.nest.map_structure(
        lambda x: x + 1.0, tf.linalg.LinearOperatorDiag([1.0, 2.0]), expand_composites=True
    ).to_dense(),
    "in a loop": lambda tf: tf.while_loop(
        lambda i, operator: i < 3,
        lambda i, operator: (i + 1, _doubled(tf, operator)),
        (0, tf.linalg.LinearOperatorDiag([1.0, 2.0])),
    )[1].to_dense(),
    "is a CompositeTensor": lambda tf: isinstance(_operator(tf), tf.__internal__.CompositeTensor),
}


@over([Case(name, program) for name, program in CASES.items()])
def test_as_tensorflow(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_the_rows_of_operators(substrate):
    tf = tf_of(substrate)
    diagonals = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    operators = tf.vectorized_map(tf.linalg.LinearOperatorDiag, diagonals)
    np.testing.assert_array_equal(operators.diag, diagonals)
    np.testing.assert_array_equal(
        tf.vectorized_map(lambda operator: operator.trace(), operators), [3.0, 7.0]
    )


def test_branches_give_operators():
    tf = tf_of("jax")

    @tf.function
    def program(x):
        operator = tf.cond(
            x > 0.0,
            lambda: tf.linalg.LinearOperatorDiag([x, 2.0]),
            lambda: tf.linalg.LinearOperatorDiag([3.0, x]),
        )
        return operator.trace()

    assert [float(program(tf.constant(x))) for x in (1.0, -1.0)] == [3.0, 2.0]


@pytest.fixture
def probability():
    if importlib.util.find_spec("tensorflow_probability") is None:
        pytest.skip("TensorFlow Probability is not installed")
    tf_substrates.install("jax", ["tensorflow_probability"])
    return importlib.import_module("tf_substrates.on_jax.tensorflow_probability")


def _model(tfp, tf):
    @tfp.distributions.JointDistributionCoroutineAutoBatched
    def model():
        z = yield tfp.distributions.Normal(0.0, 1.0, name="z")
        yield tfp.distributions.Normal(z[..., None] * tf.ones([3]), 1.0, name="y")

    return model


def test_joint_distributions_of_several_samples(probability):
    tf = tf_of("jax")
    distributions, values = _model(probability, tf).sample_distributions((2, 3), seed=(1, 2))
    assert [tuple(d.batch_shape) for d in distributions] == [(2, 3), (2, 3, 3)]
    np.testing.assert_array_equal(distributions.y.loc[..., 0], values.z)


def test_windowed_adaptive_nuts(probability):
    tf = tf_of("jax")
    pinned = _model(probability, tf).experimental_pin(y=tf.constant([1.0, 2.0, 1.5]))
    draws, _ = probability.experimental.mcmc.windowed_adaptive_nuts(
        60, pinned, n_chains=2, num_adaptation_steps=60, seed=(3, 4)
    )
    # The posterior is normal, about 4.5 / 4 with the deviation 1 / 2.
    assert draws.z.shape == (60, 2)
    assert abs(float(draws.z.mean()) - 1.125) < 0.35
