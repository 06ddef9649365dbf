"""The proof of the ledger, direction by direction, on rows made by hand."""

import pytest

from limitations.check import check, names_of_jax
from limitations.ledger import Limitation
from tests.judge.rows import all_modes, error, harness, mismatch, passing

SIN = harness("sin", "float32")
HALF = harness("sin", "bfloat16")
COS = harness("cos", "float32")
DATABASE = [SIN, HALF, COS]


def _limitation(number=1, **fields):
    base = {
        "where": f"elementwise#{number}",
        "primitive": ("sin",),
        "reason": "r",
        "expect": "error",
        "phase": "lower",
        "exception": "TypeError",
    }
    return Limitation(**{**base, **fields})


def _loose(ulps, **fields):
    return _limitation(expect="mismatch", phase=None, exception=None, ulps=ulps, **fields)


def _everything_passes_but(*failing):
    """The rows of a full run in which the given ones fail."""
    named = {(row["harness"], row["mode"]): row for row in failing}
    rows = [row for each in DATABASE for row in all_modes(passing, each)]
    return [named.get((row["harness"], row["mode"]), row) for row in rows]


def _check(rows, *limitations):
    """The findings but for those about primitives that this small database cannot cover."""
    findings = check(rows, limitations, DATABASE, dict.fromkeys(names_of_jax(), "elsewhere"))
    return [str(finding) for finding in findings if finding.kind != "covered"]


def test_a_declared_failure_proves_its_entry():
    rows = _everything_passes_but(*all_modes(error, HALF))
    assert _check(rows, _limitation(dtypes=("bfloat16",))) == []


def test_undeclared_failure():
    rows = _everything_passes_but(error(SIN))
    assert _check(rows) == [
        "undeclared: sin_float32-cpu-xla-eager: error in phase lower: TypeError: no kernel; "
        "no limitation declares it"
    ]


def test_limitation_that_no_longer_fails():
    assert _check(_everything_passes_but(), _limitation(dtypes=("bfloat16",))) == [
        "passes: elementwise#1: declares error in phase lower: TypeError, but all 3 cells that it "
        "matches pass, such as sin_bfloat16-cpu-xla-eager; delete it"
    ]


def test_limitation_that_is_too_broad():
    rows = _everything_passes_but(*all_modes(error, HALF))
    assert _check(rows, _limitation()) == [
        "too broad: elementwise#1: 3 of the 6 cells that it matches pass, such as "
        "sin_float32-cpu-xla-eager; narrow its conditions"
    ]


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"phase": "run"}, "error in phase run: TypeError: no kernel"),
        ({"exception": "ValueError"}, "error in phase lower: ValueError: no kernel"),
        ({"message": "else"}, "error in phase lower: TypeError: else"),
        ({"outcome": "crash", "phase": None, "exception": None}, "crash: no kernel"),
    ],
)
def test_failing_otherwise_than_declared(changes, seen):
    rows = _everything_passes_but(error(SIN, **changes))
    declared = _limitation(dtypes=("float32",), modes=("eager",), message="kernel")
    assert _check(rows, declared) == [
        "otherwise: sin_float32-cpu-xla-eager: elementwise#1 declares error in phase lower: "
        f"TypeError with a message like 'kernel', but it fails otherwise: {seen}"
    ]


def test_a_mismatch_beyond_the_declared_tolerance():
    rows = _everything_passes_but(*all_modes(mismatch, SIN, 9))
    (first, *_) = _check(rows, _loose(8, dtypes=("float32",)))
    assert "declares mismatch of at most 8 ULPs, but it fails otherwise: mismatch: far" in first


@pytest.mark.parametrize(("ulps", "loose"), [(9, False), (18, False), (19, True)])
def test_tolerance_looser_than_what_is_seen_calls_for(ulps, loose):
    rows = _everything_passes_but(*all_modes(mismatch, SIN, 9))
    expected = (
        f"too loose: elementwise#1: allows {ulps} ULPs, but the largest error seen is 9; "
        "18 are enough"
    )
    assert _check(rows, _loose(ulps, dtypes=("float32",))) == [expected] * loose


