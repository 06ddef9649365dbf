"""Rewrites the ledger from the rows of a run, with the smallest conditions that explain them.

What still holds stays as it was written, comments and all. What fails without an entry, or fails
otherwise than its entry says, gets a new one: failing cells of one primitive that fail alike are
gathered, and one of them, described in full, is widened condition by condition for as long as no
cell is matched that passes or fails in another way. Reasons and links of the entries that it
replaces are kept; the reason of a new one is left empty, and the ledger does not load until a
person has filled it. The ledger of another implementation than this project's has what that said
of a failure (`words_of`) as the reason, as nobody here can say more of it.
"""

import dataclasses
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from packaging.version import Version

from harnesses.cell.names import JAX_SIDE
from harnesses.cell.outcomes import INAPPLICABLE
from harnesses.cell.rows import PARAMS_SEPARATOR, Row
from harnesses.harness import CONVERT, Harness
from limitations import ledger
from limitations.check import LedgerIndex, check
from limitations.ledger import Limitation

_HEADER = "Limitations of the family {family}; `limitations/__init__.py` says what the keys mean."

# Paths, names of dtypes and numbers make messages differ that say the same.
_ANYTHING = "{{}}"
_VARYING = re.compile(
    r"(?:/[\w.-]+)+\.py\b|\b(?:u?int|b?float|complex)\d\w*|\bbool\b|\d+|\{\{.*?\}\}"
)
# Characters of a list that stands in one line.
_LONGEST = 120
_NODE = re.compile(r"^\{\{function_node .*?\}\}\s*")
_PATH = re.compile(r"(?:/[\w.-]+){2,}")


def update(
    rows: Sequence[Row], limitations: Sequence[Limitation], harnesses: Sequence[Harness]
) -> tuple[list[Limitation], list[Limitation]]:
    """The limitations that stay (a tolerance tightened where it was loose), and the new ones.

    New ones have their family as `where`, and an empty reason unless they replace one that has.
    """
    staying = _staying(rows, limitations, harnesses)
    replaced = [limitation for limitation in limitations if limitation.where not in staying]
    index = LedgerIndex(staying.values())
    failing = [row for row in rows if row["outcome"] not in ("pass", INAPPLICABLE)]
    open_rows = [row for row in failing if not index.matching(row)]
    new = [_inheriting(entry, rows, replaced) for entry in explain(open_rows, rows)]
    return list(staying.values()), merged(new, rows)


def words_of(entry: Limitation, rows: Iterable[Row]) -> str:
    """What an implementation said of the first cell that the entry explains, for a reason."""
    row = next(row for row in rows if entry.explains(row))
    versions = (("JAX", row["jax"]), ("TensorFlow", row["tensorflow"]))
    known = [f"{name} {version}" for name, version in versions if version is not None]
    made_of = row["impl_versions"] or f"{row['impl']} of {', '.join(known)}"
    said = textwrap.shorten(_PATH.sub("...", _first_line(row)), 200, placeholder=" ...")
    return f"{made_of}: {said}"


def explain(failing: Sequence[Row], rows: Sequence[Row]) -> Iterator[Limitation]:
    """Limitations that match each of the `failing` rows once, and none of the other `rows`."""
    remaining = list(failing)
    while remaining:
        seed = remaining[0]
        alike = [row for row in remaining if _failure(row) == _failure(seed)]
        gathered = {id(row) for row in alike}
        others = [
            row for row in rows if row["primitive"] == seed["primitive"] and id(row) not in gathered
        ]
        entry = _widened(_exactly(seed), alike, others)
        if entry.ulps is not None:
            ulps = max(row["ulps"] for row in alike if entry.matches(row))
            entry = dataclasses.replace(entry, ulps=_round_up(ulps))
        yield entry
        remaining = [row for row in remaining if not entry.matches(row)]


def write(
    folder: Path,
    staying: Sequence[Limitation],
    new: Sequence[Limitation],
    direction: str = CONVERT,
) -> list[Path]:
    """Writes the files of a direction's ledger anew; returns those that changed."""
    families = {path.stem for path in ledger.files(folder, direction)}
    families |= {limitation.family for limitation in new}
    changed = []
    for family in sorted(families):
        path = ledger.path_of(folder, family)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        kept = {limitation.where: limitation for limitation in staying}
        added = [limitation for limitation in new if limitation.family == family]
        after = _rewritten(before, family, kept, added)
        if after != before and ledger.replace(path, after):
            changed.append(path)
    return changed


