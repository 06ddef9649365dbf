"""`jax2tf.export` to the engines: whole models, what is in the files, options, and faults.

tests/impl has what needs no engine.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax2tf
from jax2tf._src.export import formats
from tests.consumers.engines import litert_ops
from tests.consumers.models import MODELS
from tf_substrates import swapping

RNG = np.random.default_rng(0)
W = (RNG.normal(size=(64, 32)) / 8).astype(np.float32)
X = RNG.normal(size=(5, 64)).astype(np.float32)
EXPORTED = ("MobileNet", "BERT", "Llama, one step", "LSTM, all states", "spectrogram")
SUFFIXES = {"litert": ".tflite", "onnx": ".onnx", "openvino": ".xml", "tfjs": ".tfjs"}

export = functools.partial(jax2tf.export, progress=False)
each_format = pytest.mark.parametrize("format", SUFFIXES)


def dense(params, x):
    return {"same": jnp.tanh(x @ params), "size": -jnp.tanh(x @ params), "signs": x > 0}


def specs_of(model):
    shapes = model.shapes_with(l=model.length)
    inputs = model.inputs(1, model.length)
    return tuple(f"{s}:{x.dtype.name}" for s, x in zip(shapes, inputs, strict=True))


@each_format
@pytest.mark.parametrize("name", EXPORTED)
def test_a_model_with_any_batch(name, format, tmp_path):
    model = MODELS[name]
    path = tmp_path / f"model{SUFFIXES[format]}"
    result = export(model.function, None, specs_of(model), path)
    assert result.format == format
    assert result.verified == tuple(f"serving_default: random inputs, b={b}" for b in (2, 3))
    assert result.ops > 5


@each_format
def test_outputs_of_one_shape_are_told_from_each_other(format, tmp_path):
    path = tmp_path / f"model{SUFFIXES[format]}"
    result = export(dense, W, {"x": "b, 64"}, path)
    assert set(result.differences["serving_default"]) == {"same", "size", "signs"}
    files = [path] if path.is_file() else [*path.iterdir()]
    files += [path.with_suffix(".bin")] if format == "openvino" else []
    assert result.size == sum(file.stat().st_size for file in files)
    assert len(os.listdir(tmp_path)) == (2 if format == "openvino" else 1)


@each_format
def test_inputs_that_nothing_depends_on_and_names_in_upper_case(format, tmp_path):
    specs = {"X": "b", "unused": "b, 2", "n": ":int32"}
    path = tmp_path / f"model{SUFFIXES[format]}"
    result = export(lambda X, unused, n: (X * 2, n + 1), None, specs, path)
    assert list(result.differences["serving_default"]) == ["output_0", "output_1"]


@each_format
def test_a_result_that_is_wrong_is_not_left(format, tmp_path, monkeypatch):
    engine = formats.FORMATS[format].engine
    load = engine.load

    def loaded(target, job):
        run = load(target, job)
        return lambda *call: {name: -array for name, array in run(*call).items()}

    monkeypatch.setattr(engine, "load", loaded)
    path = tmp_path / f"model{SUFFIXES[format]}"
    with pytest.raises(
        jax2tf.VerificationError, match=f"written as '{format}' gives output 'output'"
    ):
        export(lambda p, x: x @ p, W, "b, 64", path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", ["litert", "onnx", "openvino"])
def test_an_output_of_the_name_of_an_input(format, tmp_path):
    def step(x, cache):
        return {"cache": cache + x, "cache_1": x * 2}

    path = tmp_path / f"step{SUFFIXES[format]}"
    result = export(step, None, ("b, 3", "b, 3"), path)
    names = ["cache", "cache_1"] if format == "litert" else ["cache_1", "cache_1_1"]
    assert set(result.differences["serving_default"]) == set(names)


@pytest.mark.parametrize("shape", ["b, 3", "2, 3"])
def test_openvino_constants_are_outputs(shape, tmp_path):
    def function(x):
        constants = {"number": jnp.array(2.5), "whole": jnp.arange(3), "flags": jnp.array([True])}
        return {"x2": x * 2, "none": jnp.zeros((2, 0)), **constants}

    path = tmp_path / "constants.xml"
    result = export(function, None, shape, path)
    names = {"x2", "none", "number", "whole", "flags"}
    assert result.differences["serving_default"].keys() == names


@pytest.mark.parametrize("format", ["onnx", "openvino"])
def test_what_the_engine_does_not_take(format, tmp_path):
    def spectrum(x):
        return jnp.fft.fft(x).real

    with pytest.raises(jax2tf.ConversionError, match="What to do"):
        export(spectrum, None, "b, 7:complex64", tmp_path / f"model{SUFFIXES[format]}")
    assert os.listdir(tmp_path) == []


def test_onnx_metadata_and_opset(tmp_path):
    import onnx

    for opset in (18, 25):
        path = tmp_path / f"{opset}.onnx"
        export(dense, W, "b, 64", path, opset=opset)
        model = onnx.load(path)
        assert model.producer_name == "jax2tf"
        assert model.opset_import[0].version == opset
        said = {entry.key: entry.value for entry in model.metadata_props}
        assert said["jax2tf"] == jax2tf.__version__
        assert said["source"] == f"{__name__}:dense"
        assert [node.name for node in model.graph.input] == ["x"]


def test_openvino_metadata_and_half_weights(tmp_path):
    for half in (False, True):
        result = export(
            dense, W, "b, 64", tmp_path / "model.xml", compress_to_fp16=half, overwrite=True
        )
        size = (tmp_path / "model.bin").stat().st_size
        assert (W.nbytes / 2 <= size < W.nbytes) if half else (W.nbytes <= size)
    import openvino

    model = openvino.Core().read_model(tmp_path / "model.xml")
    assert model.get_rt_info(["jax2tf", "jax"]).astype(str) == jax.__version__
    said = float(model.get_rt_info(["jax2tf", "largest_difference"]).astype(str))
    assert said >= max(result.differences["serving_default"].values())
    # The converter writes the temporary folder that it has read.
    assert model.get_rt_info(["conversion_parameters", "input_model"]).astype(str) == "saved_model"


def test_openvino_in_a_folder_of_versions(tmp_path):
    export(dense, W, "b, 64", tmp_path / "net", format="openvino", serving=True)
    assert sorted(file.name for file in (tmp_path / "net/1").iterdir()) == [
        "model.bin",
        "model.xml",
    ]
    said = (tmp_path / "net/config.pbtxt").read_text().splitlines()
    assert said[:2] == ['name: "net"', 'backend: "openvino"']
    assert 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 64 ] }' in said


def looped(params, x):
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ params) + jnp.arange(64.0) * i, x)


SQUARE = (RNG.normal(size=(64, 64)) / 8).astype(np.float32)
PAIRS = [(dense, W), (looped, SQUARE), (lambda _, x: x + x, {})]


@pytest.mark.parametrize(("old", "new"), [(0, 1), (1, 0), (2, 1), (1, 2)])
def test_openvino_reads_the_old_or_the_new_after_each_step(old, new, tmp_path, monkeypatch):
    """The .xml and the .bin are two files: a process may be killed between their renames."""
    import openvino

    path = tmp_path / "model.xml"

    def results():
        compiled = openvino.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return tuple(np.asarray(r).tobytes() for r in compiled({"x": X}).values())

    export(*PAIRS[old], {"x": "b, 64"}, path)
    seen = [results()]
    put = swapping.put

    def watched(made, target):
        put(made, target)
        seen.append(results())

    monkeypatch.setattr(swapping, "put", watched)
    export(*PAIRS[new], {"x": "b, 64"}, path, overwrite=True)
    assert len(seen) == 6
    assert seen == [seen[0], seen[0], *[seen[-1]] * 4]
    assert seen[0] != seen[-1]
    size = path.with_suffix(".bin").stat().st_size
    export(*PAIRS[new], {"x": "b, 64"}, tmp_path / "alone.xml")
    assert size == (tmp_path / "alone.bin").stat().st_size


_EXPORT = """
import sys
import jax2tf

