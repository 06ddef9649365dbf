"""A small server with the interfaces of TensorFlow Serving: gRPC's Predict, and REST's :predict.

It serves the newest version of a folder, which it warms up by the requests that the version holds.
It listens on this machine only.
"""

from __future__ import annotations

import http.server
import json
import pathlib
import threading
from concurrent import futures

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2


class Servable:
    """The newest version of a model."""

    def __init__(self, base: pathlib.Path):
        numbers = [int(p.name) for p in base.iterdir() if p.name.isdigit()]
        self.name, self.version = base.name, max(numbers)
        folder = base / str(self.version)
        self.signatures = tf.saved_model.load(str(folder)).signatures
        file = folder / "assets.extra/tf_serving_warmup_requests"
        self.warmed_up = 0
        for record in tf.data.TFRecordDataset(str(file)):
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            self.predict(log.predict_log.request)
            self.warmed_up += 1

    def run(self, signature, tensors):
        return self.signatures[signature or "serving_default"](**tensors)

    def predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        """Predict of the PredictionService."""
        spec = request.model_spec
        if spec.name != self.name:
            raise LookupError(f"no model {spec.name}")
        tensors = {key: tf.constant(tf.make_ndarray(t)) for key, t in request.inputs.items()}
        response = predict_pb2.PredictResponse()
        response.model_spec.name = self.name
        response.model_spec.version.value = self.version
        for key, tensor in self.run(spec.signature_name, tensors).items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(tensor))
        return response

    def answer(self, body: dict) -> dict:
        """`:predict` of REST, with one row for each instance."""
        rows = body["instances"]
        specs = self.signatures["serving_default"].structured_input_signature[1]
        tensors = {
            key: tf.constant([row[key] for row in rows], spec.dtype) for key, spec in specs.items()
        }
        results = self.run(body.get("signature_name"), tensors)
        lists = {key: tensor.numpy().tolist() for key, tensor in results.items()}
        return {
            "predictions": [
                {key: values[i] for key, values in lists.items()} for i in range(len(rows))
            ]
        }


def grpc_server(servable: Servable) -> tuple[grpc.Server, int]:
    """A started server, and its port."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    predict = grpc.unary_unary_rpc_method_handler(
        lambda request, context: servable.predict(request),
        predict_pb2.PredictRequest.FromString,
        predict_pb2.PredictResponse.SerializeToString,
    )
    name = "tensorflow.serving.PredictionService"
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(name, {"Predict": predict})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def rest_server(servable: Servable) -> http.server.ThreadingHTTPServer:
    """A started server; its port is `server_port`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_known = self.path == f"/v1/models/{servable.name}:predict"
            answer = json.dumps(servable.answer(json.loads(body)) if is_known else {}).encode()
            self.send_response(200 if is_known else 404)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words):
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
