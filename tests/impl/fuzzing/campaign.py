"""Random programs by their numbers: what Hypothesis draws with the number for its seed."""

from __future__ import annotations

import faulthandler
import json
import sys
import traceback
from collections.abc import Iterable
from typing import Any

import hypothesis
import jax
from hypothesis import strategies as st

from tests.impl.fuzzing.uses import ORDERS, combinations

Row = dict[str, Any]
# A program takes half a second: one that takes so long hangs.
SECONDS_OF_A_PROGRAM = 300
# A program that failed is made smaller for so long.
SECONDS_OF_SHRINKING = 60.0
EVERYTHING = list(hypothesis.HealthCheck)


def _combinations(number: int) -> st.SearchStrategy[Any]:
    """The orders of derivatives in turn."""
    return combinations(ORDERS[number % len(ORDERS)])


def _calls(number: int) -> st.SearchStrategy[Any]:
    from tests.impl.test_fuzz_call_tf import calls

    return calls()


DRAWN = {"combinations": _combinations, "call_tf": _calls}
ENGINES = (
    *("graph", "compiled", "tape", "compiled_tape"),
    *("savedmodel", "litert", "onnx", "openvino", "tfjs"),
)
KINDS = (*DRAWN, *ENGINES, "tapes")


def program(kind: str, number: int) -> Any:
    """The program of this kind with this number."""
    if kind in ENGINES:
        from tests.impl.fuzzing import engine_programs

        return engine_programs.program(kind, number)
    if kind == "tapes":
        from tests.impl.fuzzing import tapes

        return tapes.program(number)
    found: list[Any] = []

    # The first example that Hypothesis draws is the simplest one, whatever the seed is.
    @hypothesis.seed(number)
    @hypothesis.settings(
        max_examples=2,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=EVERYTHING,
    )
    @hypothesis.given(DRAWN[kind](number))
    def draw(example: Any) -> None:
        found.append(example)

    draw()
    return found[-1]


def row(kind: str, number: int) -> Row:
    """Runs a program: how many examples it was, and what went wrong."""
    drawn = program(kind, number)
    result = {"kind": kind, "number": number, "examples": drawn.n_examples}
    try:
        if note := drawn.check():
            result["note"] = note
    except hypothesis.errors.UnsatisfiedAssumption:
        result["examples"] = 0
    except Exception as error:  # Whatever it is, it is what was looked for.
        result["error"] = f"{type(error).__name__}: {error}"[:2000]
        result["notes"] = getattr(error, "__notes__", [])
        result["program"] = repr(drawn)[:4000]
        result["traceback"] = traceback.format_exc()[-4000:]
        if kind in ENGINES:
            result["smallest"] = drawn.smallest(SECONDS_OF_SHRINKING)
    return result


def run_numbers(kind: str, numbers: Iterable[int]) -> int:
    """Runs programs in this process and prints a row for each; returns the exit status."""
    failed = False
    for done, number in enumerate(numbers, 1):
        faulthandler.dump_traceback_later(SECONDS_OF_A_PROGRAM, exit=True, file=sys.__stderr__)
        found = row(kind, number)
        faulthandler.cancel_dump_traceback_later()
        failed |= "error" in found
        print(json.dumps(found), flush=True)
        if done % 50 == 0:
            jax.clear_caches()
    sys.stdout.flush()
    return 1 if failed else 0
