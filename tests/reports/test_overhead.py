"""The benchmark of calls of TensorFlow from JAX: a quick run, and what it refuses."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from harnesses.engine.adapter import Adapter
from reports.benchmarks import overhead


@pytest.fixture
def scalar_only(monkeypatch):
    name = "x + 1 of a scalar"
    monkeypatch.setattr(overhead, "_FUNCTIONS", {name: overhead._FUNCTIONS[name]})


def test_a_quick_run_measures_every_way(reports, tmp_path, scalar_only):
    status, printed = reports("overhead", "--quick", "--beside", "jax2tf", "--into", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'call_tf_overhead.md'}" in printed
    rows = json.loads((tmp_path / "call_tf_overhead.json").read_text())["rows"]
    assert [row["way"] for row in rows] == ["op by op", "jit", "jit of grad"]
    assert set(rows[0]["seconds"]) == {"other", "this", "tensorflow"}
    assert all(0.0 < row["ratios"]["this"]["median"] < 100.0 for row in rows)
    table = (tmp_path / "call_tf_overhead.md").read_text()
    assert "A quick run" in table
    assert "| x + 1 of a scalar | jit of grad |" in table


@pytest.mark.parametrize("option", ["--impl", "--beside"])
def test_a_module_that_is_not_there_is_named(reports, tmp_path, option):
    status, printed = reports("overhead", option, "no_such_module", "--into", tmp_path)
    assert status == 2
    assert f"{option} no_such_module: there is no such module" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("way", overhead._WAYS)
def test_contenders_have_to_agree(way):
    class Wrong(Adapter):
        def call_tf(self, fun):
            right = super().call_tf(fun)
            return lambda x: right(x) * jnp.float32(1.1) + np.float32(0.1)

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        overhead.contenders(
            overhead._FUNCTIONS["x + 1 of a scalar"],
            way,
            {"other": Adapter("jax2tf"), "this": Wrong("jax2tf")},
        )
