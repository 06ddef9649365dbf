"""Which operation makes an engine's mismatch: what the table says, and what it says is missing."""

import pytest

from harnesses.harness import all_harnesses
from limitations.ledger import Limitation
from reports import engine_culprits, rendering

RUN = {
    **{"jax": "0.12.0", "tensorflow": "2.21.0", "python": "3.12.1", "processor": None},
    **{"date": "2026-11-30", "commit": "abc1234", "impl": "jax2tf"},
}


def limitation(primitive, number, **changed):
    given = {"modes": ("litert",), "expect": "mismatch", "reason": f"LiteRT's {primitive} is off"}
    return Limitation(where=f"litert#{number}", primitive=(primitive,), **(given | changed))


def row(harness, primitive, party="the engine's kernel", how="locate"):
    return {
        **{"engine": "litert", "harness": harness, "outcome": "mismatch", "message": "nan"},
        **{"primitives": [primitive], "party": party, "how": how, "why": "1 | 2"},
    }


@pytest.fixture(scope="module")
def section():
    harnesses = [h for h in all_harnesses() if h.name in ("sin_float32", "tanh_float32")]
    data = {"engines": {"litert": {**RUN, "rows": [row("sin_float32", "mul")]}}}
    limitations = [
        limitation("sin", 1),
        limitation("tanh", 2),
        limitation("tanh", 3, jax=">=99"),
        limitation("cos", 4, modes=("onnx",)),
    ]
    table = engine_culprits.table(data, limitations, harnesses)
    return dict(part.split("\n", 1) for part in table.split("\n## ")[1:])


def test_a_limitation_has_the_culprit_of_its_cell(section):
    (line,) = (x for x in section["LiteRT"].splitlines() if "`sin_float32`" in x)
    assert line.startswith("| mul | the engine's kernel | locate | 1 \\| 2 |")
    assert "LiteRT's sin is off" in line


def test_limitations_without_a_culprit_are_named(section):
    # That of another version of JAX says nothing about this run.
    assert "1 of 2 limitations" in section["LiteRT"]
    assert "- litert#2: LiteRT's tanh is off" in section["LiteRT"]
    assert "litert#3" not in section["LiteRT"]


def test_an_engine_without_a_run_says_so(section):
    assert section["OpenVINO"].strip() == "No run is kept."


def test_the_projects_table_speaks_of_each_engine():
    data = rendering.read_data(engine_culprits.NAME)
    assert set(data["engines"]) <= set(engine_culprits.ENGINES)
    rows = [row for engine in data["engines"].values() for row in engine["rows"]]
    assert all(row["outcome"] == "mismatch" and row["primitives"] for row in rows)
