"""The programs of docs/examples/ run as they are, and do what they say."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "docs/examples"


def program(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tour(tmp_path, monkeypatch):
    """The README shows its table. The file for ONNX Runtime is tested beside others of its kind."""
    tour = program("tour")
    monkeypatch.delitem(tour.FILES, "classifier.onnx")
    check_tour(tour, tmp_path)


def check_tour(tour, folder):
    """Runs the tour and holds what came of each file against the README."""
    readme = (FOLDER.parents[1] / "README.md").read_text()
    row = r"^ +(classifier\S*) +(\w.*?)  +(\d+) +(\d+) +(\S+)$"
    shown = {name: row for name, *row in re.findall(row, readme, flags=re.MULTILINE)}
    results = tour.main(folder)
    assert [result.path.name for result in results] == list(tour.FILES)
    for result in results:
        engine, ops, kilobytes, _ = shown[result.path.name]
        assert tour.FILES[result.path.name] == engine
        assert result.ops == int(ops)
        assert result.size == pytest.approx(1000 * int(kilobytes), rel=0.1)
        assert len(result.verified) == 2
        assert all(d < 1e-6 for outputs in result.differences.values() for d in outputs.values())
    page = (folder / "model.html").read_text()
    assert "litert" in page
    assert "tour.py" in page


def test_image_classifier(tmp_path):
    difference, before, after = program("image_classifier").main(str(tmp_path))
    assert difference < 1e-5
    assert before < 0.7
    assert after > 0.9


def test_ode_in_saved_model(tmp_path):
    difference, before, after = program("ode_in_saved_model").main(str(tmp_path))
    assert difference < 1e-4
    assert after < before / 10


def test_finetune_saved_model(tmp_path):
    first, frozen, tuned = program("finetune_saved_model").main(str(tmp_path))
    assert frozen < 0.8 * first
    assert tuned < 0.8 * frozen


def test_language_model(tmp_path):
    """LiteRT, with its cache, writes what JAX writes."""
    in_litert, in_jax, result = program("language_model").main(str(tmp_path))
    assert in_litert == in_jax
    assert len(set(in_jax)) > 3
    assert list(result.signatures) == ["prefill", "decode"]


def test_text_classifier(tmp_path):
    in_jax, saved = program("text_classifier").main(str(tmp_path))
    assert in_jax == saved > 0.8


def test_first_steps(capsys):
    """The cells of the notebook, in their order; it holds no results of another run."""
    notebook = json.loads((FOLDER / "first_steps.ipynb").read_text(encoding="utf-8"))
    names: dict = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    printed = capsys.readouterr().out
    assert printed.count("largest difference to JAX") == 5
    assert "after 20 steps of TensorFlow" in printed


def test_converter_under_the_judge(tmp_path):
    """The bug is found, the primitive without a rule too, and nothing else."""
    rows = tmp_path / "rows.jsonl"
    done = subprocess.run(
        [sys.executable, FOLDER / "converter_under_the_judge.py", "-n0", f"--results={rows}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-3000:]
    assert "no rule for sinh" in done.stdout
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    red = {
        (row["primitive"], row["dtype"], row["outcome"])
        for row in found
        if row.get("verdict") == "red"
    }
    assert red == {
        ("sinh", "float16", "error"),
        ("sinh", "float32", "error"),
        ("tanh", "float16", "mismatch"),
    }
    passed = {row["primitive"] for row in found if row.get("verdict") != "red"}
    assert {"abs", "tanh"} <= passed


# What needs an engine or another backend of Keras is tested beside others of its kind.
ELSEWHERE = (
    "consumers/test_examples.py",
    "ecosystem/test_keras.py",
    "fleet/test_examples.py",
)


def test_every_program_is_tested_and_listed():
    programs = {path.stem for path in FOLDER.iterdir() if path.suffix in (".py", ".ipynb")}
    here = pathlib.Path(__file__)
    tests = "".join(file.read_text() for file in (here, *map(here.parent.joinpath, ELSEWHERE)))
    tested = set(re.findall(r"^def test_(\w+)\(", tests, flags=re.MULTILINE))
    listed = (FOLDER.parent / "examples.md").read_text()
    assert programs <= tested
    assert all(re.search(rf"examples/{name}\.(py|ipynb)", listed) for name in programs)
