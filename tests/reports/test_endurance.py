"""The benchmark of endurance: what it counts, a quick run, and what conversions may not leave."""

import collections
import gc
import json

import jax
import pytest
import tensorflow as tf

from harnesses.engine.adapter import Adapter
from reports import rendering
from reports.benchmarks import endurance, files

_OURS = ("jax2tf", "tensorflow")


def _alive() -> collections.Counter[str]:
    """Objects of TensorFlow and of the converter, by class; those of JAX's caches are gone."""
    jax.clear_caches()
    gc.collect()
    names = (f"{type(o).__module__}.{type(o).__qualname__}" for o in gc.get_objects())
    return collections.Counter(name for name in names if name.startswith(_OURS))


@pytest.mark.parametrize("name", [n for n, work in endurance.WORKS.items() if work.beside])
def test_what_work_leaves_does_not_grow_with_it(name):
    few = 10 if name == "call_tf" else 20
    adapter = Adapter()

    def counted(numbers):
        # A function of its own each time: what one keeps of its shapes goes with it.
        step = endurance.WORKS[name].make(adapter)
        for i in numbers:
            step(i)
        del step
        return _alive()

    counted(range(few))  # what the first calls bring in
    before = counted(range(few, 2 * few))
    after = counted(range(2 * few, 6 * few))
    grown = {kind: n for kind, n in (after - before).items() if n > few}
    assert not grown


def test_a_quick_run_writes_figures_and_table(reports, tmp_path, monkeypatch):
    chosen = ("conversions", "jax.jit of functions")
    monkeypatch.setattr(endurance, "WORKS", {name: endurance.WORKS[name] for name in chosen})
    monkeypatch.setattr(endurance, "_CONVERTED", ("mlp",))
    status, printed = reports("endurance", "--quick", "--into", tmp_path)
    assert status == 0
    assert f"wrote {tmp_path / 'endurance.md'}" in printed
    figures = json.loads((tmp_path / "endurance.json").read_text())
    assert figures["quick"]
    assert {name: work["times"] for name, work in figures["works"].items()} == dict.fromkeys(
        chosen, 100
    )
    assert figures["works"]["conversions"]["graphs"] == 0
    (row,) = figures["threads"]
    assert row["program"] == "mlp"
    assert row["ratios"]["in threads"]["median"] > 0
    table = (tmp_path / "endurance.md").read_text()
    assert "A quick run of a hundredth of the work" in table
    assert "| conversions: a new function converted to a graph | 100 |" in table


@pytest.mark.parametrize(("cleared", "status"), [(70, 1), (40, 0)])
def test_too_much_that_stays_is_a_failure(reports, tmp_path, monkeypatch, cleared, status):
    def measured(options, name):
        left = cleared if name == "conversions" else 10
        return {"times": 1, "left": left, "cleared": left, "graphs": 0}

    monkeypatch.setattr(endurance, "_in_a_process", measured)
    monkeypatch.setattr(endurance, "_CONVERTED", ())
    told, printed = reports("endurance", "--into", tmp_path)
    assert told == status
    assert ("conversions leaves 60 MB more than" in printed) == bool(status)


def test_wrong_results_of_a_thread_are_seen():
    def convert(fun):
        return lambda x: tf.constant(0.0) * x

    with pytest.raises(AssertionError, match="Mismatched"):
        endurance._check_threads(convert, lambda x: x, (jax.numpy.ones(2),))


def test_the_committed_figures_are_within_the_limit():
    figures = rendering.read_data("endurance")
    assert not figures["quick"]
    works = figures["works"]
    assert works["conversions"]["times"] == works["shapes"]["times"] == 10_000
    for work in works.values():
        if work["beside"]:
            assert work["cleared"] - works[work["beside"]]["cleared"] <= files.ENDURANCE_LIMIT
            assert work["graphs"] <= 2 * 256
