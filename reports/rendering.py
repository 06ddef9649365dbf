"""Markdown from templates: reports/templates/NAME.jinja with data becomes reports/tables/NAME."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from rich.console import Console

from harnesses.cell import origin

TABLES = Path(__file__).parent / "tables"

# How tables call what a row names.
_TITLES = {"jax": "JAX", "tensorflow": "TensorFlow", "python": "Python"}


def render(name: str, **data: Any) -> str:
    """The text of a table. A name that a template uses and nobody gave is an error."""
    return _environment().get_template(f"{name}.jinja").render(**data)


def write(files: Mapping[str, str], folder: Path = TABLES) -> list[Path]:
    """Writes the files whose text changed; returns their paths. A reader never sees half of one."""
    folder.mkdir(parents=True, exist_ok=True)
    written = stale(files, folder)
    for path in written:
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(files[path.name], encoding="utf-8")
        beside.replace(path)
    return written


def stale(files: Mapping[str, str], folder: Path = TABLES) -> list[Path]:
    """The paths at which another text stands than the one in `files`, or none."""
    paths = [folder / name for name in files]
    return [p for p in paths if not p.exists() or p.read_text(encoding="utf-8") != files[p.name]]


def write_or_check(
    files: Mapping[str, str], options: argparse.Namespace, console: Console, command: str
) -> int:
    """Writes the files into `options.into`; with `options.check` it names those that are stale.

    Returns the exit status: 1 if a file is stale. `command` writes them anew.
    """
    if options.check:
        paths = stale(files, options.into)
        for path in paths:
            console.print(f"{path} is stale. Write it anew with: {command}", soft_wrap=True)
        return 1 if paths else 0
    for path in write(files, options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 0


def read_data(name: str, folder: Path = TABLES) -> dict[str, Any]:
    """The figures kept beside the tables; empty if there are none yet."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def figures(data: Mapping[str, Any]) -> str:
    """The text of the file that `read_data` reads."""
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def table_with_figures(name: str, data: Mapping[str, Any], **more: Any) -> dict[str, str]:
    """The text of the table NAME.md and of its figures, by file name; `more` is for the table."""
    table = render(f"{name}.md", figures=data, **more, **data)
    return {f"{name}.json": figures(data), f"{name}.md": table}


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "cell": _cell,
        "seconds": _seconds,
        "ratio": _ratio,
        "day": _day,
        "commit": _commit,
        "seen": _seen,
    }
    return environment


def _cell(text: str) -> str:
    """Text for one cell of a table: on one line, without the character that ends a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _seconds(quartiles: Mapping[str, float]) -> str:
    """The median in the unit that gives one to three digits before the point."""
    value = quartiles["median"]
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{_three_digits(value / size)} {unit}"
    return f"{_three_digits(value / 1e-6)} µs"


def _ratio(quartiles: Mapping[str, float]) -> str:
    """`median (lower quartile to upper quartile)`."""
    low, median, high = (_three_digits(quartiles[k]) for k in ("low", "median", "high"))
    return f"{median} ({low} to {high})"


def _day(figures: Mapping[str, Any]) -> str:
    """When figures were seen; `by DAY` where only the day is known on which they came here."""
    seen = origin.of(figures)
    is_latest = seen["commit"].startswith(f"{origin.UNKNOWN};")
    return f"by {seen['date']}" if is_latest else seen["date"]


def _commit(figures: Mapping[str, Any]) -> str:
    """The commit on which figures were seen."""
    return origin.of(figures)["commit"]


def _seen(figures: Mapping[str, Any]) -> str:
    """On which versions, when and on which commit figures were seen, in a line."""
    versions = [f"{title} {figures[key]}" for key, title in _TITLES.items() if figures.get(key)]
    return f"{', '.join(versions)}; seen {_day(figures)} (commit {_commit(figures)})"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}"
