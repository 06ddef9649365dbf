"""`python -m tests.substrates.libraries LIBRARY`: runs a library's programs, outside of CI.

Each place of a program is compared with TensorFlow's own result. The rows go into a file, of which
`python -m reports libraries` makes the table.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import pathlib
import subprocess
import sys
from typing import Any

from tests.substrates.libraries import programs

SUITES = ("quant_finance", "probability", "gaussian_processes", "graphics")


def main(arguments: list[str] | None = None) -> int:
    """Prints what is wrong and how many places are equal; 1 if one is not and has no reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--on", choices=["tensorflow", "numpy", "jax"], nargs="*")
    parser.add_argument("--only", default="", help="programs with this in their names")
    parser.add_argument("--place", nargs="*", default=(), help="these places alone")
    parser.add_argument("--folder", default="build/libraries", help="where results are kept")
    options = parser.parse_args(arguments)
    on = options.on or ["tensorflow", "numpy", "jax"]
    if len(on) > 1:  # each in a process of its own, so that TensorFlow is in one alone
        given = list(sys.argv[1:] if arguments is None else arguments)
        if options.on:
            at = given.index("--on")
            del given[at : at + 1 + len(on)]
        command = [sys.executable, "-m", "tests.substrates.libraries", *given, "--on"]
        return max([subprocess.run([*command, place]).returncode for place in on])
    suite = importlib.import_module(f"tests.substrates.libraries.{options.suite}").SUITE
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    expected = folder / f"{options.suite}.pickle"
    if on == ["tensorflow"]:
        programs.on_tensorflow(suite, expected, options.only)
        return 0
    return _on_substrate(suite, on[0], expected, folder / f"{options.suite}.json", options)


def _on_substrate(
    suite: programs.Suite, substrate: str, expected: pathlib.Path, rows: pathlib.Path, options: Any
) -> int:
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    to_mend = 0
    for row in programs.on_substrate(suite, substrate, expected, options.only, options.place):
        programs.add_row(rows, suite, expected, row)
        counts[row["place"]][not row["wrong"]] += 1
        to_mend += bool(row["to mend"])
        if row["wrong"] or row["to mend"]:
            why = f" ({row['reason']})" if row["reason"] else ""
            print(
                f"{row['program']} [{row['place']}]: {row['to mend'] or row['wrong']}{why}",
                flush=True,
            )
    for place, count in counts.items():
        print(f"{place}: {count[True]} of {count.total()} programs are equal to TensorFlow's")
    return 1 if to_mend else 0


if __name__ == "__main__":
    sys.exit(main())
