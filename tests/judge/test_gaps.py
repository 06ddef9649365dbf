"""What JAX accepts and no harness asks about is found by trying, in databases made by hand."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from harnesses.__main__ import main
from harnesses.engine import gaps
from harnesses.harness import INTS, Normal, all_harnesses
from limitations.ledger import LedgerError, load_gap_reasons
from tests.judge.rows import harness


def _cumsum(case, dtype="float32", axis=0, reverse=False):
    made = harness("cumsum", dtype, case)
    args = [Normal((2, 3, 4), np.dtype(dtype))]
    return dataclasses.replace(made, fun=lambda x: lax.cumsum(x, axis, reverse=reverse), args=args)


def _found(*harnesses):
    return [gap.what for gap in gaps.find(harnesses)]


def _values(*harnesses):
    return [what for what in _found(*harnesses) if not what.startswith("dtype=")]


def test_a_dtype_that_works_and_is_not_claimed():
    assert "dtype=float16" in _found(_cumsum("", "float32"))
    assert "dtype=float16" not in _found(_cumsum("", "float32"), _cumsum("", "float16"))


def test_a_dtype_that_jax_refuses_is_no_gap():
    made = dataclasses.replace(
        harness("lgamma", "float32"), fun=lax.lgamma, args=[Normal((2,), np.dtype("float32"))]
    )
    found = _found(made)
    assert "dtype=float64" in found
    assert not {f"dtype={dtype}" for dtype in (*INTS, "bool", "complex64")}.intersection(found)


def test_a_dtype_that_the_harness_casts_away_is_no_gap():
    made = dataclasses.replace(
        harness("sin", "float32"),
        fun=lambda x: lax.sin(x.astype(jnp.float32)),
        args=[Normal((2,), np.dtype("float32"))],
    )
    assert _found(made) == []


def test_a_value_that_no_harness_has():
    assert _values(_cumsum("")) == ["axis=between", "axis=last", "reverse=True"]


def test_a_value_that_harnesses_have_on_one_axis_alone():
    forward = [_cumsum(f"axis{axis}", axis=axis) for axis in range(3)]
    assert _values(*forward, _cumsum("reverse", axis=1, reverse=True)) == [
        "axis=first, reverse=True",
        "axis=last, reverse=True",
    ]
    backward = [_cumsum(f"reverse{axis}", axis=axis, reverse=True) for axis in range(3)]
    assert _values(*forward, *backward) == []


def test_an_enum_and_a_value_that_jax_refuses():
    made = dataclasses.replace(
        harness("reduce_precision", "float32"),
        primitive="gather",
        fun=lambda x: x.at[jnp.array([0])].get(mode="fill"),
        args=[Normal((3,), np.dtype("float32"))],
    )
    assert {"mode=CLIP", "mode=PROMISE_IN_BOUNDS"} <= set(_values(made))
    # ONE_HOT is a mode of scatter, which gather refuses.
    assert "mode=ONE_HOT" not in _values(made)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `gaps` over a database of one harness, with the ledger that is given as text."""
    database = [_cumsum("")]
    monkeypatch.setattr("harnesses.__main__.all_harnesses", lambda: database)
    monkeypatch.setattr("harnesses.engine.selection.all_harnesses", lambda direction: database)

    def run(ledger):
        (tmp_path / "gaps.toml").write_text(ledger)
        return main(["gaps", f"--ledger={tmp_path}"]), capsys.readouterr()

    return run


_ENTRY = "[[gap]]\nprimitives = ['cum*']\nreason = 'for the test'\n"


def test_the_command_lists_what_has_no_reason(command):
    status, printed = command(_ENTRY + "gaps = ['dtype=*', 'axis=*']\n")
    assert (status, printed.out) == (1, "cumsum: reverse=True\n")
    assert printed.err.startswith("1 primitives: 1 gaps, ")


def test_the_command_is_content_where_each_gap_has_a_reason(command):
    assert command(_ENTRY + "gaps = ['dtype=*', 'axis=*', 'reverse=True']\n")[0] == 0


def test_a_reason_of_no_gap_is_named(command):
    both = _ENTRY + "gaps = ['*']\n" + _ENTRY.replace("cum*", "sin") + "gaps = ['*']\n"
    status, printed = command(both)
    assert (status, printed.out) == (1, "a reason in gaps.toml is of no gap: for the test\n")


def test_an_entry_without_a_reason_is_refused(tmp_path):
    (tmp_path / "gaps.toml").write_text("[[gap]]\nprimitives = ['sin']\ngaps = ['*']\n")
    with pytest.raises(LedgerError, match=r"gaps\.toml.*reason.*is missing or empty"):
        load_gap_reasons(tmp_path)


def test_cumulative_reductions_have_every_axis_in_both_directions():
    family = [harness for harness in all_harnesses() if harness.family == "cumulative"]
    by_name = {harness.primitive: [] for harness in family}
    for each in family:
        if each.dtype == np.float32:
            by_name[each.primitive].append(each)
    for harnesses in by_name.values():
        assert gaps.values_left_out(harnesses) == []
