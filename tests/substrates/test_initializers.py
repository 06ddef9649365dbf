"""Initial values of variables, tf.compat.v1.get_variable, and the logger, as in TensorFlow."""

from __future__ import annotations

import logging

import pytest

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of


def seeded(program):
    def run(tf):
        tf.random.set_seed(3)
        return program(tf)

    return run


def of_version_1(name, shape, **options):
    return seeded(lambda tf: getattr(tf.compat.v1, name)(seed=5, **options)(shape))


def variable(*args, **options):
    """A program: what get_variable gives of what `options` name in TensorFlow."""

    def run(tf):
        given = {key: make(tf) for key, make in options.items()}
        made = tf.compat.v1.get_variable("a", *args, **given)
        return [made, made.name, made.trainable]

    return seeded(run)


@over(
    [
        Case("zeros", lambda tf: tf.zeros_initializer()([2, 3])),
        Case("zeros of a text", lambda tf: tf.zeros_initializer()([2], tf.string)),
        Case("zeros of a part", lambda tf: tf.zeros_initializer()([4], partition_shape=[2])),
        Case("another keyword", lambda tf: tf.zeros_initializer()([4], other=[2])),
        Case("ones", lambda tf: tf.ones_initializer()([2], tf.bool)),
        Case("one number", lambda tf: tf.constant_initializer(3)([2])),
        Case("an array", lambda tf: tf.constant_initializer([1, 2, 3, 4])([2, 2], tf.int64)),
        Case("another size", lambda tf: tf.constant_initializer([1, 2, 3])([2, 2])),
        Case("another dtype", lambda tf: tf.constant_initializer(3.5)([2], tf.int32)),
        Case("uniform", seeded(lambda tf: tf.random_uniform_initializer(-1.0, 2.0, 5)([3]))),
        Case(
            "uniform whole numbers",
            seeded(lambda tf: tf.random_uniform_initializer(-1, 9, 5)([3], tf.int32)),
        ),
        Case("uniform complex", lambda tf: tf.random_uniform_initializer()([3], tf.complex64)),
        Case("normal", seeded(lambda tf: tf.random_normal_initializer(1.0, 2.0, 5)([3]))),
        Case(
            "normal float64",
            seeded(lambda tf: tf.random_normal_initializer(1.0, 2.0, 5)([3], tf.float64)),
        ),
        Case("normal whole numbers", lambda tf: tf.random_normal_initializer()([3], tf.int32)),
        Case("twice", seeded(lambda tf: [tf.random_normal_initializer(seed=5)([3])] * 2)),
        Case(
            "configuration",
            lambda tf: str(
                [
                    tf.zeros_initializer().get_config(),
                    tf.constant_initializer(2).get_config(),
                    tf.random_uniform_initializer.from_config({"minval": 0.0}).get_config(),
                    tf.compat.v1.glorot_normal_initializer(3).get_config(),
                ]
            ),
        ),
        *(
            # A sine near 0 has few digits.
            Case(f"{name} of {shape}", of_version_1(name, shape), rtol=1e-5)
            for name in ("glorot_normal_initializer", "glorot_uniform_initializer")
            for shape in ([2, 3], [4], [2, 2, 3, 4], [])
        ),
    ]
)
def test_initializers(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case("a tensor", variable(initializer=lambda tf: tf.constant([1.0, 2.0]))),
        Case("a number", variable(initializer=lambda tf: 3, trainable=lambda tf: False)),
        Case("a function", variable(initializer=lambda tf: lambda: tf.ones([2]))),
        Case("a tensor and a shape", variable([2], initializer=lambda tf: tf.constant([1.0, 2.0]))),
        Case(
            "a tensor of another dtype",
            variable(initializer=lambda tf: tf.constant(1.0), dtype=lambda tf: tf.float64),
        ),
        Case(
            "an initializer",
            variable(
                [2], dtype=lambda tf: tf.float64, initializer=lambda tf: tf.ones_initializer()
            ),
        ),
        Case("its class", variable([2], initializer=lambda tf: tf.ones_initializer)),
        Case("whole numbers", variable([2], dtype=lambda tf: tf.int32)),
        Case("neither", variable()),
    ]
)
def test_variables_of_version_1(case, substrate):
    assert_as_tensorflow(case, substrate)


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_messages_go_to_the_logger(substrate, caplog):
    tf = tf_of(substrate)
    log = tf.compat.v1.logging
    with caplog.at_level(logging.INFO, "tensorflow"):
        log.warn("%d of %s", 3, "four")
        log.log(log.INFO, "said")
        log.debug("not said")
        assert log.get_verbosity() == log.INFO
    assert [record.message for record in caplog.records] == ["3 of four", "said"]
    assert tf.get_logger() is logging.getLogger("tensorflow")
