"""Harnesses under JAX's transformations: what is wrong under one of them alone is red."""

import itertools

import jax
import numpy as np
import pytest

from harnesses.cell.names import UNDER_MODES
from harnesses.engine.judge import result_of_jax
from harnesses.engine.matrix import Matrix
from harnesses.engine.selection import sampled
from harnesses.engine.transformations import TRANSFORMATIONS
from harnesses.harness import all_harnesses

FAKES = "tests.judge.fake_converters"
# Of CI; all of them are run on demand.
SAMPLE = 8


@pytest.fixture
def run(tmp_path, parsed):
    """Runs cells; returns row and problem of each by its mode (and harness, if it has several)."""
    numbers = itertools.count()

    def run_cells(*arguments, ledger=tmp_path):
        given = [] if ledger is None else [f"--ledger={ledger}"]
        results = tmp_path / f"rows{next(numbers)}.jsonl"
        matrix = Matrix(parsed(*arguments, *given, f"--results={results}"), "main")
        cells = matrix.cells.values()
        several = len({cell.harness.name for cell in cells}) > 1
        rows = {str(cell) if several else cell.mode: matrix.run(cell) for cell in cells}
        matrix.close()
        return rows, matrix

    return run_cells


def harness(name):
    (found,) = [harness for harness in all_harnesses() if harness.name == name]
    return found


def test_every_mode_has_a_transformation():
    assert tuple(TRANSFORMATIONS) == UNDER_MODES


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("under_jit", "jit"),
        ("under_scan", "scan"),
        ("under_cond", "cond"),
        ("under_vmap", "f32[3,"),
        ("under_in_axes", ",3]"),
        ("under_jvp", "cos"),
        ("under_vjp", "cos"),
        ("under_jacobian", "cos"),
        ("under_remat", "prevent_cse"),
    ],
)
def test_what_the_transformation_makes(mode, words):
    asked = TRANSFORMATIONS[mode](harness("sin_float32"))
    assert words in str(jax.make_jaxpr(asked.fun)(*asked.make_args()))


def test_a_batch_along_the_last_axis_holds_the_same_examples():
    first, last = (
        result_of_jax(asked.fun, asked.make_args())
        for asked in (
            TRANSFORMATIONS[mode](harness("cumsum_float32"))
            for mode in ("under_vmap", "under_in_axes")
        )
    )
    np.testing.assert_array_equal(first, np.moveaxis(last, -1, 0))


@pytest.mark.parametrize("impl", ["jax2tf", "jax.export"])
@pytest.mark.parametrize("name", ["jit_float32", "eigh_float32"])
def test_right_implementation_passes(run, impl, name):
    rows, _ = run("--mode=under", f"--name={name}", f"--impl={impl}")
    assert tuple(rows) == UNDER_MODES
    for row, problem in rows.values():
        assert row["outcome"] in ("pass", "inapplicable"), row["message"]
        assert problem is None
    values = {"under_jit", "under_vmap", "under_in_axes", "under_remat", "under_scan", "under_cond"}
    passing = {mode for mode, (row, _) in rows.items() if row["outcome"] == "pass"}
    assert passing == (values if name == "eigh_float32" else set(UNDER_MODES))


DERIVATIVES = {"under_jvp", "under_vjp", "under_jacobian", "under_remat"}


@pytest.mark.parametrize(
    ("fake", "modes"),
    [
        ("WrongUnderJit", {"under_jit"}),
        ("WrongUnderScan", {"under_scan"}),
        ("WrongUnderCond", {"under_cond"}),
        ("WrongDerivatives", DERIVATIVES),
        ("WrongLastAxis", {"under_in_axes"}),
        ("WrongBatches", {"under_vmap", "under_scan"}),
    ],
)
def test_wrong_under_a_transformation_alone(run, fake, modes):
    impl = f"--impl={FAKES}:{fake}"
    plain, _ = run("--name=sin_float32", impl)
    assert plain["direct"][0]["outcome"] == "pass"
    rows, matrix = run("--mode=under", "--name=sin_float32", impl)
    assert {mode for mode, (row, _) in rows.items() if row["verdict"] == "red"} == modes
    for cell in matrix.cells.values():
        assert f"--mode {cell.mode} --impl" in matrix.command(cell)


def test_what_holds_for_the_harness_need_not_hold_under_a_transformation(run, tmp_path):
    lines = ['primitive = "sin"', 'expect = "mismatch"', 'message = "ULPs"', 'reason = "planted"']
    impl = f"--impl={FAKES}:WrongUnderScan"
    for modes, red in (("", {"under_scan"}), ('modes = ["under"]', set())):
        (tmp_path / "elementwise.toml").write_text("\n".join(["[[limitation]]", *lines, modes]))
        rows, _ = run("--mode=under_scan", "--name=sin_float32", impl)
        assert {mode for mode, (row, _) in rows.items() if row["verdict"] == "red"} == red


@pytest.mark.once
def test_a_sample_of_the_harnesses_under_all_of_them(run):
    names = [f"--name={harness.name}" for harness in sampled(all_harnesses(), SAMPLE)]
    rows, _ = run("--mode=under", *names, ledger=None)
    assert {key: problem for key, (_, problem) in rows.items() if problem is not None} == {}
