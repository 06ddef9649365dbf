"""The benchmark of memory: what it counts, and a quick run of all of its steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports import rendering
from reports.benchmarks import files, memory

_PEAK = """
import numpy as np
from reports.benchmarks import memory

step = lambda: np.ones({size}, np.float32)[:1].copy()
memory._peak(step)  # pages of libraries that the first use brings in
print(memory._peak(step))
"""


@pytest.mark.parametrize("megabytes", [50, 200])
def test_a_peak_is_counted_though_it_is_freed(megabytes):
    # In a process of its own, as it is used: one that has held much has room already.
    done = subprocess.run(
        [sys.executable, "-c", _PEAK.format(size=megabytes * 250_000)],
        env=os.environ | memory._COUNTED,
        cwd=Path(memory.__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stdout) == pytest.approx(1e6 * megabytes, rel=0.2)


def test_a_quick_run_measures_every_step(reports, tmp_path):
    status, printed = reports("memory", "--quick", "--into", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'memory.md'}" in printed
    figures = json.loads((tmp_path / "memory.json").read_text())
    assert figures["quick"]
    (model,) = figures["models"]
    assert set(model["steps"]) == set(memory.STEPS)
    restore = model["steps"]["restore"]
    assert restore["ratio"] > 0
    assert restore["seconds"] > 0
    table = (tmp_path / "memory.md").read_text()
    assert "A quick run on a small model" in table
    assert f"| restore | {restore['ratio']:.2f} | {restore['seconds']:.2f} |" in table


@pytest.mark.parametrize(("step", "status"), [("differentiate", 1), (memory.FIRST_STEP, 0)])
def test_too_much_memory_is_a_failure(reports, tmp_path, monkeypatch, step, status):
    def measured(options, words):
        model, size, name = (words[1 + words.index(f"--{of}")] for of in ("model", "bytes", "step"))
        share = 1.6 if (model, name) == ("large", step) else 1.0
        return {"extra": share * int(size), "seconds": 1.0}

    monkeypatch.setattr(memory, "_in_a_process", measured)
    monkeypatch.setitem(memory._MODELS, "large", memory._MODELS["quick"])
    told, printed = reports("memory", "--into", tmp_path)
    figures = json.loads((tmp_path / "memory.json").read_text())
    size = f"{figures['models'][1]['megabytes']:.0f}"
    assert told == status
    words = f"{step} of {size} MB takes 1.60 times the parameters' size; 1.5 are allowed"
    assert (words in printed) == bool(status)


def test_the_committed_figures_are_within_the_limit():
    figures = rendering.read_data("memory")
    assert not figures["quick"]
    small, large = (model["megabytes"] for model in figures["models"])
    assert 200 <= small < 4000 <= large
    for model in figures["models"]:
        limited = {s: t["ratio"] for s, t in model["steps"].items() if s != memory.FIRST_STEP}
        assert max(limited.values()) < files.MEMORY_LIMIT
