"""`export(..., serving=True)`: folders of versions, warm-up requests, descriptions, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from jax2tf._src.export import serving
from tests.impl.export_programs import PARAMS, export, mlp

# The messages of TensorFlow Serving that a warm-up request has: name, number, type, whether it
# repeats. A map is a list of entries.
_MESSAGES = {
    "ModelSpec": [("name", 1, "string", False), ("signature_name", 3, "string", False)],
    "Entry": [("key", 1, "string", False), ("value", 2, "tensorflow.TensorProto", False)],
    "PredictRequest": [("model_spec", 1, "ModelSpec", False), ("inputs", 2, "Entry", True)],
    "PredictLog": [("request", 1, "PredictRequest", False)],
    "PredictionLog": [("predict_log", 6, "PredictLog", False)],
}


def prediction_log():
    """The class of PredictionLog, made of the table by protobuf itself."""
    file = descriptor_pb2.FileDescriptorProto(
        name="serving.proto",
        package="t",
        syntax="proto3",
        dependency=[tf.make_tensor_proto(0).DESCRIPTOR.file.name],
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeats in fields:
            added = message.field.add(name=field, number=number, label=3 if repeats else 1)
            added.type = 9 if kind == "string" else 11
            if kind != "string":
                added.type_name = f".{kind}" if "." in kind else f".t.{kind}"
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.PredictionLog"))


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A folder with two versions; the second one is of inputs that the caller gave."""
    base = tmp_path_factory.mktemp("models") / "net"
    results = [export(mlp, PARAMS, "b, 4", base, serving=True)]
    (base / ".DS_Store").write_text("")
    given = [np.ones((7, 4), np.float32)]
    results.append(export(mlp, PARAMS, "b, 4", base, serving=True, verify=given))
    return base, results


def test_versions(versions):
    base, results = versions
    assert [result.path for result in results] == [base / "1", base / "2"]
    assert sorted(path.name for path in base.iterdir()) == [".DS_Store", "1", "2"]
    restored = tf.saved_model.load(str(base / "2"))
    expected = jax.jit(mlp)(PARAMS, np.ones((5, 4), np.float32))["y"]
    y = restored.signatures["serving_default"](x=tf.ones([5, 4]))["y"]
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_warm_up_requests(versions):
    """The inputs of the verification, as protobuf reads them from a TFRecord."""
    base, _ = versions
    of_log = prediction_log()
    shapes = {}
    for version in ("1", "2"):
        file = base / version / "assets.extra/tf_serving_warmup_requests"
        records = [r.numpy() for r in tf.data.TFRecordDataset(str(file))]
        for record in records:
            request = of_log.FromString(record).predict_log.request
            assert (request.model_spec.name, request.model_spec.signature_name) == (
                "net",
                "serving_default",
            )
            (entry,) = request.inputs
            assert entry.key == "x"
            shapes.setdefault(version, []).append(tf.make_ndarray(entry.value).shape)
            assert of_log.FromString(record).SerializeToString(deterministic=True) == record
    assert shapes == {"1": [(2, 4), (3, 4)], "2": [(7, 4)]}


def test_a_version_that_exists(versions):
    base, _ = versions
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    with pytest.raises(FileExistsError, match=r"version 2 of .* exists.*serving=True for the next"):
        export(mlp, PARAMS, "b, 4", base, serving=2)
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before
    export(mlp, PARAMS, "b, 4", base, serving=2, overwrite=True)
    assert not (base / "3").exists()
    assert (base / "2").stat().st_mtime_ns > before[base / "2"]


CONFIG = """name: "net"
backend: "onnxruntime"
max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] }
"""


def test_onnx_for_triton(tmp_path):
    base = tmp_path / "net"
    result = export(mlp, PARAMS, "b, 4", base, format="onnx", serving=3)
    assert result.path == base / "3/model.onnx"
    assert (base / "config.pbtxt").read_text() == CONFIG
    # The user's own settings stay, and the interface is held.
    (base / "config.pbtxt").write_text(CONFIG.replace("max_batch_size: 0", "max_batch_size: 8"))
    export(mlp, PARAMS, "b, 4", base, format="onnx", serving=True, external_data=True)
    assert sorted(path.name for path in base.iterdir()) == ["3", "4", "config.pbtxt"]
    assert "max_batch_size: 8" in (base / "config.pbtxt").read_text()
    with pytest.raises(FileExistsError, match=r"config.pbtxt says other inputs .* new folder"):
        export(mlp, PARAMS, "7, 4", base, format="onnx", serving=True)
    assert not (base / "5").exists()


REFUSED = [
    (None, {"serving": 0}, ValueError, "from 1 on, got 0"),
    (None, {"serving": "yes"}, TypeError, "True, False or the number of a version, got 'yes'"),
    (None, {"serving": True, "verify": False}, ValueError, "there are none. What to do: give ver"),
    (
        None,
        {"serving": True, "verify": []},
        ValueError,
        "verify has no inputs for 'serving_default'",
    ),
    (None, {"serving": True, "format": "litert"}, ValueError, "which servers read; got 'litert'"),
    ({"saved_model.pb": b""}, {"serving": True}, FileExistsError, "versions: it holds saved_model"),
    ({"config.pbtxt": b""}, {"serving": True}, FileExistsError, "it holds config.pbtxt"),
    ({"1": b""}, {"serving": True}, FileExistsError, "it holds 1. What to do: give the path"),
    (b"", {"serving": True}, FileExistsError, "no folder of versions: it is a file"),
    ({"5/mine": b""}, {"serving": 5, "overwrite": True}, FileExistsError, "is not a SavedModel"),
    (
        {"5/mine": b""},
        {"serving": 5, "overwrite": True, "format": "onnx"},
        FileExistsError,
        "mine is not of the model",
    ),
]


@pytest.mark.parametrize(("content", "options", "error", "words"), REFUSED)
def test_refused(tmp_path, content, options, error, words):
    """Each is said before anything is written."""
    base = tmp_path / "net"
    for name, data in content.items() if isinstance(content, dict) else ():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(data)
    if isinstance(content, bytes):
        base.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error) as caught:
        export(mlp, PARAMS, "b, 4", base, **options)
    assert words in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_suffix_of_a_file(tmp_path):
    with pytest.raises(ValueError, match=r"give '.*/net' and format='onnx'"):
        export(mlp, PARAMS, "b, 4", tmp_path / "net.onnx", serving=True)


def test_a_dtype_that_triton_lacks():
    port = ("x", np.dtype(np.complex64), [1])
    with pytest.raises(Exception, match="Triton has no arrays of complex64, which input 'x' is"):
        serving.config("net", "onnx", ([port], []))
