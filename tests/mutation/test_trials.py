"""A fault is caught by what reaches it, in a process of its own; one that hangs or dies is too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports.mutation.items import ROOT, Reach, version_of
from reports.mutation.mutants import PACKAGE, mutants

CELLS = ["cell neg_float32 xla graph", "cell fft_fft_1_complex64 xla graph"]
FILE = "tests/impl/test_random.py"
TEST = f"test {FILE}::test_bits_of_an_unknown_number[threefry-uint32-False]"

# In a process of its own: that of pytest has started what a fork does not bring along.
_TRIALS = """
import json, os, sys
from functools import partial
from pathlib import Path
from reports.mutation import mutants, trial

folder, file, test, *cells = sys.argv[1:]


def fault(module, before):
    return next(found for found in mutants.mutants(module) if before in found.before)


def tried(mutant, call, **limits):
    with trial.package_with(mutant) as package:
        return trial.in_child(package, call, **limits)


def spin():
    while True:
        pass


trial.prepare()
record_cells = partial(trial.record_cells, cells, Path(folder, "cells"))
record_tests = partial(trial.record_tests, file, Path(folder, "tests"))
in_cells, in_test = partial(trial.judge, cells), partial(trial.judge, [test])
outcomes = {
    "record cells": tried(None, record_cells),
    "record tests": tried(None, record_tests),
    "cells as it is": tried(None, in_cells),
    "test as it is": tried(None, in_test),
    "in a cell": tried(fault("_src/lowering/rules/fft.py", "FftType.FFT, 1"), in_cells),
    "in a test": tried(fault("_src/lowering/rules/random.py", "_ROTATIONS ="), in_test),
    "elsewhere": tried(fault("_src/lowering/rules/fft.py", "FftType.FFT, 2"), in_cells),
    "no time left": tried(
        fault("_src/lowering/rules/fft.py", "FftType.FFT, 1"), partial(trial.judge, cells, -1.0)
    ),
    "red cells": tried(
        fault("_src/lowering/rules/fft.py", "FftType.FFT, 1"), partial(trial.red_ones, cells)
    ),
    "red test": tried(
        fault("_src/lowering/rules/random.py", "_ROTATIONS ="), partial(trial.red_ones, [test])
    ),
    "no pytest": tried(None, partial(trial.judge, [f"test {file}-no-such-file::test"])),
    "spins": tried(None, spin, limit=1),
    "dies": tried(None, os.abort),
}
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("trials")


@pytest.fixture(scope="module")
def outcomes(folder):
    done = subprocess.run(
        [sys.executable, "-c", _TRIALS, str(folder), FILE, TEST, *CELLS],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("fault", "outcome", "by"),
    [
        ("cells as it is", "survived", None),
        ("test as it is", "survived", None),
        ("in a cell", "caught", CELLS[1]),
        ("in a test", "caught", TEST),
        ("elsewhere", "survived", None),
        ("no time left", "survived", None),
        ("spins", "timeout", None),
        ("dies", "crash", None),
        ("no pytest", "crash", None),
    ],
)
def test_what_comes_of_a_fault(outcomes, fault, outcome, by):
    row = outcomes[fault]
    assert (row["outcome"], row.get("by")) == (outcome, by), row
    assert row["seconds"] > 0


def test_all_items_are_tried_for_those_that_are_red(outcomes):
    assert outcomes["red cells"]["red"] == CELLS[1:]
    assert outcomes["red test"]["red"] == [TEST]


def test_what_reaches_a_line_is_recorded(outcomes, folder):
    reach = Reach(folder / "reach.jsonl")
    for part in ("cells", "tests"):
        assert outcomes[f"record {part}"]["outcome"] == "recorded"
        reach.add_file(folder / part)
    assert all(reach.has(part) for part in (*CELLS, version_of(FILE)))
    assert not reach.has(version_of("tests/impl/test_sorting.py"))
    assert TEST in reach.items

    def reaching(module, before, file=None):
        fault = next(found for found in mutants(module) if before in found.before)
        return [item.name for item in reach.reaching(fault, file=file)]

    assert reaching("_src/lowering/rules/fft.py", "if key in _COMPLEX") == CELLS[1:]
    assert set(reaching("_src/lowering/rules/fft.py", "FftType.FFT, 1")) == set(CELLS[1:])
    assert TEST in reaching("_src/lowering/rules/random.py", "_ROTATIONS =", FILE)
    # What was written is read again.
    assert Reach(folder / "reach.jsonl").items.keys() == reach.items.keys()
