"""What a run found, as reports/tables/mutation.json, and as the table that is made of it."""

from __future__ import annotations

import ast
import collections
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports import rendering
from reports.mutation.rows import CAUGHT, Row

NAME = "mutation"
EQUIVALENTS = Path(__file__).with_name("equivalent.toml")
PACKAGE = Path(__file__).parents[2] / "impl" / "jax2tf"


@dataclass(frozen=True)
class Equivalent:
    """A fault that changes nothing that anyone could see, and why."""

    module: str
    function: str
    before: str
    after: str
    reason: str

    @property
    def still_there(self) -> bool:
        """Whether the line stands in that function."""
        path = PACKAGE / self.module
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = [line.strip() for line in _function(source, self.function)]
        return self.before in lines


def equivalents(path: Path = EQUIVALENTS) -> list[Equivalent]:
    """The faults that are explained. One without a reason is refused."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    found = [Equivalent(**entry) for entry in entries]
    for entry in found:
        if not entry.reason.strip():
            raise ValueError(f"{path}: {entry.module} {entry.before!r} has no reason")
    return found


def data_of(found: Sequence[Row], seed: int, sample: int, versions: Row) -> dict[str, Any]:
    """What is kept of a run, which tried all of a sample or the first of it."""
    modules = collections.Counter(row["module"] for row in found)
    survivors = [row for row in found if row["outcome"] not in CAUGHT]
    missed = collections.Counter(row["module"] for row in survivors)
    return {
        **versions,
        "seed": seed,
        "sample": sample,
        "seconds": round(sum(row["processor"] for row in found) / max(1, len(found)), 1),
        "modules": {module: [modules[module], missed[module]] for module in sorted(modules)},
        "survivors": [_kept(row) for row in survivors],
    }


def read(folder: Path = rendering.TABLES) -> dict[str, Any]:
    """What is kept of the last run."""
    return rendering.read_data(NAME, folder)


def files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its data, by file name."""
    explained, unexplained = _split(data, equivalents())
    equal = collections.Counter(survivor["module"] for survivor, _ in explained)
    rows = [
        (module, tried, tried - missed, equal[module], missed - equal[module])
        for module, (tried, missed) in data["modules"].items()
    ]
    tried, caught, equivalent, survived = (sum(row[i] for row in rows) for i in range(1, 5))
    text = rendering.render(
        f"{NAME}.md",
        data=data,
        rows=rows,
        explained=explained,
        survivors=unexplained,
        totals=(tried, caught, equivalent, survived),
        score=score(data),
    )
    return {f"{NAME}.md": text, f"{NAME}.json": rendering.figures(data)}


def score(data: Mapping[str, Any]) -> float:
    """The share that was caught of the mutants that are not explained as equivalent."""
    tried = sum(tried for tried, _ in data["modules"].values())
    explained, unexplained = _split(data, equivalents())
    caught = tried - len(explained) - len(unexplained)
    return caught / max(1, tried - len(explained))


def unexplained(data: Mapping[str, Any]) -> list[Row]:
    """The survivors that no entry explains."""
    return _split(data, equivalents())[1]


def is_explained(row: Row) -> bool:
    """Whether an entry says that the mutant of a row is equivalent."""
    return bool(_split({"survivors": [_kept(row)]}, equivalents())[0])


def _split(
    data: Mapping[str, Any], entries: Sequence[Equivalent]
) -> tuple[list[tuple[Row, str]], list[Row]]:
    """The survivors that are explained, with the reason, and the others."""
    reasons = {(e.module, e.function, e.before, e.after): e.reason for e in entries}
    explained, others = [], []
    for row in data["survivors"]:
        reason = reasons.get((row["module"], row["function"], row["before"], row["after"]))
        if reason is None:
            others.append(row)
        else:
            explained.append((row, reason))
    return explained, others


def _kept(row: Row) -> Row:
    before, after = (
        "\n".join(line[1:].strip() for line in row["diff"] if line[0] == sign).strip()
        for sign in "-+"
    )
    kept = {key: row[key] for key in ("mutant", "module", "function", "line")}
    return kept | {"before": before, "after": after}


def _function(source: str, name: str) -> Sequence[str]:
    """The lines of a function by its qualified name; all lines for "", none if there is none."""
    lines = source.splitlines()
    if not name:
        return lines
    return next(
        (lines[a:b] for found, a, b in _functions(ast.parse(source), "") if found == name), []
    )


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[str, int, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{outer}{child.name}"
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            yield name, first - 1, child.end_lineno or child.lineno
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, outer)
