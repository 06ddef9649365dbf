"""The mode stablehlo: a harness is exported, loaded, run, and converted after."""

import pytest

ARGUMENTS = ("--mode=stablehlo", "--name=sin_float32")


def _row(matrix, fake, *arguments):
    run = matrix(fake, *(arguments or ARGUMENTS))
    (cell,) = run.cells.values()
    return run.run(cell)[0]


@pytest.mark.parametrize(
    ("fake", "outcome", "words"),
    [
        ("loading", "mismatch", "result"),
        ("after_loading", "mismatch", "converted after it was loaded: result"),
        ("right", "error", "fakes.right reads no StableHLO: it has no function load"),
    ],
)
def test_what_is_wrong_is_red(matrix, fake, outcome, words):
    row = _row(matrix, fake)
    assert row["outcome"] == outcome
    assert words in row["message"]


def test_both_results_pass(matrix):
    assert _row(matrix, "loading", *ARGUMENTS, "--impl=jax2tf")["outcome"] == "pass"


def test_what_jax_does_not_export_is_inapplicable(matrix):
    row = _row(matrix, "right", "--mode=stablehlo", "--name=pure_callback_float32")
    assert row["outcome"] == "inapplicable"
    assert row["message"].startswith("jax.export: ")
