"""`jax2tf.locate` with models of TensorFlow.js, which Node.js runs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jax2tf
from jax2tf._src.locate.answer import Party

RNG = np.random.default_rng(0)
PARAMS = {"w": [RNG.normal(size=(4, 4)).astype(np.float32) for _ in range(3)]}
SPECS = {"X": "b, 4"}


def model(params, X):
    for w in params["w"]:
        X = jnp.tanh(X @ w)
    X, sums = lax.scan(lambda c, w: (jnp.sin(c @ w), c.sum()), X, jnp.stack(params["w"]))
    return {"y": X, "sums": sums}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("locate") / "web"
    jax2tf.export(model, PARAMS, SPECS, path, format="tfjs", progress=False)
    return path


def test_each_result_of_a_right_model_is_read(path):
    found = jax2tf.locate(model, PARAMS, SPECS, path, format="tfjs")
    assert (found.agrees, found.equation) == (True, None)
    assert sum(line.difference is not None for line in found.lines) >= 7


def test_a_changed_model_tells_the_layer(path):
    before = (path / "model.json").read_bytes()
    first, second, third = PARAMS["w"]
    trained = {"w": [first, second * 1.01, third]}
    found = jax2tf.locate(model, trained, SPECS, path / "model.json")
    assert (found.party, found.primitive) == (Party.FILE, "dot_general")
    assert found.layer == "['w'][1]"
    assert (path / "model.json").read_bytes() == before
