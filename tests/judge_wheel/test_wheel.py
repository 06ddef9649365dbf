"""The judge from its wheel, where neither TensorFlow nor this repository can be imported."""

import base64
import gzip
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# A converter that compiles by JAX, and refuses one primitive.
CONVERTER = """
import jax
from jax2tf_judge import Converter


class MyConverter(Converter):
    distributions = ("jax",)

    def convert(self, fun, args):
        if "cumsum" in str(jax.make_jaxpr(fun)(*args)):
            raise NotImplementedError("no cumsum")
        return jax.jit(fun).lower(*args).compile()

    def call(self, model, args):
        return model(*args)
"""
TESTS = """
from jax2tf_judge import Suite
from my_converter import MyConverter

suite = Suite(MyConverter, names=["cumsum_*float32", "cummax_*int32"], expected=EXPECTED)
test_harness = suite.test()
"""
NAMES = ["--name", "cumsum_*float32", "--name", "cummax_*int32"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_converter.py").write_text(textwrap.dedent(CONVERTER))
    return tmp_path


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def judged(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    impl = ["--impl", "my_converter:MyConverter"]
    return ran(folder, "jax2tf_judge", "run", *impl, *NAMES, "-n0", *words)


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", ["tensorflow", "jax2tf", "harnesses", "limitations", "reports"])
def test_it_needs_neither_tensorflow_nor_the_repository(name):
    assert importlib.util.find_spec(name) is None


def test_rows_are_in_the_users_folder_and_name_the_version_of_the_database(folder):
    assert judged(folder).returncode == 1
    (file,) = (folder / "judge_results" / "runs").glob("*.jsonl")
    outcomes = {row["primitive"]: row["outcome"] for row in rows(file)}
    assert outcomes == {"cumsum": "error", "cummax": "pass"}
    version = importlib.metadata.version("jax2tf-judge")
    assert {row["database"] for row in rows(file)} == {version}


def test_the_line_under_a_failure_repeats_it(folder):
    said = judged(folder).stdout
    # Before it may stand variables of the environment, such as JAX_PLATFORMS=cpu.
    line = next(line for line in said.splitlines() if "python -m " in line)
    again = ran(folder, *line.partition("python -m ")[2].split())
    assert again.returncode == 1
    assert "1 cells asked for, 1 ran (1 error), 1 red" in again.stdout


def test_a_ledger_of_the_users_own_explains_failures(folder):
    judged(folder, "--results", "mine.jsonl")
    update = ran(folder, "jax2tf_judge.limitations", "update", "--results", "mine.jsonl")
    assert update.returncode == 0, update.stderr
    ledger = folder / "judge_ledgers" / "my_converter:MyConverter"
    assert "no cumsum" in (ledger / "cumulative.toml").read_text()
    assert judged(folder).returncode == 0


def test_a_ledger_that_came_with_the_judge_is_not_rewritten(folder):
    judged(folder, "--results", "mine.jsonl")
    lines = (folder / "mine.jsonl").read_text().replace("my_converter:MyConverter", "jax2onnx")
    (folder / "mine.jsonl").write_text(lines)
    update = ran(folder, "jax2tf_judge.limitations", "update", "--results", "mine.jsonl")
    assert update.returncode == 1
    assert "came with the judge and is not rewritten" in update.stderr


def test_results_become_a_page(folder):
    judged(folder, "--results", "mine.jsonl")
    page = ran(folder, "jax2tf_judge.reports", "html", "mine.jsonl", "--into", "page.html")
    assert page.returncode == 0, page.stderr
    (data,) = re.findall(r'id="data"[^>]*>([^<]+)<', (folder / "page.html").read_text())
    assert b"cummax" in gzip.decompress(base64.b64decode(data))


def test_commands_about_the_projects_own_tables_are_left_out(folder):
    told = ran(folder, "jax2tf_judge.reports", "--help").stdout
    assert "summary" in told
    assert "consumers" not in told


def suite(folder: Path, expected: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(TESTS.replace("EXPECTED", expected))
    return ran(folder, "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")


def test_a_suite_has_a_test_for_each_harness_and_tells_how_to_repeat_one(folder):
    run = suite(folder, "None")
    assert run.returncode == 1
    line = next(line for line in run.stdout.splitlines() if "python -m pytest '" in line)
    test = line.partition("'")[2].rstrip("'")
    again = ran(folder, "pytest", "-q", "-p", "no:cacheprovider", test)
    assert "1 failed" in again.stdout


def test_what_a_suite_expects_to_fail_is_proved_both_ways(folder):
    judged(folder, "--results", "mine.jsonl")
    given = ["--results", "mine.jsonl", "--ledger", "expected"]
    assert ran(folder, "jax2tf_judge.limitations", "update", *given).returncode == 0
    file = '"expected/cumulative.toml"'
    run = suite(folder, file)
    assert run.returncode == 0, run.stdout
    assert "xfailed" in run.stdout
    source = folder / "my_converter.py"
    source.write_text(source.read_text().replace('"cumsum" in', '"nothing" in'))
    run = suite(folder, file)
    assert run.returncode == 1
    assert "but it passes" in run.stdout


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("object", "converter should be a class that is a jax2tf_judge."),
        ("MyConverter, families='sorting'", "got the text 'sorting'"),
        ("MyConverter, names=['nothing']", "no harness is left by"),
    ],
)
def test_bad_arguments_of_a_suite_are_told(folder, given, error):
    code = f"from my_converter import *; from jax2tf_judge import Suite; Suite({given})"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 1
    assert error in run.stderr
