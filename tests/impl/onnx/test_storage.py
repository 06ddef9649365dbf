"""Large arrays of a model: written without a copy, or in a file beside the model."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

import jax2tf
from jax2tf._src.export import destination
from jax2tf._src.export.onnx import pairs, storage

RNG = np.random.default_rng(0)
PARAMS = {
    "first": RNG.normal(size=(64, 128)).astype(np.float32),
    "second": RNG.normal(size=(128, 64)).astype(np.float32),
    "bias": np.arange(64, dtype=np.float32),
}


def model(params, x):
    return jnp.tanh(x @ params["first"]) @ params["second"] + params["bias"]


def exported(path, **options):
    return jax2tf.export(model, PARAMS, "b, 64", path, progress=False, **options)


def arrays_of(path):
    tensors = onnx.load(path).graph.initializer
    return {t.name: onnx.numpy_helper.to_array(t, str(path.parent)) for t in tensors}


def test_a_file_beside_the_model(tmp_path):
    whole, parts = tmp_path / "whole.onnx", tmp_path / "parts.onnx"
    exported(whole)
    report = exported(parts, external_data=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("parts.onnx", "parts.onnx.data", "whole.onnx")
    ]
    assert report.size == parts.stat().st_size + (tmp_path / "parts.onnx.data").stat().st_size
    assert parts.stat().st_size < 8192
    onnx.checker.check_model(parts, full_check=True)
    first, second = arrays_of(whole), arrays_of(parts)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


def test_one_file_is_what_protobuf_writes(tmp_path):
    exported(tmp_path / "m.onnx")
    written = onnx.load(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size == len(written.SerializeToString())
    onnx.checker.check_model(written, full_check=True)


DTYPES = ["float32", "int8", "bool", "float16", "uint64", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_all_dtypes_and_orders(tmp_path, dtype, external):
    array = RNG.integers(0, 2, (3, 100, 200)).astype(dtype).transpose(2, 0, 1)
    name = "an array"
    value = ir.Value(name=name, const_value=ir.tensor(array, name=name))
    value.shape, value.type = (
        ir.Shape(array.shape),
        ir.TensorType(ir.DataType.from_numpy(array.dtype)),
    )
    node = ir.node("Identity", [value])
    graph = ir.Graph(
        *([], node.outputs),
        nodes=[node],
        initializers=[value],
        opset_imports={"": 21},
        name="graph",
    )
    node.outputs[0].name, node.outputs[0].type = "y", value.type
    node.outputs[0].shape = value.shape
    parts = storage.parts_of(ir.Model(graph, ir_version=10))
    assert list(parts.arrays) == [name]
    storage.check(parts)
    storage.write(parts, tmp_path / "m.onnx", external)
    read = arrays_of(tmp_path / "m.onnx")[name]
    assert (read.dtype, read.tobytes()) == (array.dtype, array.tobytes())


@pytest.mark.parametrize("kind", ["float16", "int8_weights", "int4"])
def test_weights_of_fewer_bits_beside_the_model(tmp_path, kind):
    exported(tmp_path / "m.onnx", quantize=kind, external_data=True)
    exported(tmp_path / "n.onnx", quantize=kind)
    first, second = arrays_of(tmp_path / "m.onnx"), arrays_of(tmp_path / "n.onnx")
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_model_of_more_than_2_gb_is_written_in_two_files(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_MAX_FILE", 1 << 15)
    assert exported(tmp_path / "m.onnx").verified
    assert (tmp_path / "m.onnx.data").exists()
    with pytest.raises(
        jax2tf.ExportError, match=r"leave external_data=False out, .* n\.onnx\.data"
    ):
        exported(tmp_path / "n.onnx", external_data=False)
    assert not list(tmp_path.glob("n.*"))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("beside", [None, b"mine", "onnx"])
@pytest.mark.parametrize("external", [True, None])
def test_a_file_of_the_user_stays(tmp_path, monkeypatch, overwrite, beside, external):
    if external is None:
        monkeypatch.setattr(storage, "_MAX_FILE", 1 << 15)
    data, target = tmp_path / "m.onnx.data", tmp_path / "m.onnx"
    data.write_bytes(b"mine")
    if beside == "onnx":
        jax2tf.export(jnp.sin, None, "b", target, progress=False)
    elif beside is not None:
        target.write_bytes(beside)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match=r"m\.onnx"):
        exported(target, overwrite=overwrite, external_data=external)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_of_the_user_is_nothing_to_a_model_of_one_file(tmp_path):
    (tmp_path / "m.onnx.data").write_bytes(b"mine")
    exported(tmp_path / "m.onnx")
    exported(tmp_path / "m.onnx", overwrite=True)
    assert (tmp_path / "m.onnx.data").read_bytes() == b"mine"


def test_one_file_takes_the_place_of_two(tmp_path):
    exported(tmp_path / "m.onnx", external_data=True)
    exported(tmp_path / "m.onnx", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    exported(tmp_path / "m.onnx", overwrite=True, external_data=True)
    assert exported(tmp_path / "m.onnx", overwrite=True, external_data=True).verified
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def run(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.ones((1, 64), np.float32)})[0].tobytes()


@pytest.mark.parametrize("sizes", [(128, 96), (96, 128)])
@pytest.mark.parametrize("kinds", [(True, True), (False, True), (True, False)])
def test_after_each_step_a_whole_model_stands_there(tmp_path, sizes, kinds):
    def written(folder, seed, size, external):
        (tmp_path / folder).mkdir()
        params = {
            "first": np.full((64, size), seed, np.float32),
            "second": np.full((size, 64), seed, np.float32),
            "bias": PARAMS["bias"],
        }
        path = tmp_path / folder / "m.onnx"
        jax2tf.export(model, params, "b, 64", path, progress=False, external_data=external)
        return path

    old = written("old", 0.5, sizes[0], kinds[0])
    new = written("new", 0.25, sizes[1], kinds[1])
    results = {run(old), run(new)}
    assert len(results) == 2
    files = [*([pairs.data_beside(new)] if kinds[1] else []), new]
    steps = pairs.steps(files, [old.with_name(file.name) for file in files])
    after = run(new)
    for step in steps:
        destination.put([step])
        assert run(old) in results
    assert run(old) == after
    assert len(list(old.parent.iterdir())) == len(files)


@pytest.mark.parametrize("value", ["yes", 2])
def test_a_value_that_is_no_switch(tmp_path, value):
    with pytest.raises(ValueError, match="option 'external_data' of the format 'onnx'"):
        exported(tmp_path / "m.onnx", external_data=value)
