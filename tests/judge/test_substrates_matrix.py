"""A part of the matrix of the third direction, and its ledger."""

from harnesses.cell.rows import row_of
from harnesses.engine.selection import Selection
from harnesses.engine.substrates import SubstrateJudge
from harnesses.engine.versions import versions
from harnesses.harness import SUBSTRATES, all_harnesses
from limitations.check import LedgerIndex, check_cell
from limitations.ledger import load


def test_a_part_of_the_matrix_is_green():
    judge, index = SubstrateJudge("jax2tf"), LedgerIndex(load(direction=SUBSTRATES))
    cells = Selection(direction=SUBSTRATES, sample=8).cells()
    assert len(cells) >= 30
    for cell in cells:
        row = row_of(cell, versions("jax2tf"), **judge.run(cell))
        assert check_cell(row, index.matching(row)) is None


def test_every_limitation_matches_a_harness():
    names = {h.primitive for h in all_harnesses(direction=SUBSTRATES)}
    for entry in load(direction=SUBSTRATES):
        assert set(entry.primitive) <= names, entry.where