def _staying(
    rows: Sequence[Row], limitations: Sequence[Limitation], harnesses: Sequence[Harness]
) -> dict[str, Limitation]:
    """The limitations that the rows do not contradict, by id."""
    staying = {limitation.where: limitation for limitation in limitations}
    for finding in check(rows, limitations, harnesses, uncovered={}):
        limitation = staying.get(finding.subject)
        if limitation is not None and finding.kind == "too loose":
            seen = [row["ulps"] for row in rows if limitation.explains(row)]
            staying[limitation.where] = dataclasses.replace(limitation, ulps=_round_up(max(seen)))
        elif limitation is not None:
            del staying[limitation.where]
    # A cell that fails otherwise, or that two entries dispute, takes those entries along.
    for row in rows:
        matching = [limitation for limitation in staying.values() if limitation.matches(row)]
        disputed = len({limitation.expectation for limitation in matching}) > 1
        for limitation in matching:
            if disputed or not limitation.expects(row):
                staying.pop(limitation.where, None)
    return staying


def _inheriting(
    entry: Limitation, rows: Iterable[Row], replaced: Iterable[Limitation]
) -> Limitation:
    """The entry with reason, note and link of a replaced one that spoke of the same failure."""
    matched = [row for row in rows if entry.matches(row)]
    for old in replaced:
        alike = (old.expect, old.phase) == (entry.expect, entry.phase)
        if alike and any(old.matches(row) for row in matched):
            return dataclasses.replace(entry, reason=old.reason, note=old.note, link=old.link)
    return entry


def merged(entries: Iterable[Limitation], rows: Sequence[Row]) -> list[Limitation]:
    """The entries, with one in place of those that differ in their primitive and harness alone."""
    found: list[Limitation] = []
    for entry in entries:
        for number, other in enumerate(found):
            both = _both(other, entry)
            if both is not None and not any(
                both.matches(row) and not (other.matches(row) or entry.matches(row)) for row in rows
            ):
                found[number] = both
                break
        else:
            found.append(entry)
    return found


def _both(one: Limitation, other: Limitation) -> Limitation | None:
    """The entry in place of two that differ in primitive and harness alone; else None."""
    alike = dataclasses.replace(
        other, where=one.where, primitive=one.primitive, harness=one.harness
    )
    if alike != one or one.family != other.family or bool(one.harness) != bool(other.harness):
        return None
    return dataclasses.replace(
        one,
        primitive=_joined(one.primitive, other.primitive),
        harness=_joined(one.harness, other.harness),
    )


