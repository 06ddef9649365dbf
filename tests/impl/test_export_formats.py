"""What the formats of other engines need, without those engines."""

from __future__ import annotations

import os
import sys
import textwrap
import types

import numpy as np
import pytest

import jax2tf
from jax2tf._src.export import formats, packages


@pytest.mark.parametrize("broken", [types.ModuleType("onnx"), None])
def test_what_stands_in_a_package_s_place_is_no_package(broken, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", broken)
    with pytest.raises(jax2tf.MissingPackageError, match="needs the package onnx"):
        packages.require(["onnx"], "writing it")


def test_all_packages_that_are_missing_are_named_at_once(monkeypatch):
    for name in ("tensorflow", "onnx_ir", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        jax2tf.MissingPackageError,
        match=r"needs the packages tensorflow and onnx and onnx_ir, which are not installed. What "
        r"to do: install them with pip install tensorflow, .* and the extra `onnx` \(pip [^)]*\)$",
    ):
        packages.require(["tensorflow", "numpy", "onnx", "onnx_ir"], "writing it")


def test_what_node_js_is_asked_and_answers(tmp_path, monkeypatch):
    """A program in Node.js's place doubles what it is given, and refuses what has no elements."""
    node = tmp_path / "node"
    node.write_text(
        textwrap.dedent(f"""\
        #!{sys.executable}
        import base64, json, struct, sys
        request = json.load(sys.stdin)
        (x,) = request["inputs"].values()
        content = base64.b64decode(x["content"])
        if not content:
            sys.exit("nothing is there: \u00fc")
        numbers = struct.unpack("<6f", content)
        x["content"] = base64.b64encode(struct.pack("<6f", *(2 * n for n in numbers))).decode()
        print(json.dumps({{name: x for name in request["outputs"]}}))
        """)
    )
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    signature = types.SimpleNamespace(name="serving_default")
    job = types.SimpleNamespace(signatures=[signature], outputs={"serving_default": ["y"]})
    run = formats.tfjs.load(tmp_path, job)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    answer = run("serving_default", {"x": x})
    np.testing.assert_array_equal(answer["y"], 2 * x, strict=True)
    with pytest.raises(jax2tf.ExportError, match=r"TensorFlow\.js: nothing is there: \u00fc$"):
        run("serving_default", {"x": x[:0]})
