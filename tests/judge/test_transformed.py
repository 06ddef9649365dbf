"""The modes gradient and poly: what they accept, what they object to, and what they leave alone."""

import pytest


def run(matrix, mode, fake, name, *arguments):
    made = matrix(fake, f"--name={name}", f"--mode={mode}", *arguments)
    (cell,) = made.cells.values()
    row, problem = made.run(cell)
    made.rows.append(row)
    return row, problem, made


GRADIENTS = ["gradient_eager", "gradient_graph", "gradient_compiled"]


@pytest.mark.parametrize("mode", [*GRADIENTS, "gradient_saved", "poly"])
@pytest.mark.parametrize("lowering", ["xla", "no_xla"])
@pytest.mark.parametrize("name", ["jit_float32", "sin_complex64", "cond_index=1_float32"])
def test_right_implementation_passes(matrix, mode, lowering, name):
    # The matrix fixture names a fake; a later option wins.
    arguments = ("--impl=jax2tf", f"--lowering={lowering}")
    row, problem, made = run(matrix, mode, "right", name, *arguments)
    assert (row["outcome"], row["verdict"], problem) == ("pass", "ok", None), row["message"]
    assert made.finish() == []


@pytest.mark.parametrize(
    ("mode", "fake", "words"),
    [
        *((mode, "gradient", "16 ULPs are allowed") for mode in GRADIENTS),
        ("poly", "batch", "4 ULPs are allowed"),
    ],
)
def test_wrong_transformation(matrix, mode, fake, words):
    row, problem, _ = run(matrix, mode, fake, "jit_float32")
    assert (row["outcome"], row["verdict"]) == ("mismatch", "red")
    assert words in problem


@pytest.mark.parametrize(
    ("mode", "name", "words"),
    [
        ("gradient_graph", "population_count_int32", "no argument that TensorFlow differentiates"),
        ("gradient_graph", "eigh_float32", "right in more than one way"),
        ("gradient_graph", "while_float32", "Reverse-mode differentiation does not work"),
        ("poly", "iota_float32", "vmap"),
    ],
)
def test_inapplicable(matrix, mode, name, words):
    row, problem, made = run(matrix, mode, "right", name, "--impl=jax2tf")
    assert (row["outcome"], row["verdict"], problem) == ("inapplicable", "ok", None)
    assert words in row["message"]
    assert made.finish() == []


def test_a_limitation_of_other_modes_says_nothing_about_a_gradient(matrix):
    entry = {"primitive": "jit", "reason": "for the test", "expect": "mismatch"}
    lines = [f"{key} = {value!r}" for key, value in entry.items()]
    declared = "\n".join(["[[limitation]]", *lines, "ulps = 9"])
    arguments = ("--name=jit_float32", "--mode=gradient_graph")
    made = matrix("gradient", *arguments, ledger=declared)
    (cell,) = made.cells.values()
    row, problem = made.run(cell)
    assert row["limitation"] is None
    assert problem is not None
    assert problem.endswith("no limitation declares it")
    made = matrix("gradient", *arguments, ledger=f"{declared}\nmodes = ['gradient']")
    row, problem = made.run(cell)
    assert problem is not None
    assert problem.startswith("calls#1 declares mismatch of at most 9 ULPs, but it fails otherwise")


def test_gradient_stands_for_its_modes(matrix):
    modes = [
        cell.mode
        for cell in matrix("right", "--name=jit_float32", "--mode=gradient").cells.values()
    ]
    assert modes == GRADIENTS


def test_only_asked_for(matrix):
    modes = {cell.mode for cell in matrix("right", "--name=jit_float32").cells.values()}
    assert modes == {"eager", "graph", "compiled"}
