"""`python -m reports substrates`: which of TensorFlow's symbols run without it, as Markdown.

reports/tables/substrates.md is made of the database of the third direction (harnesses/substrates/),
of its ledger (limitations/directions/substrates.toml), and of the reasons for symbols that are not
there or not asked about (limitations/symbols.toml).
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell.cells import Cell, modes_of
from harnesses.cell.names import EAGER, JAX_SIDE, ON_JAX, ON_NUMPY, SUBSTRATE_MODES
from harnesses.cell.rows import VERSIONS, Row, row_of
from harnesses.engine.adapter import Adapter
from harnesses.harness import SUBSTRATES, Harness, all_harnesses
from limitations.check import LedgerIndex
from limitations.ledger import Limitation, SymbolReason, load, load_symbol_reasons
from reports import directions, rendering
from reports.results import ResultsError

NAME, TABLE = "substrates", "substrates.md"
add_arguments = directions.add_arguments
# The columns: a substrate and a mode each.
PLACES = ((ON_NUMPY, EAGER), *((ON_JAX, mode) for mode in SUBSTRATE_MODES))
YES, PARTLY, NO, NONE = "yes", "partly", "no", "TensorFlow has none"

_NO_VERSIONS: Row = dict.fromkeys(VERSIONS)


@dataclass(frozen=True)
class SymbolRow:
    """A symbol that harnesses ask about, and how it goes in each place."""

    symbol: str
    word: str  # yes, partly or no
    dtypes: str
    places: Sequence[str]  # yes, partly, no, TensorFlow has none, "" where nothing is asked


def main(options: argparse.Namespace, console: Console) -> int:
    texts = _files(directions.runs_of(options, NAME, _harnesses()))
    return rendering.write_or_check(texts, options, console, "python -m reports substrates")


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, with the runs that `folder` keeps."""
    return _files(directions.kept_runs(NAME, folder))


def _harnesses() -> list[Harness]:
    return all_harnesses(jax_version=None, direction=SUBSTRATES)


def _files(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    ledger = load(direction=SUBSTRATES)
    return table_files(_harnesses(), ledger, load_symbol_reasons(), symbols(), runs)


def symbols() -> dict[str, Any]:
    """TensorFlow's public symbols, each with what the substrates have for it; `ABSENT` if none."""
    adapter = Adapter()
    root = adapter.substrate(ON_NUMPY)
    return {name: _found(root, name) for name in sorted(adapter.tensorflow_symbols())}


ABSENT = object()


def table_files(
    harnesses: Sequence[Harness],
    limitations: Sequence[Limitation],
    reasons: Sequence[SymbolReason],
    symbols: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """The file of the table, by name.

    Raises:
      ResultsError: a symbol is neither asked about nor has a reason, or a reason has no symbol.
    """
    # By the object that they ask about, which may have several names.
    asked: dict[int, list[Harness]] = collections.defaultdict(list)
    for harness in harnesses:
        asked[id(symbols[harness.primitive])].append(harness)
    index = LedgerIndex(limitations)
    rows, without = [], {}
    for symbol, found in symbols.items():
        if found is ABSENT:
            without[symbol] = "absent"
        elif id(found) not in asked:
            without[symbol] = "unasked"
        else:
            rows.append(_row(symbol, asked[id(found)], index))
    given = _given(without, reasons)
    text = rendering.render(
        TABLE,
        places=[_heading(*place) for place in PLACES],
        rows=rows,
        words=collections.Counter(row.word for row in rows),
        absent=[(r.reason, names) for r, names in given.items() if r.kind == "absent"],
        unasked=[(r.reason, names) for r, names in given.items() if r.kind == "unasked"],
        symbols=len(symbols),
        there=sum(found is not ABSENT for found in symbols.values()),
        harnesses=len(harnesses),
        shares=_shares(harnesses, index),
        runs=directions.counted(runs, harnesses),
        limitations=sorted(limitations, key=lambda limitation: limitation.primitive),
    )
    return {TABLE: text} | directions.files(NAME, runs)


def _found(owner: Any, name: str) -> Any:
    for part in name.split(".")[1:]:
        try:
            owner = getattr(owner, part)
        except AttributeError:
            return ABSENT
    return owner


def _row(symbol: str, harnesses: Sequence[Harness], index: LedgerIndex) -> SymbolRow:
    places = [_word(place, harnesses, index) for place in PLACES]
    said = {word for word in places if word not in ("", NONE)}
    whole = said.pop() if len(said) == 1 else PARTLY
    return SymbolRow(
        symbol, whole, ", ".join(dict.fromkeys(h.dtype.name for h in harnesses)), places
    )


def _word(place: tuple[str, str], harnesses: Sequence[Harness], index: LedgerIndex) -> str:
    outcomes = {
        _outcome(harness, place, index)
        for harness in harnesses
        if place[1] in modes_of(harness, place[0])
    }
    return PARTLY if len(outcomes) > 1 else next(iter(outcomes), "")


def _outcome(harness: Harness, place: tuple[str, str], index: LedgerIndex) -> str:
    matching = index.matching(row_of(Cell(harness, "cpu", *place), _NO_VERSIONS))
    if not matching:
        return YES
    return NONE if matching[0].side == JAX_SIDE else NO


def _shares(harnesses: Sequence[Harness], index: LedgerIndex) -> Mapping[str, tuple[int, int]]:
    """For each place, how many of its cells are as TensorFlow, of those that TensorFlow has."""
    shares = {}
    for place in PLACES:
        asked = [h for h in harnesses if place[1] in modes_of(h, place[0])]
        outcomes = collections.Counter(_outcome(h, place, index) for h in asked)
        shares[_heading(*place)] = (outcomes[YES], len(asked) - outcomes[NONE])
    return shares


def _heading(lowering: str, mode: str) -> str:
    return "NumPy" if lowering == ON_NUMPY else f"JAX {mode}"


def _given(
    without: Mapping[str, str], reasons: Sequence[SymbolReason]
) -> dict[SymbolReason, list[str]]:
    """The symbols that each reason explains; the first that matches counts."""
    given: dict[SymbolReason, list[str]] = {reason: [] for reason in reasons}
    problems = []
    for symbol, kind in without.items():
        reason = next((r for r in reasons if r.explains(kind, symbol)), None)
        if reason is None:
            problems.append(f"{symbol} is {kind} and has no reason")
        else:
            given[reason].append(symbol)
    problems += _needless(given)
    if problems:
        raise ResultsError("limitations/symbols.toml: " + "; ".join(problems))
    return given


def _needless(given: Mapping[SymbolReason, Sequence[str]]) -> Iterator[str]:
    for reason, names in given.items():
        if not names:
            yield f"{reason.kind} {', '.join(reason.symbols)}: no symbol is left for this reason"
