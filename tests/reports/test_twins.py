"""The benchmark of libraries on the JAX substrate beside JAX by hand."""

from __future__ import annotations

import json

import jax.numpy as jnp
import pytest

from reports.benchmarks import twins
from tf_substrates.jax import tf


def _sum_of_squares(factor: float = 1.0):
    def make():
        x = jnp.arange(6.0)
        return lambda x: (x * x).sum(), lambda x: tf.reduce_sum(x * x) * factor, (x,), 1e-6

    return make


def test_a_quick_run_writes_a_table(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(twins, "PROGRAMS", {"sum of squares": _sum_of_squares()})
    status, printed = reports("twins", "--quick", "--into", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'twins.md'}" in printed
    (row,) = json.loads((tmp_path / "twins.json").read_text())["rows"]
    assert row["ratios"]["library"]["median"] > 0
    table = (tmp_path / "twins.md").read_text()
    assert "A quick run" in table
    assert "| sum of squares |" in table


def test_twins_that_do_not_agree():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        twins.contenders(_sum_of_squares(1.5))


def test_a_library_that_is_not_there(monkeypatch):
    monkeypatch.setattr(twins, "LIBRARIES", ("no_such_library",))
    with pytest.raises(twins.ResultsError, match="there is no no_such_library here"):
        twins._on_jax("no_such_library")
