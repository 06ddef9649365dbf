"""The matrix: one test item a cell. `python -m harnesses run` runs this file."""

from collections.abc import Callable

import pytest

from harnesses.cell.cells import Cell
from harnesses.cell.rows import Row
from harnesses.engine.plugin import MATRIX, run_cell


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cells = metafunc.config.stash[MATRIX].cells
    metafunc.parametrize("cell", cells.values(), ids=cells.keys())


def test_cell(
    cell: Cell, pytestconfig: pytest.Config, record_property: Callable[[str, Row], None]
) -> None:
    run_cell(pytestconfig, cell, record_property)
