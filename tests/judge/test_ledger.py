"""The ledger's format: what is malformed is refused with file, entry and key."""

import platform
import sys
from pathlib import Path

import pytest

from harnesses.cell.rows import PROCESSOR_FEATURES
from harnesses.engine.versions import processor
from limitations.ledger import LedgerError, Limitation, load, load_uncovered
from tests.judge.rows import error, harness, mismatch, passing

_ERROR = "expect = 'error'\nphase = 'lower'\nexception = 'TypeError'\nreason = 'r'\n"
_MISMATCH = "[[limitation]]\nprimitive = 'sin'\nexpect = 'mismatch'\nreason = 'r'\n"
_GOOD = "[[limitation]]\nprimitive = 'sin'\n" + _ERROR


def _load(tmp_path, text):
    (tmp_path / "elementwise.toml").write_text(text)
    return load(tmp_path)


def test_an_entry(tmp_path):
    (first, second) = _load(tmp_path, _GOOD + _GOOD.replace("'sin'", "['cos', 'tan']"))
    assert (first.where, first.family, first.primitive) == (
        "elementwise#1",
        "elementwise",
        ("sin",),
    )
    assert (second.where, second.primitive) == ("elementwise#2", ("cos", "tan"))
    assert load(tmp_path, families=["linalg"]) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_GOOD + "dtype = 'int8'", "entry 1: 'dtype' is no key of a limitation; those are prim"),
        (_GOOD + _GOOD.replace("reason = 'r'", "reason = ' '"), "entry 2: 'reason' must be a text"),
        (_GOOD.replace("reason = 'r'", ""), "entry 1: 'reason' is missing"),
        (_GOOD.replace("primitive = 'sin'", ""), "entry 1: 'primitive' is missing"),
        (_GOOD.replace("'sin'", "[]"), "entry 1: 'primitive' must not be empty"),
        (_GOOD + "dtypes = ['float31']", "'dtypes' names 'float31', which is no dtype of JAX"),
        (_GOOD + "dtypes = 'int8'", "'dtypes' must be a list that is not empty"),
        (_GOOD + "devices = ['npu']", "'devices' is 'npu', not one of cpu, gpu, tpu"),
        (_GOOD + "modes = ['lazy']", "'modes' is 'lazy', not one of eager, graph, compiled"),
        (_GOOD + "lowerings = ['mlir']", "'lowerings' is 'mlir', not one of xla, no_xla, native"),
        (_GOOD + "jax = 'new'", "'jax' is 'new', no version specifier such as '>=0.12'"),
        (_GOOD + "processor = 'fast'", "'processor' is 'fast', no list of features such as"),
        (_GOOD + "message = '('", "'message' is no regular expression"),
        (_GOOD + "x64 = 1", "'x64' must be true or false"),
        (_GOOD.replace("phase = 'lower'\n", ""), "'phase' is missing: an error is declared with"),
        (_GOOD.replace("'error'", "'crash'"), "'phase' belongs to an error, but expect = 'crash'"),
        (_GOOD.replace("'error'", "'pain'"), "'expect' is 'pain', not one of error, mismatch"),
        (_GOOD + "ulps = 3", "'ulps' belongs to a mismatch, but expect = 'error'"),
        (_GOOD.replace("'lower'", "'trace'"), "'side' and phase disagree"),
        ("[[limitation]]\nprimitive = 'sin'\nexpect = 'mismatch'\nreason = 'r'", "'ulps' is miss"),
        (
            "[[limitation]]\nprimitive = 'sin'\nexpect = 'mismatch'\nulps = inf\nreason = 'r'",
            "'note' is missing: ulps = inf needs to say why",
        ),
        ("[[limit]]\n", "elementwise.toml: limit: a file holds [[limitation]] tables alone"),
        ("[[limitation]\n", "elementwise.toml: "),
        ("limitation = 3\n", "limitation: expected [[limitation]] tables, got 3"),
        ("limitation = [1]\n", "limitation: expected [[limitation]] tables, got [1]"),
        (_MISMATCH + "ulps = nan", "entry 1: 'ulps' must be a number from 0 on, got nan"),
        (_MISMATCH + "ulps = -1", "entry 1: 'ulps' must be a number from 0 on, got -1"),
        (_MISMATCH + "ulps = true", "entry 1: 'ulps' must be a number from 0 on, got True"),
    ],
)
def test_malformed_entries_are_refused(tmp_path, text, words):
    with pytest.raises(LedgerError) as refusal:
        _load(tmp_path, text)
    assert str(refusal.value).startswith("elementwise.toml: ")
    assert words in str(refusal.value)


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "elementwise.toml").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(LedgerError, match=r"^elementwise\.toml: .*can't decode"):
        load(tmp_path)


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    (tmp_path / "elementwise.toml").mkdir()
    with pytest.raises(LedgerError, match=r"^elementwise\.toml: .*directory"):
        load(tmp_path)


