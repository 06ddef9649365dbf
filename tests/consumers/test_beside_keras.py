"""Models in engines beside the same models of Keras: what `python -m reports engines` measures."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from rich.console import Console

from harnesses.engine import consumers
from reports.__main__ import main
from reports.benchmarks.architectures import PAIRS
from reports.benchmarks.engines import CONTENDERS, ENGINES, graphs_of

# What is allowed, relative to Keras's ops.
LIMIT = 1.1


@pytest.mark.parametrize("name", PAIRS)
def test_both_compute_the_same(name):
    pair = PAIRS[name]
    inputs = pair.inputs(3)
    expected = np.asarray(jax.jit(pair.in_jax)(*inputs))
    given = inputs if len(inputs) > 1 else inputs[0]
    actual = np.asarray(pair.in_keras()(given, training=False))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PAIRS)
def test_it_is_as_lean(name, engine):
    graphs = graphs_of(PAIRS[name], engine)
    count = consumers.engine(engine).count_ops
    if engine in PAIRS[name].refused:
        with pytest.raises(Exception, match=PAIRS[name].refused[engine]):
            consumers.engine(engine).convert(graphs["keras"])
        return
    allowed = LIMIT * count(graphs["keras"])
    assert count(graphs["finite"]) <= allowed


def test_a_quick_run_and_ops_that_are_counted_anew(tmp_path):
    command = ["engines", "--quick", "--model", "UNet", "--engine", "onnx"]
    assert main([*command, "--into", str(tmp_path)], Console()) == 0
    measured = json.loads((tmp_path / "engines.json").read_text())
    (row,) = measured["rows"]
    assert row["ops"].keys() == set(CONTENDERS)
    assert row["ratios"].keys() == set(CONTENDERS[1:])
    table = (tmp_path / "engines.md").read_text()
    assert "A quick run" in table
    assert f"| UNet | ONNX Runtime | {row['ops']['keras']} | {row['ops']['jax']} |" in table
    (step,) = measured["decoding"]
    assert step["ratios"].keys() == {"engine"}
    assert f"| ONNX Runtime | {step['ops']} |" in table

    figures = json.loads((tmp_path / "engines.json").read_text())
    figures["rows"][0]["ops"] = dict.fromkeys(CONTENDERS, 0)
    (tmp_path / "engines.json").write_text(json.dumps(figures))
    command = ["engines", "--ops", "--model", "UNet", "--engine", "onnx"]
    assert main([*command, "--into", str(tmp_path)], Console()) == 0
    assert json.loads((tmp_path / "engines.json").read_text())["rows"] == [row]
    assert "Ops were counted after" in (tmp_path / "engines.md").read_text()
