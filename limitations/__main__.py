"""`python -m limitations check | update`: hold the ledger against the results of a run."""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path

from harnesses.cell import journal
from harnesses.cell.journal import ResultsError
from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.cell.pipes import exit_with
from harnesses.harness import CONVERT, DIRECTIONS, all_harnesses, harnesses_elsewhere, place
from limitations import tolerances
from limitations.check import check
from limitations.ledger import FOLDER, LedgerError, Limitation, folder_of, load, load_uncovered
from limitations.update import update, words_of, write


def main(argv: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m limitations", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for function in (check_, update_):
        command = commands.add_parser(function.__name__.rstrip("_"), help=function.__doc__)
        command.add_argument("--results", type=Path, action="append", help="file of a run's rows")
        command.add_argument("--ledger", type=Path, help="folder of the entries")
        command.add_argument("--direction", default=CONVERT, choices=DIRECTIONS)
        if function is update_:
            command.add_argument(
                "--reason",
                default="",
                help="the reason of every new entry (of another implementation: its own message)",
            )
        command.set_defaults(command=function)
    options = parser.parse_args(argv)
    options.results = options.results or [journal.FOLDER / "cpu.jsonl"]
    try:
        options.ledger_given = options.ledger is not None
        options.ledger = options.ledger or _folder(options.results[0])
        return options.command(options)
    except (LedgerError, ResultsError) as error:
        print(error, file=sys.stderr)
        return 1


def _folder(results: Path) -> Path:
    """The folder of the ledger of what the rows are of."""
    rows = journal.read(results)
    return folder_of(rows[0]["impl"] if rows else None)


def check_(options: argparse.Namespace) -> int:
    """Prints everything in which the ledger and the results disagree."""
    limitations = load(options.ledger, options.direction)
    harnesses = all_harnesses(direction=options.direction)
    uncovered = load_uncovered(options.ledger if options.ledger_given else None)
    distances = _tolerances(options)
    elsewhere = harnesses_elsewhere(options.direction)
    found = 0
    for path in options.results:
        for finding in check(
            journal.read(path), limitations, harnesses, uncovered, distances, elsewhere
        ):
            print(finding)
            found += 1
    print(f"{len(limitations)} limitations, {found} findings", file=sys.stderr)
    return 1 if found else 0


def update_(options: argparse.Namespace) -> int:
    """Rewrites the entries that the results contradict, and adds those that they call for; tightens
    the tolerances of what passes.
    """
    if not place.IS_CHECKOUT and options.ledger.is_relative_to(FOLDER):
        print(
            f"{options.ledger} came with the judge and is not rewritten. Give a folder of your own "
            f"by --ledger, such as {place.LEDGERS / options.ledger.name}",
            file=sys.stderr,
        )
        return 1
    rows = [row for path in options.results for row in journal.read(path)]
    limitations = load(options.ledger, options.direction)
    harnesses = all_harnesses(direction=options.direction)
    staying, new = update(rows, limitations, harnesses)
    # Of an implementation that is not this project's nobody here can say more than it says itself.
    speaks = bool(rows) and rows[0]["impl"] not in (None, DEFAULT_IMPLEMENTATION)
    new = [
        with_reason(entry, options.reason or (words_of(entry, rows) if speaks else ""))
        for entry in new
    ]
    options.ledger.mkdir(parents=True, exist_ok=True)
    changed = write(options.ledger, staying, new, options.direction)
    if options.direction == CONVERT:
        whole = tolerances.whole_primitives(rows, harnesses)
        distances = tolerances.tightened(_tolerances(options), rows, whole)
        changed += tolerances.write(options.ledger, distances)
    for path in changed:
        print(path)
    unreasoned = sum(not limitation.reason for limitation in new)
    print(f"{len(staying)} entries stay, {len(new)} are new; {unreasoned} need a reason")
    return 0


def _tolerances(options: argparse.Namespace) -> list[tolerances.Tolerances]:
    return tolerances.load(options.ledger) if options.direction == CONVERT else []


def with_reason(entry: Limitation, reason: str) -> Limitation:
    """The entry with the reason where it has none; an unbounded error needs a note too."""
    note = entry.note or (reason or None if entry.ulps == math.inf else None)
    return replace(entry, reason=entry.reason or reason, note=note)


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