def test_a_ledger_that_is_a_file(matrix, tmp_path):
    path = tmp_path / "calls.toml"
    path.touch()
    with pytest.raises(
        LedgerError, match=r"--ledger \S*calls.toml is a file: give a folder, which"
    ):
        matrix("right", f"--ledger={path}")


def test_uncovered_needs_reasons(tmp_path):
    path = tmp_path / "uncovered.toml"
    path.write_text("[[uncovered]]\nprimitives = ['psum', 'pmax']\nreason = 'collectives'\n")
    assert load_uncovered(tmp_path) == {"psum": "collectives", "pmax": "collectives"}
    assert load(tmp_path) == []
    path.write_text("[[uncovered]]\nprimitives = ['psum']\nreason = ''\n")
    with pytest.raises(
        LedgerError, match=r"uncovered\.toml: entry 1: 'reason' is missing or empty"
    ):
        load_uncovered(tmp_path)


def _limitation(**fields):
    base = {"where": "elementwise#1", "primitive": ("sin",), "reason": "r", "expect": "error"}
    return Limitation(**{**base, **fields})


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ({}, True),
        ({"primitive": ("cos", "sin")}, True),
        ({"primitive": ("cos",)}, False),
        ({"harness": ("sin_edge_*",)}, True),
        ({"harness": ("sin_float32",)}, False),
        ({"harness": ("sin_float32", "sin_edge_*")}, True),
        ({"params": {"axis": "(0, 1)"}}, True),
        ({"params": {"axis": "(0,"}}, False),
        ({"dtypes": ("float32", "int8")}, True),
        ({"dtypes": ("int8",)}, False),
        ({"modes": ("graph",)}, False),
        ({"devices": ("gpu", "tpu")}, False),
        ({"lowerings": ("no_xla",)}, False),
        ({"x64": False}, True),
        ({"x64": True}, False),
        ({"jax": ">=0.12", "tensorflow": "==2.21.*"}, True),
        ({"jax": "<0.12"}, False),
        ({"tensorflow": ">2.21.0"}, False),
        ({"processor": "avx512f !avx512_bf16"}, True),
        ({"processor": "avx512f avx512_bf16"}, False),
        ({"processor": "!avx512f"}, False),
    ],
)
def test_conditions(condition, matches):
    row = error(harness("sin", "float32", "edge", axis=(0, 1), keep=True))
    row["processor"] = "avx512f amx_bf16"
    assert _limitation(**condition).matches(row) is matches


def test_a_processor_that_is_not_known_has_no_entry_of_its_own():
    row = error(harness("sin", "float32"))
    assert row["processor"] is None
    assert not _limitation(processor="!avx512f").matches(row)


def test_the_processor_of_this_machine():
    features = processor().split()
    assert set(features) <= set(PROCESSOR_FEATURES)
    if sys.platform == "linux" and platform.machine() == "x86_64":
        flags = Path("/proc/cpuinfo").read_text().split()
        assert features == [f for f in PROCESSOR_FEATURES if f in flags]


def test_sides():
    ours, jax_side = _limitation(), _limitation(side="jax", phase="trace")
    row = error(harness("sin", "float32"))
    refused = {**row, "phase": "trace"}
    alone = {**refused, "mode": "jax", "lowering": "jax", "tensorflow": None}
    assert [ours.matches(each) for each in (row, refused, alone)] == [True, False, False]
    assert [jax_side.explains(each) for each in (row, refused, alone)] == [False, True, True]


@pytest.mark.parametrize(
    ("expectation", "explains"),
    [
        ({}, True),
        ({"phase": "lower", "exception": "TypeError", "message": "no k.rnel"}, True),
        ({"phase": "run"}, False),
        ({"exception": "ValueError"}, False),
        ({"message": "^kernel"}, False),
        ({"expect": "crash"}, False),
    ],
)
def test_expectations_of_errors(expectation, explains):
    row = error(harness("sin", "float32"))
    limitation = _limitation(**expectation)
    assert limitation.matches(row)
    assert limitation.explains(row) is explains


def test_expectations_of_mismatches():
    near, sin = _limitation(expect="mismatch", ulps=8), harness("sin", "float32")
    assert near.explains(mismatch(sin, 8))
    assert not near.explains(mismatch(sin, 8.5))
    assert not near.explains(mismatch(sin, None))
    assert not near.explains(passing(sin))
    assert _limitation(expect="mismatch", message="dtype").explains(
        mismatch(sin, None, message="result.dtype=float64")
    )
