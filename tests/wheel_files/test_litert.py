"""LiteRT files from the wheel with its extra `litert`, which brings no TensorFlow."""

from __future__ import annotations

import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from programs import PROGRAMS, assert_that_tensorflow_is_not_installed, normal

import jax2tf
from jax2tf._src.export.tflite import passes, registry


def test_tensorflow_is_not_installed():
    assert_that_tensorflow_is_not_installed()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_gives_jaxs_numbers(tmp_path, name):
    """`export` verifies the file too, by inputs of its own."""
    function, params, spec, shape = PROGRAMS[name]
    path = tmp_path / "m.tflite"
    jax2tf.export(function, params, spec, path)
    x = np.abs(normal(*shape))
    given = (x,) if params is None else (params, x)
    expected = jax.tree.leaves(function(*jax.tree.map(jnp.asarray, given)))
    run = Interpreter(str(path)).get_signature_runner("serving_default")
    (taken,) = run.get_input_details()
    actual = run(**{taken: x})
    assert len(actual) == len(expected)
    for a, e in zip(sorted(actual), expected, strict=True):
        np.testing.assert_allclose(actual[a], e, rtol=1e-5, atol=1e-5)
    assert zipfile.ZipFile(path).namelist() == ["jax2tf.json"]


@pytest.mark.parametrize("kind", ["float16", "int4"])
def test_weights_in_fewer_bits(tmp_path, kind):
    weights = normal(64, 64)
    full, small = tmp_path / "full.tflite", tmp_path / "small.tflite"
    jax2tf.export(lambda params, x: x @ params, weights, "b, 64", full)
    jax2tf.export(lambda params, x: x @ params, weights, "b, 64", small, quantize=kind)
    assert small.stat().st_size < 0.7 * full.stat().st_size


def test_integers_of_tensorflows_converter_are_refused(tmp_path):
    path = tmp_path / "m.tflite"
    with pytest.raises(jax2tf.MissingPackageError, match="pass quantize='float16' or 'int4'"):
        jax2tf.export(
            lambda params, x: x @ params, normal(64, 64), "8, 64", path, quantize="dynamic"
        )
    assert not path.exists()


def test_what_no_file_can_hold_is_refused(tmp_path):
    def function(x):
        return jax.pure_callback(np.sin, x, x)

    with pytest.raises(jax2tf.ConversionError, match=r"pure_callback.*cannot call Python"):
        jax2tf.export(function, None, "3", tmp_path / "m.tflite")
    assert not (tmp_path / "m.tflite").exists()


def test_a_mistake_of_a_pass_is_ours(tmp_path, monkeypatch):
    def fail(graph):
        raise KeyError("a pass")

    monkeypatch.setattr(passes, "improve", fail)
    words = r"writer of LiteRT files failed, which is a mistake in jax2tf .*KeyError: 'a pass'"
    with pytest.raises(jax2tf.ExportError, match=words):
        jax2tf.export(jnp.tanh, None, "b", tmp_path / "m.tflite")
    assert not list(tmp_path.iterdir())


def test_an_op_without_a_rule_is_no_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "rule_of", lambda op: None)
    with pytest.raises(jax2tf.ExportError, match=r"refuses the function: .*no rule writes Tanh"):
        jax2tf.export(jnp.tanh, None, "b", tmp_path / "m.tflite")
