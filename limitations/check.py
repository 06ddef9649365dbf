"""Proves the ledger against the rows of a run, in both directions.

A cell that fails must be declared, and what is declared must fail, in the way that it says. What a
run did not execute is never judged: findings about whole limitations need all of their cells, and
findings about the database need all of its harnesses.
"""

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax
from jax.extend.core import primitives as jax_primitives

from harnesses.cell import outcomes
from harnesses.cell.cells import Cell, direction_of, mesh_modes_of, modes_of
from harnesses.cell.names import (
    CONSUMER_MODES,
    GRADIENT_MODES,
    JAX_SIDE,
    POLY,
    STABLEHLO,
    TAPE_MODES,
    UNDER_MODES,
)
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import VERSIONS, Row, row_of
from harnesses.harness import CONVERT, SUBSTRATES, Harness, public_names
from limitations.ledger import Limitation, load_uncovered
from limitations.tolerances import Tolerances

Key = tuple[str, str, str, str]

# Modes in which a whole database can be run, and no run has to.
_ON_REQUEST = {
    CONVERT: (*GRADIENT_MODES, POLY, STABLEHLO, *UNDER_MODES, *CONSUMER_MODES),
    SUBSTRATES: TAPE_MODES,
}

# Kinds of findings that are about one cell.
CELL_KINDS = frozenset({"undeclared", "otherwise", "conflict", "further"})


@dataclass(frozen=True)
class Finding:
    """Something that the ledger and the run disagree about."""

    kind: str
    subject: str  # a cell, or the id of a limitation, or the name of a primitive
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.message}"


def check(
    rows: Sequence[Row],
    limitations: Sequence[Limitation],
    harnesses: Sequence[Harness],
    uncovered: Mapping[str, str] | None = None,
    tolerances: Sequence[Tolerances] = (),
    elsewhere: Sequence[Harness] = (),
) -> list[Finding]:
    """Everything in which the rows and the ledger disagree; empty if each proves the other.

    Args:
      rows: what a run saw, one row a cell.
      limitations: the ledger.
      harnesses: the whole database, also of a run that chose a part of it.
      uncovered: reasons for primitives without a harness; by default those of the ledger's folder.
      tolerances: how far results that pass may be from JAX's, of each device.
      elsewhere: harnesses that this version of JAX does not run; limitations may name them.
    """
    if not rows:
        return [Finding("nothing executed", "run", "no cell was executed, so nothing is proved")]
    index = LedgerIndex(limitations)
    database = _Database(rows, harnesses, elsewhere)
    findings = []
    matched: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        matching = index.matching(row)
        if row["outcome"] != INAPPLICABLE:
            for limitation in matching:
                matched[limitation.where].append(row)
        problem = check_cell(row, matching, tolerances)
        # A limitation whose cells pass is one finding below, not one for each of them.
        if problem is not None and problem.kind != "declared":
            findings.append(problem)
    for limitation in limitations:
        if limitation.holds_for(rows[0]):
            findings += _check_limitation(limitation, matched[limitation.where], database)
    if database.is_complete and direction_of(rows[0]["lowering"]) == CONVERT:
        findings += check_coverage(harnesses, load_uncovered() if uncovered is None else uncovered)
    return findings


def check_cell(
    row: Row, matching: Sequence[Limitation], tolerances: Sequence[Tolerances] = ()
) -> Finding | None:
    """What is wrong with one cell, given all the limitations that match it."""
    cell = cell_name(row)
    if len({limitation.expectation for limitation in matching}) > 1:
        names = " and ".join(limitation.where for limitation in matching)
        return Finding("conflict", cell, f"{names} match it and expect different things")
    if row["outcome"] == INAPPLICABLE:
        return None
    if not matching:
        if row["outcome"] == "pass":
            return _check_distance(row, tolerances)
        return Finding("undeclared", cell, f"{seen(row)}; no limitation declares it")
    declared = f"{matching[0].where} declares {expected(matching[0])}"
    if row["outcome"] == "pass":
        return Finding("declared", cell, f"{declared}, but it passes")
    if not matching[0].expects(row):
        return Finding("otherwise", cell, f"{declared}, but it fails otherwise: {seen(row)}")
    return None