jax2tf.export(lambda x: x + 1, None, "2, 3", sys.argv[1])
print("openvino_telemetry" in sys.modules)
"""


def test_openvino_reports_nothing(tmp_path):
    """In a process of its own: here another test may have imported OpenVINO before."""
    command = [sys.executable, "-c", _EXPORT, str(tmp_path / "model.xml")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("quantize", "most"), [(None, 1.0), ("float16", 0.5), ("uint16", 0.5), ("uint8", 0.25)]
)
def test_tfjs_metadata_and_quantised_weights(quantize, most, tmp_path):
    path = tmp_path / "web.tfjs"
    export(dense, W, "b, 64", path, quantize=quantize)
    weights = sum(file.stat().st_size for file in path.glob("*.bin"))
    assert weights <= most * W.nbytes + 64
    model = json.loads((path / "model.json").read_text())
    assert model["userDefinedMetadata"]["jax2tf"]["source"] == f"{__name__}:dense"
    assert list(model["signature"]["inputs"]) == ["x"]
    assert sorted(model["signature"]["outputs"]) == ["same", "signs", "size"]


@pytest.mark.parametrize(
    "name", ["convolutional", "MobileNet", "ResNet", "EfficientNet", "UNet", "spectrogram"]
)
def test_no_float_remains_among_integers(name, tmp_path):
    """But where they begin and end."""
    model = MODELS[name]
    path = tmp_path / "model.tflite"
    samples = [model.inputs(2, model.length) for _ in range(3)]
    samples = samples if len(samples[0]) > 1 else [inputs[0] for inputs in samples]
    export(
        model.function, None, specs_of(model), path, quantize="int8", representative_data=samples
    )
    floats = {op for op, dtypes in litert_ops(path) if "FLOAT32" in dtypes}
    assert floats == {"QUANTIZE", "DEQUANTIZE"}


@each_format
def test_a_model_of_bfloat16_in_float32(format, tmp_path):
    """With a loop, a softmax of float32, and inputs that become float32 in the file."""
    params = {"w": jnp.asarray(W, jnp.bfloat16), "v": jnp.asarray(W.T, jnp.bfloat16)}

    def model(p, x):
        y, _ = jax.lax.scan(lambda y, _: (jax.nn.silu(y @ p["w"] @ p["v"]), None), x, length=2)
        return y, jax.nn.softmax((y @ p["w"]).astype(jnp.float32))

    path = tmp_path / f"model{SUFFIXES[format]}"
    result = export(model, params, {"x": "b, 64:bfloat16"}, path, widen_bfloat16=True)
    assert result.signatures == {"serving_default": {"x": "float32[b, 64]"}}
    assert len(result.verified) == 2


MIXED = {
    "table": RNG.normal(size=(40, 32)).astype(np.float32),
    "conv": (RNG.normal(size=(3, 32, 32)) / 10).astype(np.float32),
    "transposed": (RNG.normal(size=(2, 32, 32)) / 8).astype(np.float32),
    "depthwise": (RNG.normal(size=(33, 1, 32)) / 6).astype(np.float32),
    "step": (RNG.normal(size=(32, 32)) / 6).astype(np.float32),
    "stack": (RNG.normal(size=(4, 8, 32)) / 3).astype(np.float32),
    "odd": (RNG.normal(size=(32, 33)) / 6).astype(np.float32),
}


def mixed(p, tokens):
    """Products, tables of rows, kernels of convolutions, and weights in loops."""
    layout = ("NWC", "WIO", "NWC")
    x = p["table"][tokens]
    x = jax.lax.conv_general_dilated(x, p["conv"], (1,), "SAME", dimension_numbers=layout)
    x = x + jax.lax.conv_general_dilated(
        *(x, p["depthwise"], (1,), "SAME"), dimension_numbers=layout, feature_group_count=32
    )
    x = jax.lax.conv_transpose(x, p["transposed"], (2,), "SAME", dimension_numbers=layout)
    x, _ = jax.lax.scan(lambda x, _: (jnp.tanh(x @ p["step"]), None), x, length=3)
    heads = x.reshape(*x.shape[:2], 4, 8)
    x = jnp.tanh(jnp.einsum("blhi,hio->blho", heads, p["stack"]))
    return x.sum(2) @ p["odd"]


@pytest.mark.parametrize(
    ("format", "quantize", "most", "error"),
    [
        ("litert", "float16", 0.55, 0.01),
        ("litert", "int4", 0.3, 0.3),
        ("onnx", "float16", 0.55, 0.01),
        ("onnx", "int8_weights", 0.3, 0.03),
        ("onnx", "int4", 0.3, 0.3),
        ("openvino", "int8_weights", 0.3, 0.03),
        ("openvino", "int4", 0.3, 0.3),
    ],
)
def test_weights_in_fewer_bits(format, quantize, most, error, tmp_path):
    path = tmp_path / f"model{SUFFIXES[format]}"
    specs = "b, 5:int32"
    size = export(mixed, MIXED, specs, path).size
    result = export(mixed, MIXED, specs, path, quantize=quantize, overwrite=True, tolerance=error)
    weights = sum(w.nbytes for w in MIXED.values())
    # Each has scales, and ops in the file: in OpenVINO's these are pages of XML.
    of_ops = 12_000 if format == "openvino" else 4000
    assert result.size < size - (1 - most) * weights + of_ops
    assert result.differences["serving_default"]["output"] > 0


def test_products_of_four_bits_in_onnx(tmp_path):
    """They are ONNX Runtime's own op; blocks of 32 rows have a scale each."""
    import onnx

    w = RNG.normal(size=(50, 40)).astype(np.float32)
    path = tmp_path / "model.onnx"
    export(lambda p, x: jnp.tanh(x @ p) @ p.T, w, "b, 3, 50", path, quantize="int4")
    model = onnx.load(path)
    assert [n.domain for n in model.graph.node if n.op_type == "MatMulNBits"] == [
        "com.microsoft"
    ] * 2
    assert {entry.domain for entry in model.opset_import} >= {"", "com.microsoft"}
    # Weights that are an output too stay what they are.
    export(lambda p, x: (x @ p, p), w, "b, 50", path, quantize="int4", overwrite=True, verify=False)


