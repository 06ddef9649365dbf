"""The commands: `python -m reports summary`, `tables`, `html`, `diff` and the others below."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from rich.console import Console

from harnesses.cell.pipes import CommandConsole, exit_with
from harnesses.harness import place
from reports.results import ResultsError

COMMANDS = {
    "summary": "how a run went, in counts",
    "tables": "write reports/tables/*.md, or --check that they are current",
    "check": "say whether each file of reports/tables is current, and made by a command",
    "call_tf": "write reports/tables/call_tf.md, or --check that it is current",
    "substrates": "write reports/tables/substrates.md, or --check that it is current",
    "consumers": "take rows of engines in, and write reports/tables/consumers.md",
    "libraries": "write reports/tables/libraries.md, or --check that it is current",
    "support": "write support/FAMILY.md: each primitive by target and dtype",
    "html": "one page to look at: primitives, modes and what came of them",
    "costs": "what harnesses cost, by which --shard divides a run",
    "merge": "the shards of one run as one results file; what is missing is counted",
    "diff": "what changed from one results file to another",
    "versions": "the same cells on several versions of JAX, TensorFlow and Python",
    "culprits": "who is off where JAX and the judged differ, by a third opinion",
    "engine_culprits": "which operation makes each mismatch of an engine, and who is wrong",
    "beside": "converters beside each other on the same harnesses, by family",
    "mutation": "whether the tests notice faults that are planted in the code",
    "planted": "whether the matrix notices faults of one dtype, value, axis or edge",
}
# Those that read runs of any converter, and no table of this project's.
OF_ANY_RUN = ("summary", "html", "costs", "merge", "diff", "versions", "culprits", "beside")
# Modules of reports.benchmarks.
BENCHMARKS = {
    "bench": "the converter beside jax.jit, in time and in graph nodes",
    "growth": "how conversion and calls grow with a program and with what it gets",
    "engines": "models in engines beside the same models of Keras: ops and time",
    "overhead": "a call of TensorFlow from JAX beside another call_tf",
    "twins": "libraries on the JAX substrate beside JAX by hand, and their imports",
    "endurance": "what 10,000 conversions leave behind, and eight threads that convert at once",
    "located": "whether locate finds faults that are planted into files and rules",
    "memory": "what saving, restoring and differentiating a large model take",
}


def main(arguments: list[str] | None = None, console: Console | None = None) -> int:
    """Runs one command; returns its exit status, 2 if it could not be run."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    # A command's module is imported when it is asked for: some of them need TensorFlow.
    for name, purpose in commands().items():
        subparser = subparsers.add_parser(name, help=purpose, description=purpose)
        if name in arguments[:1]:
            _module(name).add_arguments(subparser)
    options = parser.parse_args(arguments)
    console = console or CommandConsole()
    try:
        return _module(options.command).main(options, console)
    except ResultsError as problem:
        line = f"python -m reports {options.command}: {problem}"
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
        return 2


def commands() -> dict[str, str]:
    """The commands that there are: those about this project's own tables need its repository."""
    if place.IS_CHECKOUT:
        return COMMANDS | BENCHMARKS
    return {name: COMMANDS[name] for name in OF_ANY_RUN}


def _module(command: str) -> Any:
    package = f"{place.PREFIX}reports"
    if command in BENCHMARKS:
        package += ".benchmarks"
    return importlib.import_module(f"{package}.{command}")


if __name__ == "__main__":
    exit_with(main)