def test_limitation_that_matches_no_harness():
    nothing = "elementwise#1: no harness matches it; correct or delete it"
    for condition in ({"primitive": ("sine",)}, {"dtypes": ("int8",)}, {"harness": ("sin_edge*",)}):
        assert _check(_everything_passes_but(), _limitation(**condition)) == [
            f"unmatched: {nothing}"
        ]


def test_name_that_a_limitation_lists_for_nothing():
    listed = _limitation(harness=("sin_float32", "sin_edge*"))
    text = "unmatched: elementwise#1: no harness matches sin_edge*; correct or delete that"
    assert _check(_everything_passes_but(*all_modes(error, SIN)), listed) == [text]


def test_other_devices_lowerings_and_versions_are_not_judged():
    elsewhere = [
        _limitation(devices=("gpu",)),
        _limitation(lowerings=("native",)),
        _limitation(jax="<0.12"),
        _limitation(tensorflow=">=2.22", primitive=("sine",)),
    ]
    for limitation in elsewhere:
        assert _check(_everything_passes_but(), limitation) == []


def test_conflicting_limitations():
    rows = _everything_passes_but(error(SIN))
    both = [_limitation(number, dtypes=("float32",), modes=("eager",)) for number in (1, 2)]
    assert _check(rows, *both) == []
    other = _limitation(2, dtypes=("float32",), modes=("eager",), phase="run")
    assert _check(rows, both[0], other) == [
        "conflict: sin_float32-cpu-xla-eager: elementwise#1 and elementwise#2 match it and "
        "expect different things"
    ]


def test_primitives_need_a_harness_or_a_reason():
    rows = _everything_passes_but()
    reasons = dict.fromkeys(names_of_jax() - {"cos", "tan"}, "elsewhere")
    findings = [str(finding) for finding in check(rows, [], DATABASE, reasons)]
    assert findings == [
        "covered: sin: uncovered.toml gives a reason why it has no harness, but it has one",
        "uncovered: tan: JAX has it, but there is neither a harness nor a reason in uncovered.toml",
    ]


def test_a_run_that_executed_nothing():
    (finding,) = check([], [], DATABASE)
    assert str(finding) == "nothing executed: run: no cell was executed, so nothing is proved"


def test_a_part_of_the_matrix_proves_nothing_about_the_rest():
    part = [mismatch(SIN, 2)]
    limitations = [
        _loose(100, dtypes=("float32",)),  # the other modes may need that much
        _limitation(2, dtypes=("bfloat16",)),
        _limitation(3, primitive=("sine",)),
    ]
    assert _check(part, *limitations) == []
    assert check(part, limitations, DATABASE, uncovered={}) == []


def test_jax_alone():
    alone = {"mode": "jax", "lowering": "jax", "tensorflow": None}
    rows = [{**passing(each), **alone} for each in DATABASE]
    rows[1] = {**error(HALF), **alone, "phase": "trace"}
    (finding,) = _check(rows)
    assert finding.startswith("undeclared: sin_bfloat16-cpu-jax-jax: error in phase trace")
    jax_side = _limitation(side="jax", phase="trace", dtypes=("bfloat16",))
    assert _check(rows, jax_side) == []
    assert _check(rows, jax_side, _limitation(2, dtypes=("float32",))) == []


def test_an_entry_may_name_harnesses_that_another_version_of_jax_runs():
    new = harness("log2", "float32")
    entries = [
        _limitation(primitive=("log2",), dtypes=("float32",)),
        _limitation(2, primitive=("log2", "sin"), harness=("log2_float32", "sin_float32")),
    ]
    rows = _everything_passes_but(*all_modes(error, SIN))
    here = dict.fromkeys(names_of_jax(), "elsewhere")
    kinds = [
        [f.kind for f in check(rows, entries, DATABASE, here, (), others) if f.kind != "covered"]
        for others in ((), [new])
    ]
    assert kinds == [["unmatched", "unmatched"], []]


def test_a_run_of_one_cell_makes_no_rows_of_the_others(monkeypatch):
    # Tens of thousands of them took a second of the start of a single cell.
    made = []
    monkeypatch.setattr("limitations.check.row_of", lambda cell, *args: made.append(str(cell)))
    assert _check([passing(SIN)], _limitation(dtypes=("bfloat16",))) == []
    assert made == []
