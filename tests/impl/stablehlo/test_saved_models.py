"""SavedModels whose signatures hold XlaCallModule ops: ours and those of JAX's own jax2tf."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.random.RandomState(0).normal(size=(5, 3)).astype(np.float32)


def _model(params: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ params["w"] + params["b"]), "sorted": jnp.sort(x, 0)}


class _Module(tf.Module):
    """A module in XLA's form with TensorFlow ops around it, and two variables."""

    def __init__(self) -> None:
        super().__init__()
        values = {"w": np.ones((3, 2), np.float32), "b": np.arange(2, dtype=np.float32)}
        self.params = {name: tf.Variable(value) for name, value in values.items()}
        self._f = jax2tf.convert(
            _model, polymorphic_shapes=[None, "b, 3"], native_serialization=True
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 3])], autograph=False)
    def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        results = self._f(self.params, x * 2.0)
        return {"y": results["y"] + 1.0, "sorted": results["sorted"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    module = _Module()
    path = tmp_path_factory.mktemp("saved") / "model"
    tf.saved_model.save(module, str(path), signatures={"predict": module.predict})
    return path


def test_values_and_parameters(folder: pathlib.Path):
    loaded = jax2tf.load(folder)
    want = tf.saved_model.load(str(folder)).signatures["predict"](x=tf.constant(X))
    got = loaded["predict"](x=X)
    assert got.keys() == want.keys()
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value.numpy(), rtol=1e-6)
    assert loaded["predict"].params.keys() == {"params.w", "params.b"}


def test_gradients_by_the_parameters(folder: pathlib.Path):
    function = jax2tf.load(folder)["predict"]
    params = {name.removeprefix("params."): value for name, value in function.params.items()}
    got = jax.grad(lambda p: function.apply(p, x=X)["y"].sum())(function.params)
    want = jax.grad(lambda p: _model(p, X * 2)["y"].sum())(params)
    for name, value in want.items():
        np.testing.assert_allclose(got[f"params.{name}"], value, rtol=1e-5)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_files_for_engines(folder: pathlib.Path, tmp_path: pathlib.Path, suffix: str):
    function = jax2tf.load(folder)["predict"]
    result = jax2tf.export(
        lambda x: function(x=x)["y"], None, "b, 3", str(tmp_path / f"m.{suffix}"), verify=True
    )
    assert result.path.endswith(suffix) if isinstance(result.path, str) else result.path.exists()


def test_signatures_of_strings_are_refused(tmp_path: pathlib.Path):
    module = tf.Module()
    spec = [tf.TensorSpec([None], tf.string)]
    module.f = tf.function(tf.strings.length, input_signature=spec, autograph=False)
    tf.saved_model.save(module, str(tmp_path), signatures={"f": module.f})
    with pytest.raises(jax2tf.LoadError, match="of type string"):
        jax2tf.load(tmp_path)
