"""`python -m reports libraries FILE ...`: what of libraries for TensorFlow runs without it.

Each file is what `python -m tests.substrates.libraries SUITE` has written: a row for each program
of a library and each place where it ran, with what differs from TensorFlow's own result. With
`--again` it is of some programs, run another time: its rows take the place of theirs.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harnesses.cell import origin
from reports import rendering
from reports.results import ResultsError

TABLE = "libraries.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="rows of a library")
    parser.add_argument("--again", action="store_true", help="the files are of some programs alone")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--check", action="store_true", help="say whether the table is current")


def main(options: argparse.Namespace, console: Console) -> int:
    data = rendering.read_data("libraries", options.into)
    for file in () if options.check else options.files:
        found = _figures(file)
        figures = gather(found)
        if options.again and found["library"] in data:
            figures = renewed(data[found["library"]], figures, found["rows"])
        data[found["library"]] = figures
    if not data and not options.check:
        raise ResultsError("there are no figures yet: name a file of rows")
    command = f"python -m reports libraries --into {options.into}"
    return rendering.write_or_check(library_files(data), options, console, command)


def files(folder: Path) -> dict[str, str]:
    """The files that this command writes, by name, made of the figures that `folder` holds."""
    return library_files(rendering.read_data("libraries", folder))


def _figures(file: Path) -> dict[str, Any]:
    made = "python -m tests.substrates.libraries SUITE writes one"
    if not file.is_file():
        raise ResultsError(f"{file} is no file: name one of a library's rows; {made}")
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        missing = {"library", "rows"} - found.keys()
    except (ValueError, AttributeError) as error:
        raise ResultsError(f"{file} is not of a library's rows ({error}); {made}") from error
    if missing:
        raise ResultsError(f"{file} has no {', '.join(sorted(missing))}; {made}")
    return found


def gather(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one library: counts by area and place, and what is not equal."""
    areas: dict[str, dict[str, list[int]]] = {}
    failures = []
    for row in sorted(found["rows"], key=lambda row: (row["program"], row["place"])):
        area = row["program"].partition(".")[0]
        count = areas.setdefault(area, {}).setdefault(row["place"], [0, 0])
        count[0] += 1
        count[1] += not row["wrong"]
        if row["wrong"]:
            failures.append([row["program"], row["place"], row["wrong"], row.get("reason", "")])
    programs = {row["program"].partition(":")[0] for row in found["rows"]}
    asked = collections.Counter(name.partition(".")[0] for name in found["names"])
    return {
        "version": found["version"],
        **_seen(found),
        "names": {
            area: [
                count,
                sum(name in programs for name in found["names"] if name.startswith(f"{area}.")),
            ]
            for area, count in sorted(asked.items())
        },
        "areas": dict(sorted(areas.items())),
        "failures": failures,
    }


def _seen(found: Mapping[str, Any]) -> dict[str, str]:
    """On which versions, when and on which commit; `unknown` where the file does not say."""
    return {key: found.get(key, origin.UNKNOWN) for key in ("jax", "python")} | origin.of(found)


def renewed(
    before: Mapping[str, Any], again: Mapping[str, Any], rows: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The figures of a library after some programs ran again.

    An area's place of which no fewer ran than before is what came of it now. Elsewhere the rows are
    of programs that are counted already: those that are not among the failures were equal. A place
    that ran as a whole has its own versions and date; the others keep theirs.
    """
    later = {**before.get("later", {}), **dict.fromkeys(_whole(before, again), _seen(again))}
    areas = {area: dict(counts) for area, counts in before["areas"].items()}
    failures = {(f[0], f[1]): f for f in before["failures"]}
    names = {a: [n[0], max(n[1], again["names"][a][1])] for a, n in before["names"].items()}
    for area, counts in again["areas"].items():
        for place, count in counts.items():
            known = areas.setdefault(area, {}).setdefault(place, [0, 0])
            now = [r for r in rows if r["place"] == place and r["program"].startswith(f"{area}.")]
            if count[0] >= known[0]:
                known = count
            else:
                wrong = sum((r["program"], place) in failures for r in now)
                known = [known[0], known[1] + wrong - (count[0] - count[1])]
            areas[area][place] = known
            for row in now:
                failures.pop((row["program"], place), None)
    failures |= {(f[0], f[1]): f for f in again["failures"]}
    return {
        "version": again["version"],
        **_seen(before),
        "later": dict(sorted(later.items())),
        "names": names,
        "areas": {area: dict(sorted(counts.items())) for area, counts in sorted(areas.items())},
        "failures": [failures[key] for key in sorted(failures)],
    }


def _whole(before: Mapping[str, Any], again: Mapping[str, Any]) -> set[str]:
    """The places of which no fewer programs ran than before, in each area."""

    def ran(figures: Mapping[str, Any], place: str) -> dict[str, int]:
        return {a: counts[place][0] for a, counts in figures["areas"].items() if place in counts}

    places = {place for counts in again["areas"].values() for place in counts}
    return {
        place
        for place in places
        if all(ran(again, place).get(a, 0) >= n for a, n in ran(before, place).items())
    }


def library_files(data: Mapping[str, Any]) -> dict[str, str]:
    """The table and its figures, by file name."""
    libraries = {
        name: {
            **library,
            "places": _places(library),
            "later": _by_stamp(library.get("later", {})),
            "ran": _total(library),
            "reasons": _grouped(f for f in library["failures"] if f[3]),
            "to_mend": _grouped([*f[:3], f[2]] for f in library["failures"] if not f[3]),
        }
        for name, library in sorted(data.items())
    }
    text = rendering.render(TABLE, libraries=libraries)
    ordered = dict(sorted(data.items()))
    return {TABLE: text, "libraries.json": json.dumps(ordered, indent=1) + "\n"}


def _by_stamp(later: Mapping[str, Mapping[str, str]]) -> list[tuple[list[str], Mapping[str, str]]]:
    """The places that ran later than the others, those of one run together, and that run."""
    runs: dict[str, tuple[list[str], Mapping[str, str]]] = {}
    for place, stamp in later.items():
        runs.setdefault(json.dumps(stamp), ([], stamp))[0].append(place)
    return [*runs.values()]


def _places(library: Mapping[str, Any]) -> list[str]:
    return sorted({place for counts in library["areas"].values() for place in counts})


def _total(library: Mapping[str, Any]) -> list[int]:
    """How many programs ran, in each place, and how many of these are equal."""
    counts = [count for of in library["areas"].values() for count in of.values()]
    return [sum(count[i] for count in counts) for i in (0, 1)]


def _grouped(failures: Iterable[Sequence[str]]) -> list[tuple[str, int, list[str]]]:
    """(why, in how many places, in which programs), the most frequent first."""
    programs: dict[str, list[str]] = {}
    for program, place, _, why in failures:
        programs.setdefault(why, []).append(f"{program} [{place}]")
    found = [(why, len(names), names) for why, names in programs.items()]
    return sorted(found, key=lambda cause: (-cause[1], cause[0]))
