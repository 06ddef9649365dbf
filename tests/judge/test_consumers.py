"""The modes of engines: what they refuse, what they accept and object to, and who declares it."""

import importlib.util
import shutil
import subprocess

import pytest

from harnesses.cell.names import CONSUMER_MODES
from harnesses.engine.consumers import NEEDS, EngineError, check
from harnesses.engine.selection import Selection
from limitations.ledger import Limitation, file_of
from limitations.update import explain
from tests.judge.rows import error, harness, passing


def run(matrix, fake, *arguments, **ledger):
    made = matrix(fake, "--name=jit_float32", "--mode=savedmodel", *arguments, **ledger)
    (cell,) = made.cells.values()
    row, problem = made.run(cell)
    made.rows.append(row)
    return row, problem, made


def test_every_mode_is_an_engine():
    assert tuple(NEEDS) == CONSUMER_MODES


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match="--mode onnx: onnx_ir and onnxruntime cannot be impor"):
        check(Selection(mode=("onnx",), lowering=("no_xla",)))


@pytest.mark.parametrize(
    ("programs", "status", "words"),
    [
        ({}, 0, "--mode tfjs: there is no program node on the path; tox run -e tfjs installs"),
        ({"node": "/bin/node"}, 1, "--mode tfjs: node finds no package @tensorflow/tfjs "),
    ],
)
def test_an_engine_without_its_program(monkeypatch, programs, status, words):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(shutil, "which", programs.get)
    ended = subprocess.CompletedProcess([], status)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: ended)
    with pytest.raises(EngineError, match=words) as raised:
        check(Selection(mode=("tfjs",), lowering=("no_xla",)))
    assert "\n" not in str(raised.value)


def test_an_engine_with_its_program(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    ended = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: ended)
    check(Selection(mode=("tfjs",), lowering=("no_xla",)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode=litert"], "--mode litert reads standard ops alone: add --lowering no_xla"),
        (["--mode=savedmodel", "--device=gpu"], "--mode savedmodel runs on the CPU"),
    ],
)
def test_what_an_engine_cannot_be_asked(matrix, monkeypatch, arguments, words):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: name in NEEDS["litert"] or real(name)
    )
    with pytest.raises(EngineError, match=words):
        matrix("right", *arguments)


@pytest.mark.parametrize("lowering", ["xla", "no_xla"])
def test_a_saved_model_is_right_in_a_process_without_jax(matrix, lowering):
    row, problem, made = run(matrix, "right", "--impl=jax2tf", f"--lowering={lowering}")
    assert (row["outcome"], row["verdict"], problem) == ("pass", "ok", None), row["message"]
    assert made.finish() == []


def test_an_implementation_that_fails(matrix):
    row, problem, _ = run(matrix, "lowering", "--lowering=no_xla")
    assert (row["outcome"], row["phase"], row["verdict"]) == ("error", "lower", "red")
    assert "no such lowering" in problem


def test_a_limitation_of_other_modes_says_nothing_about_an_engine():
    row = error(harness("sin", "float32"), "litert", lowering="no_xla")
    entry = {"where": "elementwise#1", "primitive": ("sin",), "expect": "error", "reason": "it is"}
    assert not Limitation(**entry).matches(row)
    assert Limitation(**entry, modes=("litert",)).matches(row)
    # What JAX itself cannot run, no engine is asked about.
    assert Limitation(**entry, side="jax").matches(row)


def test_a_new_entry_names_its_engine_and_goes_to_its_file():
    sin, cos = harness("sin", "float32"), harness("cos", "float32")
    failing = error(sin, "litert", lowering="no_xla")
    (entry,) = explain([failing], [failing, passing(cos, "litert", lowering="no_xla")])
    assert (entry.family, entry.modes) == ("litert", ("litert",))
    assert entry.matches(failing)
    assert file_of(passing(sin)) == "elementwise"
