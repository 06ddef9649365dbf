"""Whole models as files of ONNX and of LiteRT where TensorFlow is not installed."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from tests.consumers.models import without_tensorflow

ROOT = pathlib.Path(__file__).parents[2]


def errors_of(folder, suffix):
    """The error of each export in one process."""
    command = [sys.executable, "-m", without_tensorflow.__name__, str(folder), suffix]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    told = map(json.loads, done.stdout.splitlines())
    return {(name, is_open): error for name, is_open, error in told}


@pytest.fixture(scope="module")
def of_onnx(tmp_path_factory):
    return errors_of(tmp_path_factory.mktemp("files"), ".onnx")


@pytest.fixture(scope="module")
def of_litert(tmp_path_factory):
    return errors_of(tmp_path_factory.mktemp("files"), ".tflite")


@pytest.mark.parametrize(("name", "is_open"), without_tensorflow.cases(".onnx"))
def test_onnx_runtime_gives_what_jax_gives(of_onnx, name, is_open):
    assert of_onnx[name, is_open] == ""


@pytest.mark.parametrize(("name", "is_open"), without_tensorflow.cases(".tflite"))
def test_litert_gives_what_jax_gives(of_litert, name, is_open):
    assert of_litert[name, is_open] == ""
