"""Parts of the cases of each test, and another order of them, for the two runs of CI."""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Collection


def share_of(text: str) -> int:
    """The N of 1/N.

    Raises:
      argparse.ArgumentTypeError: the text is of another form, or N is not positive.
    """
    one, _, number = text.partition("/")
    if one != "1" or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"expected 1/N, such as 1/3, got {text}")
    return int(number)


def some_cases(names: list[str], share: int) -> tuple[list[str], list[str]]:
    """Of each test one case in `share`, at least one, and the cases that are left out.

    The choice depends on a case's name only, so a new case changes none of the others; a test of
    which no case is chosen keeps its first. The matrix keeps its cells: it has `--sample` for that.

    Args:
      names: of the cases, as `file::test[case]`, in the order in which they are to run.
      share: 1 keeps every case.
    """

    def is_chosen(name: str) -> bool:
        return zlib.crc32(name.encode()) % share == 0 or _is_cell(name)

    has_case = {_test_of(name) for name in names if is_chosen(name)}
    kept = []
    for name in names:
        if is_chosen(name) or _test_of(name) not in has_case:
            has_case.add(_test_of(name))
            kept.append(name)
    return kept, sorted(set(names) - set(kept))


def other_cases(
    names: list[str], share: int, whole: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """The cases that `some_cases` leaves out, and the cases that this run leaves out in turn.

    Between the two runs every case is run. Cells of the matrix are run in both, and so is a test of
    which `some_cases` leaves out no case, such as a test of one case.

    Args:
      names: of the cases, in the order in which they are to run.
      share: as `some_cases` takes it.
      whole: cases that only this run has, and keeps.
    """
    left_out = set(some_cases(names, share)[1])
    split = {_test_of(name) for name in left_out}
    kept = [
        name
        for name in names
        if name in left_out or name in whole or _test_of(name) not in split or _is_cell(name)
    ]
    return kept, sorted(set(names) - set(kept))


def shuffled(names: list[str], seed: int) -> list[str]:
    """The cases in another order: files, and the cases of each file. Cells of the matrix come last.

    A file stays together, as what its tests import and compile is shared.
    """
    rng = random.Random(seed)
    by_file: dict[str, list[str]] = {}
    for name in names:
        by_file.setdefault(name.partition("::")[0], []).append(name)
    cells = [name for name in names if _is_cell(name)]
    files = [cases for cases in by_file.values() if not _is_cell(cases[0])]
    rng.shuffle(files)
    for cases in files:
        rng.shuffle(cases)
    return [*(name for cases in files for name in cases), *cells]


def _is_cell(name: str) -> bool:
    return name.startswith("harnesses/engine/test_matrix.py::")


def _test_of(name: str) -> str:
    return name.partition("[")[0]
