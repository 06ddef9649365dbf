"""The lists of what does not give TensorFlow's result in libraries, which are held both ways."""

from __future__ import annotations

import importlib

import pytest

from tests.substrates.libraries.__main__ import SUITES
from tests.substrates.libraries.differences import NO_DERIVATIVES, Difference, judged

LISTED = Difference("rounding decides", ("jit",), "^differs by inf", ("math.f",))
COMPILED = Difference("XLA refuses it", ("jit",), "^ValueError", ("math.g",), compiled=True)


@pytest.mark.parametrize(
    ("program", "place", "wrong", "compiled", "expected"),
    [
        ("math.f", "jit", "differs by inf", None, ("rounding decides", "")),
        ("math.f", "jit", "differs by 1e-3", None, ("", "differs by 1e-3")),
        ("math.f", "numpy", "differs by inf", None, ("", "differs by inf")),
        ("math.h", "jit", "differs by inf", None, ("", "differs by inf")),
        ("math.f", "jit", "", None, ("", "is equal, and stands among the differences")),
        ("math.f", "numpy", "", None, ("", "")),
        ("math.g", "jit", "ValueError: x", "InvalidArgumentError", ("XLA refuses it", "")),
    ],
)
def test_what_differs_has_its_reason_or_is_to_be_mended(program, place, wrong, compiled, expected):
    assert judged([LISTED, COMPILED], program, place, wrong, compiled) == expected


@pytest.mark.parametrize("compiled", ["", None])
def test_what_tensorflow_compiles_is_no_reason(compiled):
    reason, to_mend = judged([COMPILED], "math.g", "jit", "ValueError: x", compiled)
    assert not reason
    assert "XLA compiles it on TensorFlow" in to_mend


def test_a_reason_for_all_programs_is_for_what_is_seen_alone():
    refused = "NotImplementedError: tf.GradientTape: NumPy has no derivatives. What to do: ..."
    assert judged([NO_DERIVATIVES], "any", "numpy", refused, None)[0] == NO_DERIVATIVES.reason
    assert judged([NO_DERIVATIVES], "any", "jit", refused, None) == ("", refused)
    assert judged([NO_DERIVATIVES], "any", "numpy", "", None) == ("", "")


@pytest.mark.parametrize("name", SUITES)
def test_lists_name_programs_and_where_they_run(name):
    suite = importlib.import_module(f"tests.substrates.libraries.{name}").SUITE
    places = {program.name: program.places for program in suite.programs}
    for difference in suite.differences:
        assert difference.reason
        for program in difference.programs:
            assert set(places[program]) & set(difference.places), program