def _check_distance(row: Row, tolerances: Sequence[Tolerances]) -> Finding | None:
    """What is wrong with a cell that passes, given how far from JAX's its result may be."""
    allowed = min((each.allowed(row) for each in tolerances), default=math.inf)
    if row["ulps"] is None or row["ulps"] <= allowed:
        return None
    text = (
        f"passes, {row['ulps']:.6g} ULPs away, of {row['tolerance']:g} that its harness allows; "
        f"tolerances.toml allows {row['primitive']} of {row['dtype']} {allowed:g}, as it was nearer"
    )
    return Finding("further", cell_name(row), text)


class LedgerIndex:
    """Limitations by primitive, so that a row is held against the few that can match it."""

    def __init__(self, limitations: Iterable[Limitation]):
        self._by_primitive: dict[str, list[Limitation]] = collections.defaultdict(list)
        for limitation in limitations:
            for primitive in limitation.primitive:
                self._by_primitive[primitive].append(limitation)

    def matching(self, row: Row) -> list[Limitation]:
        """The limitations that match the row."""
        candidates = self._by_primitive.get(row["primitive"], ())
        return [limitation for limitation in candidates if limitation.matches(row)]


def cell_name(row: Row) -> str:
    """The cell's name, as `Cell` writes it."""
    return f"{row['harness']}-{row['device']}-{row['lowering']}-{row['mode']}"


def seen(row: Row) -> str:
    """How a cell failed, in words."""
    if row["outcome"] == "error":
        return f"error in phase {row['phase']}: {row['exception']}: {row['message']}"
    words = outcomes.in_words(row)
    return f"{row['outcome']}: {row['message']}{'; ' if words else ''}{words}"


def expected(limitation: Limitation) -> str:
    """How a limitation expects its cells to fail, in words."""
    parts = [limitation.expect]
    if limitation.expect == "error":
        parts.append(f"in phase {limitation.phase}: {limitation.exception}")
    if limitation.ulps is not None:
        parts.append(f"of at most {limitation.ulps:g} ULPs")
    if limitation.message is not None:
        parts.append(f"with a message like {limitation.message!r}")
    return " ".join(parts)


def names_of_jax() -> set[str]:
    """The names of the primitives and functions that the running JAX makes public."""
    public = [
        getattr(module, name)
        for module in (jax_primitives, jax.lax)
        for name in dir(module)
        if name.endswith("_p")
    ]
    return {primitive.name for primitive in public} | public_names()


def _check_limitation(
    limitation: Limitation, matched: Sequence[Row], database: "_Database"
) -> list[Finding]:
    """What is wrong with a limitation, given the rows that it matches."""

    def finding(kind: str, message: str) -> list[Finding]:
        return [Finding(kind, limitation.where, message)]

    if database.is_complete and not matched and not database.has_harness(limitation):
        return finding("unmatched", "no harness matches it; correct or delete it")
    if database.is_complete and len(limitation.harness) > 1:
        names = ", ".join(glob for glob in limitation.harness if not database.has(limitation, glob))
        if names:
            return finding("unmatched", f"no harness matches {names}; correct or delete that")
    passed = [row for row in matched if row["outcome"] == "pass"]
    if passed and len(passed) == len(matched):
        cells = f"all {len(passed)} cells that it matches pass, such as {cell_name(passed[0])}"
        return finding("passes", f"declares {expected(limitation)}, but {cells}; delete it")
    if passed:
        cells = f"{len(passed)} of the {len(matched)} cells that it matches pass"
        example = f"such as {cell_name(passed[0])}"
        return finding("too broad", f"{cells}, {example}; narrow its conditions")
    errors = [row["ulps"] for row in matched if row["ulps"] is not None]
    if limitation.ulps is not None and errors and database.executed_all(limitation):
        # Twice what was seen leaves room for other machines without hiding a change.
        needed = max(errors)
        if limitation.ulps > needed and limitation.ulps > math.ceil(2 * needed):
            text = f"allows {limitation.ulps:g} ULPs, but the largest error seen is {needed:g}"
            return finding("too loose", f"{text}; {math.ceil(2 * needed)} are enough")
    return []


