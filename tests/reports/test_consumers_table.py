"""The table of the engines."""

import pathlib
import re
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from harnesses.cell.names import CONSUMER_MODES
from limitations.ledger import Limitation
from reports import engine_rows
from reports.consumers import (
    ENVIRONMENTS,
    TABLE,
    command,
    consumer_files,
    contradictions,
    is_of_engines,
)
from tests.judge.rows import harness


def limitation(primitive, *modes, **fields):
    entry = {"where": "litert#1", "primitive": (primitive,), "expect": "error", "reason": "because"}
    return Limitation(**(entry | {"modes": modes} | fields))


DATABASE = [
    harness("sin", "float32"),
    harness("sin", "float32", "edge"),
    harness("cos", "int32"),
    harness("tan", "int32"),
    harness("sin", "bfloat16"),
]


def row(name, mode, outcome="pass", phase=None):
    versions = {"jax": "0.12.0", "tensorflow": "2.21.0", "python": "3.12.1"}
    seen = {"date": "2026-11-28", "commit": "7d40e7c"}
    return {"harness": name, "mode": mode, "outcome": outcome, "phase": phase} | versions | seen


def kept(*rows, before=None):
    return engine_rows.merged(before or {}, rows, DATABASE)


def test_the_table_counts_what_was_run():
    rows = kept(
        row("sin_float32", "litert"),
        row("sin_edge_float32", "litert", "mismatch"),
        row("cos_int32", "onnx", "error", "lower"),
        row("tan_int32", "onnx", "error", "trace"),
        row("sin_bfloat16", "litert"),
    )
    ledger = [limitation("cos", "onnx", exception="ONNXError")]
    files = consumer_files(DATABASE, ledger, rows)
    text = files[TABLE]
    assert "| sin | float32 |  | 1 of 2 |  |  |  |" in text
    assert "| cos | int32 |  |  | no |  |  |" in text
    assert "| all | 4 | not run | 1 of 2 (50.0%) | 0 of 1 (0.0%) | not run | not run |" in text
    assert "| tan |" not in text
    on = "| onnx | 0.12.0 | 2.21.0 | 3.12.1 | 2026-11-28 | 7d40e7c | 1 of 4 | 3 |"
    assert on in text
    assert "| savedmodel |  |  |  | never | unknown | 0 of 4 | 4 |" in text
    assert on in files["consumers_onnx.md"]
    assert "| cos | all | int32 | ONNXError | because |" in files["consumers_onnx.md"]
    assert "| cos |" not in files["consumers_litert.md"]
    assert "No run is kept." in files["consumers_savedmodel.md"]
    assert "None is declared." in files["consumers_savedmodel.md"]


def test_rows_of_loaded_files_stand_behind_those_of_engines():
    before = kept(row("sin_float32", "litert"))
    before["cells"]["sin_float32"] = before["cells"]["sin_float32"].rstrip(engine_rows.NOT_RUN)
    assert engine_rows.letter(before, "sin_float32", "stablehlo") == engine_rows.NOT_RUN
    after = kept(row("sin_float32", "stablehlo", "mismatch"), before=before)
    letters = [engine_rows.letter(after, "sin_float32", mode) for mode in ("litert", "stablehlo")]
    assert letters == [engine_rows.PASSED, "m"]


def test_a_limitation_has_the_dtypes_of_the_rows_that_failed():
    rows = kept(row("sin_float32", "litert", "mismatch"), row("sin_edge_float32", "litert"))
    ledger = [limitation("sin", "litert"), limitation("tan", "litert")]
    text = consumer_files(DATABASE, ledger, rows)["consumers_litert.md"]
    assert "| sin | all | float32 |" in text
    assert "| tan | all | not seen in the rows |" in text


def test_a_share_leaves_out_the_dtypes_that_an_engine_does_not_store():
    rows = kept(row("sin_float32", "litert"), row("sin_edge_float32", "litert", "error", "lower"))
    rows["dtypes"] = {"sin_edge_float32": "complex64 float32"}
    text = consumer_files(DATABASE, [], rows)[TABLE]
    assert "| all | 4 | not run | 1 of 1 (100.0%) | not run |" in text
    assert "| with dtypes that it does not store | | not run | 0 of 1 (0.0%) | not run |" in text
    assert "| both together | | not run | 1 of 2 (50.0%) | not run |" in text
    assert "| sin | float32 |  | 1 of 2 |  |  |  |" in text
    rows["dtypes"] = {"sin_edge_float32": "float16 float32"}
    text = consumer_files(DATABASE, [], rows)[TABLE]
    assert "| all | 4 | not run | 1 of 2 (50.0%) | not run |" in text


def test_other_dtypes_have_a_row_where_something_was_run():
    rows = kept(row("sin_bfloat16", "litert", "mismatch"), row("sin_bfloat16", "onnx", "error"))
    rows["dtypes"] = {"sin_bfloat16": "bfloat16"}
    text = consumer_files(DATABASE, [], rows)[TABLE]
    assert "| bfloat16 | 1 | not run | 0 of 1 (0.0%) | not run | not run | not run |" in text
    assert "| float16 |" not in text
    assert "Of other dtypes" not in consumer_files(DATABASE, [], kept())[TABLE]


def test_the_dtypes_of_what_harnesses_take_and_give():
    def halved(x):
        return x.astype(jnp.complex64), x > 0

    def of(fun, name):
        return SimpleNamespace(name=name, fun=fun, x64=False, make_args=lambda: (np.ones(2, "f4"),))

    harnesses = [of(halved, "halved"), of(jnp.sin, "sin")]
    assert engine_rows.dtypes_of(harnesses, ["float32", "bool"]) == {
        "halved": "bool complex64 float32"
    }
    gone = kept(before={"dtypes": {"gone_float32": "int8", "sin_float32": "int8"}})
    assert gone["dtypes"] == {"sin_float32": "int8"}


def test_a_later_row_takes_the_place_of_an_earlier_one():
    first = kept(row("sin_float32", "litert", "crash"), row("gone_float32", "litert"))
    assert first["cells"] == {"sin_float32": ".c..."}
    again = kept(row("sin_float32", "tfjs", "timeout"), row("sin_float32", "litert"), before=first)
    assert again["cells"] == {"sin_float32": ".p..t"}
    assert kept(row("sin_float32", "eager"), before=again)["cells"] == again["cells"]


def test_what_the_ledger_says_otherwise_than_a_row():
    rows = kept(row("sin_float32", "litert"), row("cos_int32", "onnx", "mismatch"))
    assert contradictions(rows, DATABASE, [limitation("sin", "litert")]) == [
        "sin_float32 litert: it passes, and the ledger declares a failure",
        "cos_int32 onnx: it fails, and the ledger has no entry",
    ]
    assert not contradictions(rows, DATABASE, [limitation("cos", "onnx")])


def test_what_speaks_of_engines_alone():
    assert is_of_engines(limitation("sin", *CONSUMER_MODES))
    assert not is_of_engines(limitation("sin", "litert", "eager"))
    assert not is_of_engines(limitation("sin"))


def test_every_engine_has_an_environment():
    assert sorted(sum(ENVIRONMENTS.values(), ())) == sorted(CONSUMER_MODES)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_tox_runs_what_the_table_says(environment):
    tox = (pathlib.Path(__file__).parents[2] / "tox.ini").read_text()
    of_environment = tox.split(f"[testenv:{environment}]\n")[1].split("\n[")[0]
    assert command(environment) in re.sub(r"\\\n\s*", "", of_environment)
