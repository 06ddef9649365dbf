"""Models of JAX's frameworks as files of ONNX where TensorFlow is not installed."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from tests.zoo import without_tensorflow

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The error of each export in one process."""
    folder = tmp_path_factory.mktemp("files")
    command = [sys.executable, "-m", without_tensorflow.__name__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    told = map(json.loads, done.stdout.splitlines())
    return {(name, is_open): error for name, is_open, error in told}


@pytest.mark.parametrize(("name", "is_open"), without_tensorflow.cases())
def test_onnx_runtime_gives_what_jax_gives(errors, name, is_open):
    assert errors[name, is_open] == ""
