"""ONNX files from the wheel with its extra `onnx`, which brings no TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from jax import lax
from programs import PROGRAMS, Case, assert_that_tensorflow_is_not_installed, normal

import jax2tf


def transformer_block(params, x):
    """Causal attention with a norm before it, over sequences of any length."""

    def normed(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    q, k, v = (normed(x) @ w for w in params)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
    return x + jax.nn.softmax(scores) @ v


def sorted_and_chosen(x):
    best, index = lax.top_k(x, 2)
    return jnp.sort(x, axis=0), best, jnp.argsort(-x, axis=1), x.at[index[:, 0]].add(1.0)


def twice_normed(x):
    """A choice by a scalar condition inside of two maps."""

    def scaled(x):
        return x * jnp.var(x, keepdims=True)

    return jax.vmap(scaled)(jax.vmap(scaled)(x))


ALL: dict[str, Case] = {
    **PROGRAMS,
    "transformer block": (
        transformer_block,
        [normal(8, 8) for _ in range(3)],
        "b, n, 8",
        (2, 7, 8),
    ),
    "sorted and chosen": (sorted_and_chosen, None, "4, 3", (4, 3)),
    "twice normed": (twice_normed, None, "b, 8", (3, 8)),
}


def test_tensorflow_is_not_installed():
    assert "onnxruntime" in assert_that_tensorflow_is_not_installed()


@pytest.mark.parametrize("name", ALL)
def test_a_file_gives_jaxs_numbers(tmp_path, name):
    """`export` verifies the file too, by inputs of its own."""
    function, params, spec, shape = ALL[name]
    path = tmp_path / "m.onnx"
    jax2tf.export(function, params, spec, path)
    x = np.abs(normal(*shape))
    given = (x,) if params is None else (params, x)
    expected = jax.tree.leaves(function(*jax.tree.map(jnp.asarray, given)))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (taken,) = session.get_inputs()
    actual = session.run(None, {taken.name: x})
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)
    sizes = [size for size in spec.split(", ") if size.isalpha()]
    assert [size for size in taken.shape if isinstance(size, str)] == sizes
    onnx.checker.check_model(str(path), full_check=True)


def test_the_same_input_gives_the_same_bytes(tmp_path):
    function, params, spec, _ = ALL["transformer block"]
    for name in ("one.onnx", "two.onnx"):
        jax2tf.export(function, params, spec, tmp_path / name)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_what_other_formats_need_is_said(tmp_path):
    """A SavedModel needs TensorFlow; a LiteRT file needs only its interpreter."""
    needed = {"folder": "pip install tensorflow", "m.tflite": r"pip install 'jax2tf\[litert\]'"}
    for name, install in needed.items():
        with pytest.raises(jax2tf.MissingPackageError, match=install):
            jax2tf.export(jnp.sin, None, "b, 3", tmp_path / name)
    assert not list(Path(tmp_path).iterdir())


def test_the_command_line(tmp_path):
    command = ["export", "jax.nn:softplus", "--input", "x=b,3", "--to", "f.onnx"]
    done = subprocess.run(
        [sys.executable, "-m", "jax2tf", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.onnx").exists()