def check_coverage(harnesses: Sequence[Harness], reasons: Mapping[str, str]) -> list[Finding]:
    """Primitives and functions with neither harness nor reason, and those with both."""
    # A class is covered by what its methods do.
    parts = (harness.primitive.split(".") for harness in harnesses)
    covered = {".".join(p[: i + 1]) for p in parts for i in range(len(p))}
    findings = []
    for primitive in sorted(names_of_jax()):
        if primitive not in covered and primitive not in reasons:
            text = "JAX has it, but there is neither a harness nor a reason in uncovered.toml"
            findings.append(Finding("uncovered", primitive, text))
        elif primitive in covered and primitive in reasons:
            text = "uncovered.toml gives a reason why it has no harness, but it has one"
            findings.append(Finding("covered", primitive, text))
    return findings


class _Database:
    """The cells that a run of the whole database would have had, on this run's side and devices."""

    def __init__(
        self, rows: Sequence[Row], harnesses: Sequence[Harness], elsewhere: Sequence[Harness]
    ):
        self._executed = {_key(row) for row in rows}
        self._versions = {key: rows[0][key] for key in VERSIONS}
        self._places = sorted({(row["device"], row["lowering"]) for row in rows})
        self._harnesses: dict[str, list[Harness]] = collections.defaultdict(list)
        self._elsewhere: dict[str, list[Harness]] = collections.defaultdict(list)
        for harness in harnesses:
            self._harnesses[harness.primitive].append(harness)
        for harness in elsewhere:
            self._elsewhere[harness.primitive].append(harness)
        self.is_complete = all(
            (harness.name, device, lowering, mode) in self._executed
            for harness, (device, lowering) in itertools.product(harnesses, self._places)
            for mode in modes_of(harness, lowering)
        )

    def executed_all(self, limitation: Limitation) -> bool:
        """Whether every cell that the limitation can match was executed."""
        return all(
            self._ran(row)
            for primitive in limitation.primitive
            for row in self._rows(limitation, self._harnesses.get(primitive, ()))
            if limitation.matches(row)
        )

    def has_harness(self, limitation: Limitation) -> bool:
        """Whether a harness matches, on whatever devices, lowerings and modes are declared."""
        anywhere = dataclasses.replace(
            limitation, devices=(), lowerings=(), modes=(), side=JAX_SIDE
        )
        return any(
            anywhere.matches(row)
            for primitive in limitation.primitive
            for harnesses in (self._harnesses, self._elsewhere)
            for row in self._rows(anywhere, harnesses.get(primitive, ()))
        )

    def has(self, limitation: Limitation, glob: str) -> bool:
        """Whether a harness of that name, which the limitation lists, matches."""
        return self.has_harness(dataclasses.replace(limitation, harness=(glob,)))

    def _rows(self, limitation: Limitation, harnesses: Sequence[Harness]) -> Iterator[Row]:
        """The rows of all cells that the harnesses whose names fit the limitation can have.

        They are made as they are asked for: a database has half a million, and one is often enough.
        """
        for harness in harnesses:
            if limitation.names(harness.name):
                for device, lowering in self._places:
                    for mode in _modes(harness, lowering):
                        yield row_of(Cell(harness, device, lowering, mode), self._versions)

    def _ran(self, row: Row) -> bool:
        return _key(row) in self._executed


def _modes(harness: Harness, lowering: str) -> tuple[str, ...]:
    """The modes that a harness can have: those of a whole run and those on request."""
    on_request = _ON_REQUEST.get(harness.direction, ())
    return (*modes_of(harness, lowering), *on_request, *mesh_modes_of(harness, lowering))


def _key(row: Row) -> Key:
    return row["harness"], row["device"], row["lowering"], row["mode"]
