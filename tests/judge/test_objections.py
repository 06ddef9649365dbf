"""The judge is fed wrong implementations, and objects to each in the words that it should."""

import re

import pytest

from harnesses.cell import journal


def _run_one(matrix, *, mode="eager"):
    (cell,) = (cell for cell in matrix.cells.values() if cell.mode == mode)
    return matrix.run(cell)


def _entry(**fields):
    lines = "\n".join(f"{key} = {value!r}" for key, value in fields.items())
    return f"[[limitation]]\nprimitive = 'jit'\nreason = 'for the test'\n{lines}\n"


def test_right_implementation_passes(matrix):
    row, problem = _run_one(matrix("right", "--name=jit_float32"))
    assert problem is None
    assert (row["outcome"], row["verdict"], row["ulps"]) == ("pass", "ok", 0.0)


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        ("dtype", "result.dtype=float64, but should be float32"),
        ("shape", "result.shape=(1, 3, 2), but should be (3, 2)"),
        ("tree", "the result's tree is PyTreeDef([*]), but should be PyTreeDef(*)"),
    ],
)
def test_results_of_another_kind(matrix, fake, words):
    row, problem = _run_one(matrix(fake, "--name=jit_float32"))
    assert (row["outcome"], row["ulps"]) == ("mismatch", None)
    assert problem == f"mismatch: {words}; no limitation declares it"


def test_one_ulp_too_far(matrix):
    # The tolerance of float32 in the family calls is 4 ULPs: one is fine there, and not for int32.
    run = matrix("one_ulp", "--name=jit_exact_float32")
    row, problem = _run_one(run)
    assert row["outcome"] == "mismatch"
    assert row["ulps"] == pytest.approx(1.0, abs=0.5)
    assert re.search(
        r"result is (1|0\.5) ULPs of float32 away at \(\d, \d\): \S+, but should be \S+; "
        r"0 ULPs are allowed \(6 of 6 elements beyond it\)",
        problem,
    )
    assert _run_one(matrix("one_ulp", "--name=jit_float32"))[1] is None


@pytest.mark.parametrize(
    ("fake", "mode", "phase", "exception", "message"),
    [
        ("lowering", "eager", "lower", "NotImplementedError", "no such lowering"),
        ("lowering", "graph", "lower", "NotImplementedError", "no such lowering"),
        ("broken", "eager", "lower", "RuntimeError", "two rules for one primitive"),
        ("running", "eager", "run", "InvalidArgumentError", "no kernel"),
        ("running", "graph", "run", "InvalidArgumentError", "no kernel"),
    ],
)
def test_phases_of_exceptions(matrix, fake, mode, phase, exception, message):
    row, problem = _run_one(matrix(fake, "--name=jit_float32"), mode=mode)
    assert (row["outcome"], row["phase"], row["exception"]) == ("error", phase, exception)
    assert message in row["message"]
    assert problem.startswith(f"error in phase {phase}: {exception}: ")


@pytest.mark.parametrize("mode", ["graph", "compiled", "gradient_graph", "poly"])
def test_ops_of_xla_where_they_are_forbidden(matrix, mode):
    options = ("--name=reduce_precision_exponent_5_mantissa_10_float32", f"--mode={mode}")
    row, _ = _run_one(matrix("ignoring", *options, "--lowering=no_xla"), mode=mode)
    assert (row["outcome"], row["phase"], row["exception"]) == ("error", "lower", "XlaOpError")
    assert row["message"] == "a graph without XLA's ops holds XlaReducePrecision"
    row, _ = _run_one(matrix("ignoring", *options, "--lowering=xla"), mode=mode)
    assert row["outcome"] == "pass"


@pytest.mark.parametrize(("mode", "nodes"), [("eager", None), ("graph", 1), ("compiled", 1)])
def test_nodes_of_a_graph_are_counted_without_what_stands_around_them(matrix, mode, nodes):
    run = matrix("right", "--name=sin_float32", "--impl=jax2tf")
    assert _run_one(run, mode=mode)[0]["nodes"] == nodes


def test_declared_failure_is_ok(matrix):
    declared = _entry(expect="error", phase="lower", exception="NotImplementedError")
    run = matrix("lowering", "--name=jit_float32", ledger=declared)
    row, problem = _run_one(run)
    assert problem is None
    assert (row["outcome"], row["verdict"], row["limitation"]) == ("error", "ok", "calls#1")
    assert run.finish() == []
    assert journal.read(run.file) == [row]


def test_exception_in_the_wrong_phase(matrix):
    declared = _entry(expect="error", phase="run", exception="NotImplementedError")
    row, problem = _run_one(matrix("lowering", "--name=jit_float32", ledger=declared))
    assert row["verdict"] == "red"
    assert problem == (
        "calls#1 declares error in phase run: NotImplementedError, but it fails otherwise: "
        "error in phase lower: NotImplementedError: no such lowering"
    )


def test_declared_failure_that_passes(matrix):
    declared = _entry(expect="error", phase="lower", exception="NotImplementedError")
    run = matrix("right", "--name=jit_float32", ledger=declared)
    row, problem = _run_one(run)
    declares = "declares error in phase lower: NotImplementedError, but"
    assert row["verdict"] == "red"
    assert problem == f"calls#1 {declares} it passes"
    assert [str(finding) for finding in run.finish()] == [
        f"passes: calls#1: {declares} all 1 cells that it matches pass, such as "
        "jit_float32-cpu-xla-eager; delete it"
    ]


def test_run_without_cells(matrix):
    run = matrix("right", "--name=no_such_harness")
    assert not run.cells
    assert [str(finding) for finding in run.finish()] == [
        "nothing executed: run: no cell was executed, so nothing is proved"
    ]


def test_summary_counts_cells_that_did_not_run_and_what_one_costs(matrix):
    run = matrix("right", "--name=jit_float32")
    _run_one(run)
    run.finish()
    run.seconds = 0.25
    assert run.summary() == (
        "3 cells asked for, 1 ran (1 pass), 0 red, 2 did not run; 0 declared (0.0%), 0 findings; "
        "0.2 s of processor time, 0.2500 s a cell"
    )
