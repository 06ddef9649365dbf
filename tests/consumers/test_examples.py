"""The README's examples of engines run, and give what JAX gives."""

import pathlib
import re

import jax
import numpy as np

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = (
        README.read_text().split("## Engines that read TensorFlow graphs")[1].split("\n## ")[0]
    )
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL):
        exec(compile(code, str(README), "exec"), names)
    expected = np.asarray(jax.jit(names["model"])(names["x"]))
    for engine in ("litert", "onnx", "in_openvino"):
        np.testing.assert_allclose(names[engine], expected, rtol=1e-6)
