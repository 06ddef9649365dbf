"""The guide's examples of engines run, and give what JAX gives; so do programs of docs/examples."""

import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys

import jax
import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/engines.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


def run(code, names):
    exec(compile(code, "engines.md", "exec"), names)


def expected(names):
    return np.asarray(jax.jit(names["model"])(names["x"]))


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in blocks("python"):
        run(code, names)
    for engine in ("litert", "onnx", "in_openvino"):
        np.testing.assert_allclose(names[engine], expected(names), rtol=1e-6)


def test_the_example_of_tfjs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    run(blocks("python")[0], names)
    (command,) = re.findall(r"^    python (-m harnesses.*)$", GUIDE, flags=re.MULTILINE)
    subprocess.run([sys.executable, *shlex.split(command)], check=True)
    (program,) = blocks("js")
    answer = subprocess.run(
        ["node", "--eval", program], check=True, capture_output=True, text=True
    ).stdout
    result = json.loads(answer.strip().splitlines()[-1])
    np.testing.assert_allclose(result, expected(names), rtol=1e-6)


def test_speech_front_end(tmp_path):
    """A higher tone is loudest in a higher band."""
    path = ROOT / "docs/examples/speech_front_end.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    difference, bands = program.main(str(tmp_path))
    assert difference < 5e-3
    assert bands == sorted(set(bands))
