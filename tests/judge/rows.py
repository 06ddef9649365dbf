"""Rows and harnesses made by hand, for tests of the ledger that run nothing."""

from typing import Any

import numpy as np

from harnesses.cell.cells import Cell
from harnesses.cell.names import MODE_NAMES
from harnesses.cell.rows import Row, row_of
from harnesses.harness import Harness

VERSIONS = {"jax": "0.12.0", "tensorflow": "2.21.0", "python": "3.12.1", "impl": "jax2tf"}


def harness(primitive: str, dtype: str, case: str = "", **params: Any) -> Harness:
    """A harness that nobody runs."""
    return Harness(
        family="elementwise",
        primitive=primitive,
        name="_".join(part for part in (primitive, case, dtype) if part),
        fun=lambda: None,
        args=(),
        dtype=np.dtype(dtype),
        params=params,
        ulps=None,
        scale="element",
        x64=False,
        tags=frozenset(),
        check=None,
        where="rows.py:1",
    )


def passing(of: Harness, mode: str = "eager", device: str = "cpu", lowering: str = "xla") -> Row:
    """The row of a cell that passes."""
    cell = Cell(of, device, lowering, mode)
    return row_of(cell, VERSIONS, outcome="pass", ulps=0.0, tolerance=0)


def error(of: Harness, mode: str = "eager", message: str = "no kernel", **changes: Any) -> Row:
    """The row of a cell that fails while it is lowered, unless `changes` say otherwise."""
    failed = {"outcome": "error", "phase": "lower", "exception": "TypeError", "message": message}
    return {**passing(of, mode), **failed, "ulps": None, **changes}


def mismatch(of: Harness, ulps: float | None, mode: str = "eager", message: str = "far") -> Row:
    """The row of a cell whose result is wrong."""
    return {**passing(of, mode), "outcome": "mismatch", "message": message, "ulps": ulps}


def all_modes(make: Any, of: Harness, *args: Any) -> list[Row]:
    """The rows of a harness in all modes."""
    return [make(of, *args, mode=mode) for mode in MODE_NAMES]