def test_a_schedule_among_half_weights(tmp_path):
    """0.9999 stays what it is: 1 - 0.9999 is divided by."""
    model = MODELS["diffusion step"]
    inputs = [model.inputs(batch, model.length) for batch in (1, 3)]
    export(
        *(model.function, None, specs_of(model), tmp_path / "model.tflite"),
        quantize="float16",
        verify=inputs,
    )


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("BERT", 0.03),
        ("GPT", 0.04),
        ("GPT, one step", 0.12),
        ("Llama, prefill", 0.12),
        ("Llama, one step", 0.06),
    ],
)
def test_attention_in_integers(name, most, tmp_path):
    """Masks of -1e9 do not take the range that the scores need."""
    model = MODELS[name]
    samples = [model.inputs(2, model.length) for _ in range(3)]
    samples = samples if len(samples[0]) > 1 else [inputs[0] for inputs in samples]
    export(
        *(model.function, None, specs_of(model), tmp_path / "model.tflite"),
        quantize="int8",
        representative_data=samples,
        tolerance=most,
    )


@pytest.mark.parametrize("format", ["litert", "onnx", "openvino"])
def test_numbers_that_are_finite(format, tmp_path):
    """Guards of NaN are left out."""
    ops = []
    for finite in (False, True):
        path = tmp_path / f"{finite}{SUFFIXES[format]}"
        specs = "b, 64"
        fun = lambda x: jax.nn.logsumexp(x.max(0))  # noqa: E731
        ops.append(export(fun, None, specs, path, assume_finite=finite).ops)
    assert ops[1] < ops[0]


def test_tfjs_without_node(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(jax2tf.MissingPackageError, match=r"the program node .* verify=False"):
        export(dense, W, "b, 64", tmp_path / "web.tfjs")
    result = export(dense, W, "b, 64", tmp_path / "web.tfjs", verify=False)
    assert result.verified == ()


def test_tfjs_without_its_package(tmp_path, monkeypatch):
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(jax2tf.MissingPackageError, match="package @tensorflow/tfjs"):
        export(dense, W, "b, 64", tmp_path / "web.tfjs")