def _joined(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _failure(row: Row) -> tuple:
    """In what way a row fails; equal for rows that one limitation may explain together."""
    if row["outcome"] == "mismatch" and row["ulps"] is not None:
        return row["family"], row["primitive"], "mismatch", math.isinf(row["ulps"])
    keys = ("family", "primitive", "outcome", "phase", "exception")
    return (*(row[key] for key in keys), _pattern(row))


def _pattern(row: Row) -> str | None:
    """A regular expression for the first line of the row's message, without what varies in it."""
    if row["outcome"] not in ("error", "mismatch") or not row["message"]:
        return None
    # The primitive is a condition of its own; to shorten a line makes one space of several.
    line = re.sub(rf"'{re.escape(row['primitive'])}'|\s{{2,}}", _ANYTHING, _first_line(row))
    line = textwrap.shorten(_VARYING.sub(_ANYTHING, line), 100, placeholder="")
    # A space needs no escape, and the pattern is for people too.
    parts = (re.escape(part).replace(r"\ ", " ") for part in line.split(_ANYTHING))
    pattern = ".*".join(parts)
    return re.sub(r"\.\*(?:[\s,]*\.\*)+", ".*", pattern).strip()


def _first_line(row: Row) -> str:
    """The first line of the row's message, without the names of nodes before it in eager mode."""
    lines = (row["message"] or "").strip().splitlines() or [row["outcome"]]
    return _NODE.sub("", lines[0])


def _exactly(row: Row) -> Limitation:
    """The limitation that matches the row's cell alone and expects its failure."""
    by_ulps = row["outcome"] == "mismatch" and row["ulps"] is not None
    params = row["params"].split(PARAMS_SEPARATOR) if row["params"] else ()
    return Limitation(
        where=f"{ledger.file_of(row)}#",
        primitive=(row["primitive"],),
        expect=row["outcome"],
        reason="",
        harness=(row["harness"],),
        params=dict(param.split("=", 1) for param in params),
        dtypes=(row["dtype"],),
        # Of JAX's own side there is one lowering and one mode, which entries do not name.
        devices=(row["device"],),
        lowerings=() if row["phase"] == "trace" else (row["lowering"],),
        modes=() if row["phase"] == "trace" else (row["mode"],),
        jax=_series(row["jax"]),
        side=JAX_SIDE if row["phase"] == "trace" or row["mode"] == JAX_SIDE else "tensorflow",
        phase=row["phase"],
        exception=row["exception"],
        message=None if by_ulps else _pattern(row),
        ulps=row["ulps"] if by_ulps else None,
    )


def _widened(entry: Limitation, alike: Sequence[Row], others: Sequence[Row]) -> Limitation:
    """The entry with as few conditions as match none of `others`; lists grow towards `alike`."""

    def widest(candidates: Iterable[Limitation]) -> Limitation:
        # Without its mode an entry speaks of none that has to be asked for.
        speaking = (c for c in candidates if c.matches(alike[0]))
        fitting = (c for c in speaking if not any(c.matches(row) for row in others))
        return next(fitting, entry)

    def without(**condition: Any) -> Limitation:
        return dataclasses.replace(entry, **condition)

    case = entry.harness[0].removesuffix(entry.dtypes[0]) + "*"
    entry = widest([without(harness=()), without(harness=(case,))])
    entry = widest([without(jax=None)])
    for key in entry.params:
        fewer = {other: value for other, value in entry.params.items() if other != key}
        entry = widest([without(params=fewer)])
    for key, column in _LISTS.items():
        entry = widest([without(**{key: ()})])
        for value in dict.fromkeys(row[column] for row in alike):
            listed = getattr(entry, key)
            if listed and value not in listed:
                entry = _if_useful(widest([without(**{key: (*listed, value)})]), entry, alike)
    names = {row["harness"] for row in alike if entry.matches(row)}
    if entry.harness and len(names) == 1:
        return without(harness=tuple(names), dtypes=())
    return entry


def _if_useful(wider: Limitation, entry: Limitation, alike: Sequence[Row]) -> Limitation:
    """The wider entry if it matches more of the rows than the entry does."""
    return wider if _count(wider.matches, alike) > _count(entry.matches, alike) else entry


def _count(condition: Callable[[Row], bool], rows: Iterable[Row]) -> int:
    return sum(map(condition, rows))


# Conditions that are lists, each with the column that it is about, in the order of widening.
_LISTS = {"lowerings": "lowering", "devices": "device", "modes": "mode", "dtypes": "dtype"}


def _series(version: str) -> str:
    """The specifier of the minor series that a version belongs to."""
    parsed = Version(version)
    return f"=={parsed.major}.{parsed.minor}.*"


def _round_up(ulps: float) -> float:
    """The tolerance for a largest error: two leading digits are enough of it."""
    if ulps == 0 or math.isinf(ulps):
        return ulps
    step = 10.0 ** max(0, math.floor(math.log10(ulps)) - 1)
    return math.ceil(ulps / step) * step


def _rewritten(
    text: str, family: str, kept: dict[str, Limitation], added: Sequence[Limitation]
) -> str:
    """A file's text without the entries that are gone and with those that were added."""
    document = tomlkit.parse(text)
    if not text:
        document.add(tomlkit.comment(_HEADER.format(family=family)))
    tables = document.get("limitation", tomlkit.aot())
    for number in range(len(tables), 0, -1):
        limitation = kept.get(f"{family}#{number}")
        if limitation is None:
            del tables[number - 1]
        elif limitation.ulps is not None and tables[number - 1]["ulps"] != limitation.ulps:
            tables[number - 1]["ulps"] = _plain(limitation.ulps)
    for limitation in added:
        tables.append(_table(limitation))
    if "limitation" not in document and added:
        document.append("limitation", tables)
    # A blank line before each table that was added; one that follows a comment belongs to it.
    return re.sub(r"(?m)^(?!#)(.+)\n(?=\[\[)", r"\1\n\n", tomlkit.dumps(document))


def _table(limitation: Limitation) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key in ledger.KEYS:
        value = getattr(limitation, key)
        if key in ("primitive", "harness") and len(value) == 1:
            value = value[0]
        if key == "note" and limitation.ulps == math.inf:
            value = value or ""
        if key == "side" and value == "tensorflow":
            continue
        if key == "reason" or value not in (None, (), {}):
            table.add(key, _plain(value))
    return table


def _plain(value: Any) -> Any:
    """A field's value as TOML should write it."""
    if isinstance(value, tuple):
        array = tomlkit.item(list(value))
        return array.multiline(len(value) > 1 and len(array.as_string()) > _LONGEST)
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update(value)
        return table
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
