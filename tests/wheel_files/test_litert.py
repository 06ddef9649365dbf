"""LiteRT files from the wheel with its extra `litert`, which brings no TensorFlow."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import zipfile
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from jax import lax

import jax2tf

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def perceptron(params, x):
    for weights, bias in params:
        x = jax.nn.gelu(x @ weights + bias)
    return x


def convolutions(params, x):
    x = lax.conv_general_dilated(
        x, params, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.mean((1, 2))


def recurrent(params, xs):
    """A scan over time; sequences are of any length."""

    def step(h, x):
        h = jnp.tanh(x @ params["x"] + h @ params["h"])
        return h, h.sum(-1)

    return lax.scan(step, jnp.zeros((xs.shape[1], 6)), xs)


def until_large(x):
    return lax.while_loop(lambda c: abs(c[1]).sum() < 1e3, lambda c: (c[0] + 1, c[1] * 2), (0, x))


PROGRAMS: dict[str, tuple[Callable, object, str, tuple[int, ...]]] = {
    "perceptron": (
        perceptron,
        [(normal(8, 4), normal(4)), (normal(4, 3), normal(3))],
        "b, 8",
        (5, 8),
    ),
    "convolutions": (convolutions, normal(3, 3, 3, 8), "b, 16, 16, 3", (2, 16, 16, 3)),
    "recurrent": (recurrent, {"x": normal(4, 6), "h": normal(6, 6)}, "t, b, 4", (9, 2, 4)),
    "until large": (until_large, None, "b, 3", (4, 3)),
    "spectrum": (lambda x: jnp.abs(jnp.fft.rfft(x)), None, "b, 16", (3, 16)),
}


def test_tensorflow_is_not_installed():
    assert importlib.util.find_spec("tensorflow") is None
    names = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    assert not any("tensorflow" in name or "keras" in name for name in names)


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
