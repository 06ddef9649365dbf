"""`python -m jax2tf supports` answers from the data of the package, with reasons and remedies."""

import fnmatch
import importlib.resources
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jax2tf.__main__ import main
from jax2tf._src.explain import known, supports
from jax2tf._src.explain.report import Limitation
from jax2tf._src.targets.by_name import TARGETS

DATA = {
    "columns": ["eager", "graph", "compiled", "gradient", "litert", "onnx"],
    "seen": {
        "litert": {
            "jax": "0.12.0",
            "tensorflow": "2.21.0",
            "date": "2026-11-28",
            "commit": "7d40e7c",
            "since": 7,
        },
        "onnx": {
            "jax": "0.12.0",
            "tensorflow": "2.21.0",
            "date": "2026-11-28",
            "commit": "unknown; kept since 7d40e7c",
        },
    },
    "uses": {
        "cumsum": {
            "bfloat16": "4 4 4 4 1/3/4 x",
            "float32": "4 4 4 4 4 0/4",
            "int32": "4 4 4 - . .",
        },
        "jax.numpy.cumsum": {"float32": "1 1 1 1 1 1"},
        "jax.numpy.cumprod": {"float32": "1 1 1 1 1 1"},
    },
}
REASON = "LiteRT adds in another order"


@pytest.fixture
def made_up(monkeypatch):
    entries = [
        (Limitation("cumsum", ("bfloat16",), "mismatch", REASON), frozenset({"litert"})),
        (Limitation("cumsum", ("float32",), "error", "ONNX Runtime has none"), frozenset({"onnx"})),
    ]
    monkeypatch.setattr(supports, "_data", lambda: DATA)
    monkeypatch.setattr(known, "_ledger", lambda: entries)


@pytest.fixture
def run(made_up, capsys):
    def call(line: str) -> tuple[int, str]:
        status = main(["supports", *line.split()])
        said = capsys.readouterr()
        return status, said.out + said.err

    return call


def test_what_passes_in_part_comes_with_the_reason_and_what_to_do(run):
    status, said = run("cumsum --dtype bfloat16 --target litert")
    assert status == 0
    assert said.splitlines()[:5] == [
        "cumsum of bfloat16 in litert: in part: 1 of 3 uses give JAX's result; 1 more did not run",
        "  seen: 2026-11-28, JAX 0.12.0, TensorFlow 2.21.0, commit 7d40e7c; 7 harnesses came since",
        f"  why (litert): {REASON} (mismatch)",
        "  do: use a dtype that litert takes whole: float32",
        "  do: use a target that takes bfloat16 whole: xla",
    ]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (
            "cumsum --dtype float32 --target litert",
            "cumsum of float32 in litert: yes: 4 uses give JAX's result",
        ),
        (
            "cumsum --dtype float32 --target onnx",
            "cumsum of float32 in onnx: no: 0 of 4 uses give JAX's result",
        ),
        (
            "cumsum --dtype bfloat16 --target onnx",
            "cumsum of bfloat16 in onnx: not stored: the engine has no arrays of this dtype",
        ),
        ("cumsum --dtype int32 --target litert", "cumsum of int32 in litert: not run"),
        (
            "cumsum --dtype int32 --target gradient",
            "cumsum of int32 in gradient: no gradient: the dtype has none",
        ),
        (
            "jnp.cumsum --dtype float32 --target litert",
            "jax.numpy.cumsum of float32 in litert: yes: 1 use gives JAX's result",
        ),
    ],
)
def test_the_first_line_is_the_answer(run, line, first):
    status, said = run(line)
    assert status == 0
    assert said.splitlines()[0] == first


def test_a_row_without_an_entry_of_the_ledger_is_told_as_such(run, monkeypatch):
    monkeypatch.setattr(known, "_ledger", lambda: [])
    _, said = run("cumsum --dtype float32 --target onnx")
    assert "  why (onnx): the row that is kept failed; no reason is declared" in said


def test_bfloat16_that_an_engine_does_not_store_can_be_widened(run):
    _, said = run("cumsum --dtype bfloat16 --target onnx")
    assert "do: jax2tf.export(..., widen_bfloat16=True)" in said


