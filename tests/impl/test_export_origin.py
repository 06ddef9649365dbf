"""What a file says of itself: versions, line, commit, the largest difference."""

from __future__ import annotations

import functools
import importlib.util
import subprocess

import jax
import numpy as np
import onnx
import onnxruntime
import pytest

from jax2tf._src.export import origin
from jax2tf._src.export.signatures import signatures_of
from tests.impl.export_programs import PARAMS, X, export, mlp

SOURCE = """
class Doubled:
    def __call__(self, x):
        return x + x

    def method(self, x):
        return x


def double(x):
    return x + x
"""


@pytest.fixture
def module(tmp_path):
    """A module in a folder of its own."""
    (tmp_path / "nets").mkdir()
    file = tmp_path / "nets/net.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("net", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said_of(fun):
    said = origin.metadata_of(signatures_of(fun, None, ":float32"), ["onnx", "absent_package"])
    assert said["onnx"] == onnx.__version__
    assert "absent_package" not in said
    return said


def git(folder, *words):
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", folder, *settings, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_line_and_commit(module, tmp_path):
    """Untracked, committed, and changed since."""
    said = said_of(module.double)
    assert said["line"] == "net.py:10"
    assert "commit" not in said
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "nets")
    git(tmp_path, "commit", "--quiet", "--message", "A net")
    commit = git(tmp_path, "rev-parse", "HEAD")
    said = said_of(module.double)
    assert (said["line"], said["commit"]) == ("nets/net.py:10", commit)
    (tmp_path / "nets/net.py").write_text(SOURCE + "\n")
    assert said_of(module.double)["commit"] == f"{commit}-dirty"


def test_the_line_of_other_callables(module):
    """What wraps a function has the line of the function."""
    for fun in (jax.jit(module.double), functools.partial(module.double)):
        assert said_of(fun)["line"] == "net.py:10"
    assert said_of(module.Doubled())["line"] == "net.py:3"
    assert said_of(module.Doubled().method)["line"] == "net.py:6"


def test_functions_without_a_file():
    names: dict = {}
    exec("def of_a_prompt(x):\n    return x", names)
    assert "line" not in said_of(names["of_a_prompt"])
    assert "line" not in said_of(np.sin)


@pytest.mark.parametrize(
    ("differences", "text"),
    [
        ({"f": {"y": 1.01e-7, "z": 0.0}, "g": {"y": 3e-9}}, "2e-07"),
        ({"f": {"y": 0.0}}, "0.0"),
        ({"f": {}}, "0.0"),
        ({"f": {"y": 41.0}}, "50.0"),
    ],
)
def test_the_largest_difference(differences, text):
    assert origin.said(differences) == {"largest_difference": text}


def test_a_file_holds_it(tmp_path):
    """The file is verified before it is added, and runs with it."""
    expected = jax.jit(mlp)(PARAMS, X)["y"]
    result = export(mlp, PARAMS, "b, 4", tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(result.path)
    onnx.checker.check_model(str(result.path), full_check=True)
    said = session.get_modelmeta().custom_metadata_map
    assert said["source"] == f"{mlp.__module__}:mlp"
    largest = result.differences["serving_default"]["y"]
    assert largest <= float(said["largest_difference"]) <= 2 * largest
    np.testing.assert_allclose(session.run(["y"], {"x": X})[0], expected, rtol=1e-5, atol=1e-6)
