"""How far results that pass may be from JAX's: what is red, what tightens, what is refused."""

import math

import pytest

from harnesses.harness import all_harnesses
from limitations.__main__ import main
from limitations.check import check_cell
from limitations.ledger import FOLDER, LedgerError
from limitations.ledger import files as ledger_files
from limitations.tolerances import (
    LEAST,
    Tolerances,
    load,
    tightened,
    whole_primitives,
    write,
)
from tests.judge.rows import error, harness, passing

SIN = harness("sin", "float32")
EDGE = harness("sin", "float32", "edge")
COS = harness("cos", "float32")
OF_SIN = Tolerances("cpu", None, {("sin", "float32"): 6.0})


def _away(ulps, of=SIN, mode="eager", **changes):
    return {**passing(of, mode), "ulps": ulps, "tolerance": 64, "processor": "avx512f"} | changes


def _in_all_modes(ulps, of=SIN, **changes):
    return [_away(ulps, of, mode, **changes) for mode in ("eager", "graph", "compiled")]


@pytest.mark.parametrize(
    ("row", "is_red"),
    [
        (_away(6.0), False),
        (_away(6.5), True),
        (_away(6.5, EDGE), True),
        (_away(6.5, COS), False),
        (_away(6.5, device="gpu"), False),
        (_away(6.5, lowering="no_xla"), False),
        (_away(6.5, mode="gradient_graph"), False),
        (_away(None), False),
    ],
)
def test_what_passes_further_away_than_is_known_is_red(row, is_red):
    finding = check_cell(row, [], [OF_SIN])
    assert (finding is not None) == is_red
    if is_red:
        assert str(finding) == (
            f"further: {row['harness']}-cpu-xla-eager: passes, 6.5 ULPs away, of 64 that its "
            "harness allows; tolerances.toml allows sin of float32 6, as it was nearer"
        )


def test_other_processors_are_not_spoken_of():
    of_wide = Tolerances("cpu", "avx512f avx512_bf16", OF_SIN.ulps)
    assert check_cell(_away(9.0), [], [of_wide]) is None
    assert check_cell(_away(9.0, processor="avx512f avx512_bf16"), [], [of_wide]) is not None


@pytest.mark.parametrize(
    ("errors", "allowed"), [((0.0,), LEAST), ((2.0, 5.5), 11), ((5.25,), 11), ((40.0,), math.inf)]
)
def test_twice_the_largest_error_and_no_less_than_the_default(errors, allowed):
    rows = [row for ulps in errors for row in _in_all_modes(ulps)]
    found = tightened([], rows, {"sin"})
    assert [each.allowed(rows[0]) for each in found] == ([allowed] if allowed < 64 else [])
    assert all(each.processor == "avx512f" for each in found)


def test_no_number_grows():
    (same,) = tightened([OF_SIN], _in_all_modes(6.0), {"sin"})
    assert same == OF_SIN
    (nearer,) = tightened([OF_SIN], _in_all_modes(2.5), {"sin"})
    assert nearer.ulps == {("sin", "float32"): 5}


def test_what_fails_or_ran_in_part_says_nothing():
    rows = [*_in_all_modes(1.0)[:2], error(SIN, "compiled")]
    assert whole_primitives(rows, [SIN]) == {"sin"}
    assert whole_primitives(rows[:2], [SIN]) == set()
    assert whole_primitives(rows, [SIN, EDGE, COS]) == set()
    assert whole_primitives([], [SIN]) == set()
    assert tightened([], rows, set()) == []
    mismatched = [{**row, "outcome": "mismatch"} for row in rows]
    assert tightened([], mismatched, {"sin"}) == []


def test_a_file_comes_back_as_it_was_written(tmp_path):
    written = [
        Tolerances("gpu", None, {("sin", "float64"): 5.0}),
        Tolerances("cpu", "avx512f", {("linalg.det", "float32"): 9.0, ("sin", "float32"): 4.0}),
    ]
    (path,) = write(tmp_path, written)
    assert sorted(load(tmp_path), key=lambda each: each.device, reverse=True) == written
    assert write(tmp_path, written) == []
    assert ledger_files(tmp_path, "convert") == []
    assert path.read_text().startswith("# How many ULPs")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[cpu.float32]\nsin = 3", "'sin' should be a whole number of ULPs from 4 on, got 3"),
        ("[cpu.float32]\nsin = '4'", "got '4'"),
        ("[cpu]\nprocessor = 'avx512f'", "holds no table of a dtype"),
        ("cpu = 3", "holds no table of a dtype"),
        ("[cpu", "tolerances.toml: "),
    ],
)
def test_refused(tmp_path, text, problem):
    (tmp_path / "tolerances.toml").write_text(text)
    with pytest.raises(LedgerError, match=r"tolerances\.toml") as refusal:
        load(tmp_path)
    assert problem in str(refusal.value)


def test_the_committed_ones_are_of_harnesses_that_allow_more():
    tolerances = load(FOLDER)
    assert {each.device for each in tolerances} == {"cpu"}
    stated = {}
    for of in all_harnesses(None):
        ulps = of.ulps if isinstance(of.ulps, int) else max([LEAST, *(of.ulps or {}).values()])
        key = of.primitive, of.dtype.name
        stated[key] = max(stated.get(key, 0), ulps)
    loose = {key for each in tolerances for key, ulps in each.ulps.items() if ulps >= stated[key]}
    assert loose == set()


def test_update_writes_them_beside_the_entries(tmp_path, monkeypatch, capsys):
    ledger, results = tmp_path / "ledger", tmp_path / "run.jsonl"
    database = [SIN]
    monkeypatch.setattr("limitations.__main__.all_harnesses", lambda direction: database)
    monkeypatch.setattr("limitations.__main__.harnesses_elsewhere", lambda direction: [])
    monkeypatch.setattr("limitations.__main__.journal.read", lambda path: _in_all_modes(7.0))
    command = ["--ledger", str(ledger), "--results", str(results)]
    assert main(["update", *command]) == 0
    assert load(ledger)[0].ulps == {("sin", "float32"): 14}
    assert "tolerances.toml" in capsys.readouterr().out
    monkeypatch.setattr("limitations.__main__.journal.read", lambda path: _in_all_modes(15.0))
    assert main(["check", *command]) == 1
    assert "further: sin_float32-cpu-xla-eager" in capsys.readouterr().out