def test_without_a_dtype_and_a_target_all_are_told(run):
    status, said = run("cumsum")
    assert status == 0
    lines = said.splitlines()
    assert lines[0] == "cumsum"
    litert = lines.index("  litert")
    assert lines[litert + 1 : litert + 5] == [
        "    yes: float32",
        "    in part: 1 of 3 uses give JAX's result; 1 more did not run: bfloat16",
        "    not run: int32",
        "",
    ]
    why = lines[lines.index("Why") : lines.index("Seen")]
    assert f"  (litert): {REASON} (mismatch)" in why


def test_columns_with_one_answer_or_one_run_stand_together(run):
    _, said = run("cumsum")
    lines = said.splitlines()
    answers, seen = lines[: lines.index("Why")], lines[lines.index("Seen") + 1 :]
    heads = [line.strip() for line in answers[1:] if line and not line.startswith("    ")]
    every = [column for columns in supports._COLUMNS.values() for column in columns]
    assert sorted(", ".join(heads).split(", ")) == sorted(every)
    assert len(seen) == len({line.partition(": ")[2] for line in seen})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cumsm", "no harness is of a primitive or function 'cumsm'; near are cumsum"),
        ("cumprod", "'cumprod'; near are "),
        ("jnp.cumsm", "near are jax.numpy.cumsum"),
        ("qqqq", "'qqqq'; python -m jax2tf supports --list has all"),
        (
            "cumsum --dtype float33",
            "there is no dtype 'float33'; those are bfloat16, float32, int32",
        ),
        (
            "jnp.cumsum --dtype int32",
            "no harness is of jax.numpy.cumsum of int32; those are of float32",
        ),
        (
            "cumsum --target lite",
            "there is no target 'lite'; those are xla, savedmodel, gradient, poly, tensorflow",
        ),
        ("--dtype float32", "give a NAME, as cumsum or jax.numpy.cumsum, or --list"),
    ],
)
def test_unknown_names_are_told_with_those_that_there_are(run, line, words):
    status, said = run(line)
    assert status == 1
    assert words in said
    assert said.startswith("python -m jax2tf supports: jax2tf: ")
    assert said.count("\n") == 1


def test_a_name_without_a_module_leads_to_the_function(run):
    assert "jax.numpy.cumprod" in run("cumprod")[1]


def test_all_names_are_listed(run):
    assert run("--list") == (0, "cumsum\njax.numpy.cumsum\njax.numpy.cumprod\n")


# --- The real data --------------------------------------------------------------------------


def test_the_package_carries_what_the_command_reads():
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    table = tomllib.loads(pyproject.read_text())["tool"]["setuptools"]["package-data"]
    folder = importlib.resources.files("jax2tf._src.explain")
    for name in ("support.json", "limitations.json"):
        assert (folder / name).is_file()
        path = f"_src/explain/{name}"
        assert any(fnmatch.fnmatch(path, pattern) for pattern in table["jax2tf"])


def test_every_target_has_an_answer():
    said = supports.answer("cumsum", "float32", list(TARGETS))
    for target in TARGETS:
        assert f"in {target if target != 'xla' else 'eager'}: " in said


def test_what_fails_has_a_reason():
    """Each count below a whole, of the columns that one engine or op set has."""
    without = [
        str((name, dtype, target))
        for name, of_dtypes in supports._data()["uses"].items()
        for dtype in of_dtypes
        for target in ("tensorflow", "litert", "onnx", "openvino", "tfjs", "gradient", "poly")
        for support in supports._supports(name, dtype, target)
        if not support.words and support.passed < support.ran
        if not supports._limitations(name, support)
    ]
    # Rows that are kept and failed before the ledger could say why.
    assert set(without) <= {
        "('dce_sink', 'float32', 'tfjs')",
        "('random', 'int32', 'onnx')",
    }


def test_the_command_runs_outside_of_the_repository(tmp_path):
    line = ["-m", "jax2tf", "supports", "cumsum", "--dtype", "bfloat16", "--target", "litert"]
    ran = subprocess.run([sys.executable, *line], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("cumsum of bfloat16 in litert: ")
