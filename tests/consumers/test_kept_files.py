"""Kept files of TensorFlow.js give the numbers that they gave; files are the same bytes twice."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types

import pytest

from jax2tf._src.export import packages, tfjs
from tests import files


@pytest.mark.parametrize(
    "file", sorted(files.FOLDER.glob("*/model.tfjs")), ids=lambda file: file.parent.name
)
def test_tfjs_gives_its_numbers(file):
    values = files.values(file.parent)
    signature = types.SimpleNamespace(name="serving_default")
    outputs = {"serving_default": list(values["model"])}
    run = tfjs.load(file, types.SimpleNamespace(signatures=[signature], outputs=outputs))
    files.assert_gives(lambda x: run("serving_default", x), values["inputs"], values["model"])


_EXPORT = """
import sys
import jax2tf
import numpy as np

def dense(w, x):
    return {"y": x @ w, "rows": x.sum(axis=1)}

w = np.arange(12, dtype=np.float32).reshape(4, 3)
for name in sys.argv[2:]:
    jax2tf.export(dense, w, "b, 4", f"{sys.argv[1]}/{name}", verify=False, progress=False)
"""


def test_the_same_bytes_in_another_process(tmp_path):
    """With other seeds of Python's hashes, which order its sets, and in other folders."""
    names = ["model", "model.tflite", "model.onnx", "model.xml"]
    if packages.is_installed("tensorflowjs"):
        names.append("model.tfjs")
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", _EXPORT, tmp_path / seed, *names],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
    first, second = (contents_of(tmp_path / seed) for seed in ("1", "2"))
    assert len(first) >= 9
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []


def contents_of(folder: pathlib.Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
