"""What `locate` reads of models of TensorFlow.js, without Node.js."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jax2tf
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.locate import checks, tfjs_tensors

# x -> a loop of sines (with a constant) -> a branch -> y
LOOP = [
    ("c", "Const", []),
    ("k", "Const", []),
    ("x", "Placeholder", []),
    ("enter", "Enter", ["x"]),
    ("back", "NextIteration", ["body/mul"]),
    ("merge", "Merge", ["enter", "back"]),
    ("cond", "LoopCond", ["merge"]),
    ("switch", "Switch", ["merge", "cond"]),
    ("exit", "Exit", ["switch"]),
    ("body/sin", "Sin", ["switch:1"]),
    ("body/mul", "Mul", ["body/sin", "c"]),
    ("p", "Less", ["exit", "k"]),
    ("branch", "Switch", ["exit", "p"]),
    ("then/cos", "Cos", ["branch:1"]),
    ("else/tanh", "Tanh", ["branch", "^p"]),
    ("join", "Merge", ["then/cos", "else/tanh"]),
    ("split", "Split", ["join"]),
    ("y", "AddV2", ["split:1", "k"]),
    ("Identity", "Identity", ["y"]),
]
SHAPE = {"dim": [{"size": "-1"}, {"size": "2"}]}


def write(folder, nodes=LOOP, constants=(1.0, 2.0), **attributes):
    folder.mkdir()
    weights = [{"name": n, "shape": [1], "dtype": "float32"} for n in "ck"]
    described = {
        "signature": {"inputs": {"X": {"name": "x:0", "dtype": "DT_FLOAT", "tensorShape": SHAPE}}},
        "modelTopology": {
            "node": [
                {"name": name, "op": op, "input": read, "attr": attributes}
                for name, op, read in nodes
            ]
        },
        "weightsManifest": [{"paths": ["weights.bin"], "weights": weights}],
    }
    (folder / "model.json").write_text(json.dumps(described))
    (folder / "weights.bin").write_bytes(np.float32(constants).tobytes())
    return folder


def test_inputs_have_names_dtypes_and_open_sizes(tmp_path):
    (found,) = tfjs_tensors.inputs(write(tmp_path / "m")).items()
    assert found[0] == "X"
    assert str(found[1]) == "float32[?, 2]"


def test_results_of_nodes_outside_of_loops_and_branches_are_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(
        tfjs_tensors.tfjs, "run", lambda path, feeds, names: {name: name for name in names}
    )
    path = write(tmp_path / "m")
    assert list(tfjs_tensors.tensors(path, {})) == ["exit", "p", "join", "split", "split:1", "y"]
    outputs, tensors = tfjs_tensors.outputs_and_tensors(path, {}, ["Y", "p"])
    assert (list(outputs), list(tensors)) == (["Y", "p"], ["exit", "join", "split", "split:1", "y"])


def _with(name, **changed):
    return [
        (n, changed.get("op", op), changed.get("read", read)) if n == name else (n, op, read)
        for n, op, read in LOOP
    ]


@pytest.mark.parametrize(
    ("changed", "text", "tensors"),
    [
        ({"nodes": _with("y", op="Sub")}, "the node AddV2 'y' is Sub", ("y",)),
        (
            {"nodes": _with("body/sin", op="Cos")},
            "the node Sin 'body/sin' is Cos",
            ("body/sin", "exit"),
        ),
        (
            {"nodes": _with("then/cos", op="Sin")},
            "the node Cos 'then/cos' is Sin",
            ("then/cos", "join"),
        ),
        (
            {"nodes": _with("y", read=["split", "k"])},
            "the node AddV2 'y': reads split, k in place of split:1, k",
            ("y",),
        ),
        (
            {"nodes": [n for n in LOOP if n[0] != "Identity"]},
            "the node Identity 'Identity' is missing",
            ("Identity",),
        ),
        (
            {"constants": (1.5, 2.0)},
            "the node Mul 'body/mul': the constant c differs",
            ("body/mul", "exit"),
        ),
        ({"constants": (1.0, np.nan)}, "the node Less 'p': the constant k differs", ("p",)),
        ({"T": 1}, "the node Placeholder 'x': the attribute T differs", ("x",)),
    ],
)
def test_a_difference_is_told_with_the_results_it_changes(tmp_path, changed, text, tensors):
    fresh = write(tmp_path / "fresh")
    first, *_ = tfjs_tensors.differences(write(tmp_path / "m", **changed), fresh)
    assert (first.text, first.tensors) == (text, tensors)


def test_a_note_of_the_optimiser_is_no_difference(tmp_path):
    assert not tfjs_tensors.differences(write(tmp_path / "m", _note=1), write(tmp_path / "fresh"))


def test_weights_with_fewer_bits_are_read(tmp_path):
    folders = [write(tmp_path / name) for name in ("m", "fresh")]
    for folder, last in zip(folders, (3, 4), strict=True):
        described = json.loads((folder / "model.json").read_text())
        for weight in described["weightsManifest"][0]["weights"]:
            weight["quantization"] = {"dtype": "uint8", "scale": 1.0, "min": 0.0}
        (folder / "model.json").write_text(json.dumps(described))
        (folder / "weights.bin").write_bytes(bytes([1, last]))
    texts = [each.text for each in tfjs_tensors.differences(*folders)]
    assert texts == [
        "the node Less 'p': the constant k differs",
        "the node AddV2 'y': the constant k differs",
    ]


def test_the_model_json_stands_for_its_folder(tmp_path):
    folder = write(tmp_path / "web")
    assert checks.folder_of_tfjs(folder / "model.json", None) == (folder, "tfjs")
    assert checks.folder_of_tfjs(folder / "model.json", "onnx")[1] == "onnx"
    assert checks.folder_of_tfjs(folder, None) == (folder, None)


def test_a_broken_model_is_refused(tmp_path):
    folder = write(tmp_path / "web")
    (folder / "model.json").write_text("not a model")
    (signature,) = signatures_of(np.sin, None, "2, 2")
    with pytest.raises(jax2tf.ExportError, match="cannot be read as 'tfjs'"):
        checks.interface(folder, "tfjs", signature)
