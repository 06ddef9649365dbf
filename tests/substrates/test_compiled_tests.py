"""A library's test in the regimes of TensorFlow runs eagerly and under jax.jit, or says why not."""

from __future__ import annotations

import importlib
import unittest

import jax
import numpy as np
import pytest

from tests.substrates.comparing import tf_of


def _made(substrate):
    tf = tf_of(substrate)
    test_util = tf.python.framework.test_util

    @test_util.run_all_in_graph_and_eager_modes
    class Regimes(tf.test.TestCase):
        traced: tuple = ()

        def setUp(self):
            super().setUp()
            self.x = tf.constant([1.0, 2.0])

        def test_values(self):
            known, y = tf.constant(3.0), self.x * 2.0
            z = known + y
            kinds = tuple(isinstance(t, jax.core.Tracer) for t in (known, y, z))
            type(self).traced = (*type(self).traced, kinds)
            self.assertAllClose(y, [2.0, 4.0])
            value = self.evaluate({"z": z, "none": None, "number": 3})
            self.assertIsInstance(value["z"], np.ndarray)
            self.assertAllClose(value["z"], [5.0, 7.0])
            self.assertIsNone(value["none"])
            self.assertAllClose(tf.exp(z), np.exp([5.0, 7.0]), rtol=1e-5)
            self.assertAllEqual(tf.zeros([tf.size(y)]), [0, 0])

        def test_read_by_numpy(self):
            self.assertEqual(np.asarray(self.x * 2.0).tolist(), [2.0, 4.0])

        def test_read_by_python(self):
            self.assertGreater(float(tf.reduce_sum(self.x)), 2)

        def test_expects_an_error_of_values(self):
            with self.assertRaises(tf.errors.InvalidArgumentError):
                tf.debugging.assert_less(self.x * 1.0, 1.5)

        def test_expects_an_error_of_shapes(self):
            with self.assertRaises((ValueError, tf.errors.InvalidArgumentError)):
                tf.concat([self.x * 2.0, [[1.0]]], axis=0)

        def test_expects_another_message(self):
            with self.assertRaisesRegex(ValueError, "no such"):
                if tf.reduce_sum(self.x) > 0:
                    raise ValueError("no such thing")

        def test_has_state(self):
            self.assertAllEqual(tf.random.uniform([2]).shape, [2])

        def test_wrong_if_traced(self):
            y = self.x + 1.0
            wrong = 5.0 if isinstance(y, jax.core.Tracer) else 0.0
            self.assertAllClose(y + wrong, [2.0, 3.0])

        def test_does_not_raise_at_all(self):
            with self.assertRaises(ZeroDivisionError):
                self.evaluate(self.x * 2.0)

    return Regimes


def _run(case, name):
    result = unittest.TestResult()
    case(name).run(result)
    wrong = [*result.failures, *result.errors]
    return {
        "wrong": ["under jax.jit" if "jax.jit" in str(test) else "eager" for test, _ in wrong],
        "skipped": [(str(test), reason) for test, reason in result.skipped],
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_values", None),
        ("test_expects_an_error_of_shapes", None),
        ("test_read_by_numpy", "TracerArrayConversionError"),
        ("test_read_by_python", "ConcretizationTypeError"),
        ("test_expects_an_error_of_values", "it expects an error that values decide"),
        ("test_expects_another_message", "TracerBoolConversionError"),
        ("test_has_state", "NoStateError"),
    ],
)
def test_a_test_runs_in_each_regime(name, reason):
    for substrate in ("numpy", "jax"):
        found = _run(_made(substrate), name)
        assert found["wrong"] == []
        if substrate == "numpy" or reason is None:
            assert found["skipped"] == []
        else:
            ((test, said),) = found["skipped"]
            assert "under jax.jit" in test
            assert said.startswith("cannot be traced by jax.jit: ")
            assert reason in said


def test_a_test_that_is_wrong_in_one_regime_is_seen():
    assert _run(_made("jax"), "test_wrong_if_traced")["wrong"] == ["under jax.jit"]
    assert _run(_made("numpy"), "test_wrong_if_traced")["wrong"] == []
    # An assertion that no value decides is missing in both: nothing excuses it.
    assert _run(_made("jax"), "test_does_not_raise_at_all")["wrong"] == ["eager"]


def test_tensors_are_traced_and_each_value_is_asked_for_once():
    case = _made("jax")
    _run(case, "test_values")
    eager, *traces = case.traced
    assert eager == (False, False, False)
    # One trace for each of four values, and one to the end.
    assert traces == [(True, True, True)] * 5


def test_a_missing_error_under_jit_alone_is_a_failure():
    compiled_tests = importlib.import_module("tf_substrates.jax.compiled_tests")
    case = _made("jax")
    case.test_does_not_raise_at_all = compiled_tests.compiled(
        case.test_does_not_raise_at_all.__wrapped__
    )
    found = _run(case, "test_does_not_raise_at_all")
    assert (found["wrong"], found["skipped"]) == (["eager"], [])
