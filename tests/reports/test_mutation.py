"""The mutation score: its table, and what is written by hand for it, which has to be current."""

import collections
import tomllib
from pathlib import Path

import pytest

from reports.mutation import table

ROOT = table.PACKAGE.parents[1]
PARTS = Path(table.__file__).with_name("parts.toml")

DATA = {
    "jax": "0.12",
    "tensorflow": "2.21",
    "python": "3.12",
    "seed": 16,
    "sample": 12,
    "seconds": 3.1,
    "modules": {"_src/dims/checks.py": [3, 0], "_src/lowering/rules/arrays.py": [7, 2]},
    "survivors": [
        {
            "mutant": f"_src/lowering/rules/arrays.py:{before}",
            "module": "_src/lowering/rules/arrays.py",
            "function": "_pad",
            "line": 7,
            "before": before,
            "after": "x | 2",
        }
        for before in ("x + 1", "x + 2")
    ],
}
KNOWN = table.Equivalent("_src/lowering/rules/arrays.py", "_pad", "x + 2", "x | 2", "x is even")


def test_each_module_has_its_tests():
    parts = tomllib.loads(PARTS.read_text())
    modules = {path.relative_to(table.PACKAGE).as_posix() for path in table.PACKAGE.rglob("*.py")}
    assert parts.keys() == modules
    for module, names in parts.items():
        assert names, module
        for name in names:
            assert (ROOT / "tests" / name).is_file(), f"{module}: {name}"


def test_what_is_explained_is_still_in_the_code():
    entries = table.equivalents()
    gone = [f"{e.module} {e.function}: {e.before}" for e in entries if not e.still_there]
    assert not gone
    places = collections.Counter((e.module, e.function, e.before, e.after) for e in entries)
    assert max(places.values(), default=1) == 1


@pytest.mark.parametrize(
    ("function", "line", "there"),
    [
        ("equivalents", "return found", True),
        ("Equivalent.still_there", "@property", True),
        ("Equivalent", "reason: str", True),
        ("", 'NAME = "mutation"', True),
        ("equivalents", "return lines", False),
        ("no_such_function", "return found", False),
    ],
)
def test_a_line_is_looked_for_in_its_function(monkeypatch, function, line, there):
    monkeypatch.setattr(table, "PACKAGE", Path(table.__file__).parent)
    assert table.Equivalent("table.py", function, line, "", "why").still_there is there
    assert not table.Equivalent("no_such.py", function, line, "", "why").still_there


def test_an_explanation_needs_a_reason(tmp_path):
    path = tmp_path / "equivalent.toml"
    path.write_text(
        '[[equivalent]]\nmodule = "a.py"\nfunction = "f"\nbefore = "x"\nafter = "y"\nreason = " "\n'
    )
    with pytest.raises(ValueError, match=r"equivalent\.toml: a\.py 'x' has no reason"):
        table.equivalents(path)


def test_a_row_that_an_entry_explains(monkeypatch):
    monkeypatch.setattr(table, "equivalents", lambda: [KNOWN])
    row = dict.fromkeys(("mutant", "line")) | {"module": KNOWN.module, "function": KNOWN.function}
    assert table.is_explained(row | {"diff": ["-    x + 2", "+    x | 2"]})
    assert not table.is_explained(row | {"diff": ["-    x + 2", "+    x | 3"]})


def test_the_table_counts_what_was_caught(monkeypatch):
    monkeypatch.setattr(table, "equivalents", lambda: [KNOWN])
    text = table.files(DATA)["mutation.md"]
    assert "| 10 | 8 | 1 | 1 | 88.9% |" in text
    assert "**Incomplete**: these are the first 10 of a sample of 12." in text
    assert "Incomplete" not in table.files(DATA | {"sample": 10})["mutation.md"]
    assert "| _src/dims/checks.py | 3 | 3 | 0 | 0 |" in text
    assert "| _src/lowering/rules/arrays.py | 7 | 5 | 1 | 1 |" in text
    survived, equivalent = text.split("## Equivalent")
    assert (
        "| _src/lowering/rules/arrays.py _pad | `x + 1` | `x \\| 2` "
        "| `_src/lowering/rules/arrays.py:x + 1` |" in survived
    )
    assert "| _src/lowering/rules/arrays.py _pad | `x + 2` | `x \\| 2` | x is even |" in equivalent
    assert "x + 2" not in survived
    assert [row["before"] for row in table.unexplained(DATA)] == ["x + 1"]


def test_what_is_kept_of_rows():
    rows = [
        {
            "mutant": f"a.py:{outcome}",
            "module": "a.py",
            "function": "f",
            "line": 3,
            "diff": ["-    x + 1", "+    x - 1"],
            "outcome": outcome,
            "processor": 2.0,
        }
        for outcome in ("caught", "timeout", "crash", "survived")
    ]
    data = table.data_of(rows, 5, 4, {"jax": "0.12"})
    assert data["modules"] == {"a.py": [4, 1]}
    (survivor,) = data["survivors"]
    assert (survivor["mutant"], survivor["before"], survivor["after"]) == (
        "a.py:survived",
        "x + 1",
        "x - 1",
    )
    assert (data["seconds"], data["seed"], data["jax"]) == (2.0, 5, "0.12")


def test_the_committed_table_is_current(reports):
    assert reports("mutation", "--check") == (0, "")


def test_a_stale_table_is_named(reports, tmp_path, monkeypatch):
    for name, text in table.files(DATA).items():
        (tmp_path / name).write_text(text)
    assert reports("mutation", "--check", "--into", tmp_path) == (0, "")
    monkeypatch.setattr(table, "equivalents", lambda: [KNOWN])
    status, printed = reports("mutation", "--check", "--into", tmp_path)
    assert status == 1
    assert f"{tmp_path / 'mutation.md'} is stale" in printed
    assert "python -m reports mutation" in printed


def test_the_committed_score_does_not_fall():
    data = table.read()
    assert sum(tried for tried, _ in data["modules"].values()) >= 300
    assert table.score(data) >= 0.95
