"""The harnesses as tests in a test file of your own, for pytest.

    # test_my_converter.py
    from jax2tf_judge import Suite
    from my_converter import MyConverter

    suite = Suite(MyConverter, sample=200, expected="expected_failures.toml")
    test_harness = suite.test()

`python -m pytest test_my_converter.py` has a test for each harness, and the line under a failure
repeats that one. Failures that are known stand in a file; one that passes meanwhile fails the test.
"""

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from harnesses.cell.cells import Cell
from harnesses.cell.names import DIRECT
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import row_of
from harnesses.engine import devices
from harnesses.engine.converters import Converter
from harnesses.engine.converters.judge import ConverterJudge
from harnesses.engine.selection import Selection
from harnesses.engine.versions import versions
from limitations import ledger
from limitations.check import LedgerIndex, check_cell, seen


class Suite:
    """The harnesses that one converter is judged by.

    Args:
      converter: a class of the converter, with `convert` and `call`.
      families, primitives, dtypes, names: which harnesses; names may be globs. Empty means all.
      sample: how many of these, the same ones every time; None for all.
      expected: a file of limitations, or a folder of such files: what is known to fail, and why.
        A file that does not exist yet declares nothing.

    Raises:
      TypeError: the converter is no class with `convert`.
      ValueError: no harness is left.
      LedgerError: an entry of `expected` is malformed.

    Example:
      suite = Suite(MyConverter, families=["sorting"], expected="expected_failures.toml")
      test_sorting = suite.test()
    """

    def __init__(
        self,
        converter: type[Converter],
        *,
        families: Collection[str] = (),
        primitives: Collection[str] = (),
        dtypes: Collection[str] = (),
        names: Collection[str] = (),
        sample: int | None = None,
        expected: str | Path | None = None,
    ):
        if not (isinstance(converter, type) and issubclass(converter, Converter)):
            raise TypeError(
                f"Suite: converter should be a class that is a {Converter.__module__}."
                f"{Converter.__name__}, got {converter!r}. What to do: class MyConverter(Converter)"
            )
        chosen = {"family": families, "primitive": primitives, "dtype": dtypes, "name": names}
        for words in chosen.values():
            if isinstance(words, str):
                raise TypeError(f"Suite: a list of texts was expected, got the text {words!r}")
        self._converter = converter
        filters: dict[str, Any] = {argument: tuple(words) for argument, words in chosen.items()}
        selection = Selection(**filters, sample=sample, side=DIRECT)
        self._cells = {cell.harness.name: cell for cell in selection.cells()}
        if not self._cells:
            raise ValueError(
                f"Suite: no harness is left by {filters}. What to do: `python -m harnesses list` "
                "prints the names, and `--help` says how it chooses"
            )
        self._index = LedgerIndex(_limitations(expected))

    def __len__(self) -> int:
        """How many harnesses it has."""
        return len(self._cells)

    def test(self) -> Callable[..., None]:
        """The test, for a name of the test file that begins with `test_`: a case for each harness.

        A case that is declared to fail, and does, counts as xfailed; one that the converter
        declines, or that JAX does not define on the CPU, as skipped.
        """

        @pytest.mark.parametrize("harness", list(self._cells))
        def test_harness(harness: str, request: pytest.FixtureRequest) -> None:
            self._check(self._cells[harness], request.node.nodeid)

        return test_harness

    def _check(self, cell: Cell, test: str) -> None:
        row = row_of(cell, self._versions, **self._judge.run(cell))
        matching = self._index.matching(row)
        problem = check_cell(row, matching)
        if problem is not None:
            pytest.fail(f"{problem.message}\n    python -m pytest '{test}'", pytrace=False)
        if row["outcome"] == INAPPLICABLE:
            pytest.skip(str(row["message"]))
        if matching:
            pytest.xfail(f"{matching[0].reason} ({seen(row)})")

    @functools.cached_property
    def _judge(self) -> ConverterJudge:
        devices.prepare(("cpu",))
        return ConverterJudge(self._converter)

    @functools.cached_property
    def _versions(self) -> dict[str, Any]:
        name = f"{self._converter.__module__}:{self._converter.__qualname__}"
        return versions(None) | {"impl": name, "impl_versions": self._converter.versions()}


def _limitations(expected: str | Path | None) -> list[ledger.Limitation]:
    if expected is None:
        return []
    path = Path(expected)
    if path.is_dir():
        return ledger.load(path)
    return ledger.load_file(path) if path.exists() else []
