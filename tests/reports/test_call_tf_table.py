"""The table of TensorFlow functions inside JAX, and a sample of what it says."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from harnesses.cell.cells import Cell, modes_of
from harnesses.cell.names import CALL_TF_MODES
from harnesses.cell.rows import row_of
from harnesses.engine.call_tf import CallTfJudge
from harnesses.engine.selection import Selection
from harnesses.engine.versions import versions
from harnesses.harness import CALL_TF, Normal, all_harnesses
from harnesses.harness.definition import Harness
from limitations.check import LedgerIndex, check_cell
from limitations.ledger import Limitation, load
from reports import call_tf


def harness(op, fun, dtype="float32", tags=()):
    args = [Normal((3,), dtype)]
    name = f"{op}_{dtype}"
    fields = (CALL_TF, op, name, fun, args, np.dtype(dtype), {}, 4, "array", True)
    return Harness(*fields, frozenset(tags), None, "here:1")


def limitation(op, mode, side="tensorflow"):
    return Limitation("call_tf#1", (op,), "error", "because", modes=(mode,), side=side)


def test_a_function_has_a_row_with_a_word_for_each_mode():
    database = [
        harness("tf.sin", tf.sin),
        harness("tf.rank", tf.rank, tags=("not_grad", "not_jvp")),
        harness("tf.sin", tf.sin, "float64"),
    ]
    ledger = [limitation("tf.sin", "jvp", "jax"), limitation("tf.rank", "vmap")]
    text = call_tf.table_files(database, ledger)[call_tf.TABLE]
    assert "| tf.sin | float32, float64 | yes | yes | yes | TensorFlow has none | yes |" in text
    assert "| tf.rank | float32 | yes | yes |  |  | no |" in text
    assert "| jvp | 0 (0.0%) | 1 |" in text


def wrong(x):
    """Another function eagerly than in a graph, so that modes differ."""
    return x if tf.executing_eagerly() else x * 2


@pytest.mark.parametrize("mode", CALL_TF_MODES)
def test_the_judge_objects(mode):
    judge = CallTfJudge("jax2tf")
    right = judge.run(Cell(harness("tf.sin", tf.sin), "cpu", CALL_TF, mode))
    assert right["outcome"] == "pass"
    seen = judge.run(Cell(harness("wrong", wrong), "cpu", CALL_TF, mode))
    assert seen["outcome"] == ("pass" if mode == "op_by_op" else "mismatch")


def test_a_sample_of_the_matrix_is_green():
    judge, index = CallTfJudge("jax2tf"), LedgerIndex(load(direction=CALL_TF))
    for cell in Selection(direction=CALL_TF, sample=12).cells():
        row = row_of(cell, versions("jax2tf"), **judge.run(cell))
        assert check_cell(row, index.matching(row)) is None


def test_the_database_is_large_enough():
    database = all_harnesses(direction=CALL_TF)
    assert len({h.primitive for h in database}) >= 300
    assert all(h.direction == CALL_TF and modes_of(h, CALL_TF) for h in database)
    assert jax.config.read("jax_enable_x64") is False


def test_every_limitation_matches_a_harness():
    names = {h.primitive for h in all_harnesses(direction=CALL_TF)}
    for entry in load(direction=CALL_TF):
        assert set(entry.primitive) <= names, entry.where
