"""The table of the engines."""

import pathlib
import re

import pytest

from harnesses.engine.cells import CONSUMER_MODES
from limitations.ledger import Limitation
from reports.consumers import ENVIRONMENTS, SAMPLE, TABLE, command, consumer_files, is_of_engines
from tests.judge.rows import harness


def limitation(primitive, *modes, **fields):
    entry = {"where": "litert#1", "primitive": (primitive,), "expect": "error", "reason": "because"}
    return Limitation(**(entry | {"modes": modes} | fields))


DATABASE = [
    harness("sin", "float32"),
    harness("sin", "float32", "edge"),
    harness("cos", "int32"),
    harness("tan", "int32"),
    harness("sin", "bfloat16"),
]


def test_a_primitive_has_a_row_for_each_dtype_with_a_word_for_each_engine():
    ledger = [
        limitation("sin", "litert", harness=("sin_edge_*",)),
        limitation("cos", "onnx", exception="ONNXError"),
        limitation("tan", side="jax"),
    ]
    text = consumer_files(DATABASE, ledger)[TABLE]
    assert "| sin | float32 | yes | 1 of 2 | yes | yes | yes |" in text
    assert "| cos | int32 | yes | yes | no | yes | yes |" in text
    assert "tan" not in text
    assert "bfloat16" not in text
    all_of_them, some = "3 of 3 (100.0%)", "2 of 3 (66.7%)"
    shares = (all_of_them, some, some, all_of_them, all_of_them)
    assert f"| all | {' | '.join(shares)} |" in text
    assert f"- tfjs: {all_of_them}\n" in text
    assert f"- litert: {some}\n- onnx: {some}\n" in text
    assert "| cos | all | all | ONNXError | because |" in text


def test_the_shares_of_all_harnesses_are_not_those_of_the_sample():
    many = [harness("sin", "float32", f"case{number}") for number in range(SAMPLE + 50)]
    text = consumer_files(many, [limitation("sin", "onnx")])[TABLE]
    assert f"| all | {SAMPLE} of {SAMPLE}" in text
    assert f"- litert: {SAMPLE + 50} of {SAMPLE + 50} (100.0%)" in text
    assert f"- onnx: 0 of {SAMPLE + 50} (0.0%)" in text


def test_what_speaks_of_engines_alone():
    assert is_of_engines(limitation("sin", *CONSUMER_MODES))
    assert not is_of_engines(limitation("sin", "litert", "eager"))
    assert not is_of_engines(limitation("sin"))


def test_every_engine_has_an_environment():
    assert sorted(sum(ENVIRONMENTS.values(), ())) == sorted(CONSUMER_MODES)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_tox_runs_what_the_table_says(environment):
    tox = (pathlib.Path(__file__).parents[2] / "tox.ini").read_text()
    of_environment = tox.split(f"[testenv:{environment}]\n")[1].split("\n[")[0]
    assert command(environment) in re.sub(r"\\\n\s*", "", of_environment)
