"""A version is warmed up and served by gRPC and REST, to a client of tensorflow-serving-api.

The server is a small one of these tests (server.py), not TensorFlow Serving.
"""

from __future__ import annotations

import json
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax2tf

pytest.importorskip("tensorflow_serving", reason="pip install --no-deps tensorflow-serving-api")

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.consumers import server

W = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def scores(params, x, top):
    return {"scores": jax.nn.softmax(x @ params), "above": jnp.sum(x @ params > top[:, None], 1)}


@pytest.fixture(scope="module")
def servable(tmp_path_factory):
    base = tmp_path_factory.mktemp("models") / "net"
    specs = {"x": "b, 4", "top": "b"}
    for _ in range(2):
        jax2tf.export(scores, W, specs, base, serving=True, progress=False)
    return server.Servable(base)


def test_warm_up_by_their_classes(servable):
    assert (servable.name, servable.version, servable.warmed_up) == ("net", 2, 2)


def test_grpc(servable):
    """With a batch of three, and of one."""
    started, port = server.grpc_server(servable)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for n in (3, 1):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "net"
            request.inputs["x"].CopyFrom(tf.make_tensor_proto(ROWS[:n]))
            request.inputs["top"].CopyFrom(tf.make_tensor_proto(np.zeros(n, np.float32)))
            response = stub.Predict(request, timeout=30)
            assert response.model_spec.version.value == 2
            expected = jax.jit(scores)(W, ROWS[:n], np.zeros(n, np.float32))
            assert set(response.outputs) == set(expected)
            for name, wanted in expected.items():
                result = tf.make_ndarray(response.outputs[name])
                np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    started.stop(None)


def test_rest(servable):
    started = server.rest_server(servable)
    body = {"instances": [{"x": row.tolist(), "top": 0.5} for row in ROWS]}
    url = f"http://127.0.0.1:{started.server_port}/v1/models/net:predict"
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        predictions = json.loads(response.read())["predictions"]
    started.shutdown()
    started.server_close()
    expected = jax.jit(scores)(W, ROWS, np.full(3, 0.5, np.float32))
    for name, wanted in expected.items():
        given = [prediction[name] for prediction in predictions]
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)
