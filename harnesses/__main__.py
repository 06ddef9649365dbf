"""`python -m harnesses list | show | gaps | run | locate | shrink | probe`.

Look at the database, and run its cells.
"""

import argparse
import collections
import os
import signal
import sys
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.cell.pipes import CommandConsole, RunConsole, exit_with
from harnesses.engine.options import TargetError, add_options, selection
from harnesses.harness import Arg, Harness, all_harnesses, place
from limitations.ledger import load_gap_reasons

_MATRIX = Path(__file__).parent / "engine" / "test_matrix.py"


_WORKERS = (
    "worker processes (default: one a core; none for a single cell, which is then not isolated)"
)
_RAY = "run on a Ray cluster: its address, or `local` for one of this machine's processes"


def main(argv: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(argv)
    return options.command(options, argv[1:])


def list_(options: argparse.Namespace, argv: list[str]) -> int:
    """Prints the names of the chosen harnesses, and how many there are of each family."""
    chosen = selection(options).harnesses()
    for harness in chosen:
        print(harness.name)
    families = collections.Counter(harness.family for harness in chosen)
    counts = ", ".join(f"{family} {count}" for family, count in families.items())
    print(f"{len(chosen)} harnesses: {counts}", file=sys.stderr)
    return 0 if chosen else 1


def show(options: argparse.Namespace, argv: list[str]) -> int:
    """Prints what each chosen harness is, and the jaxpr that it makes."""
    chosen = selection(options).harnesses()
    for harness in chosen:
        _show(harness, CommandConsole())
    return 0 if chosen else 1


def gaps(options: argparse.Namespace, argv: list[str]) -> int:
    """Prints what JAX accepts and neither a harness asks about nor a reason leaves out."""
    from harnesses.engine.gaps import find

    chosen = selection(options)
    primitives = {harness.primitive for harness in chosen.harnesses()}
    reasons = load_gap_reasons(options.ledger and Path(options.ledger))
    counts = dict.fromkeys(reasons, 0)
    left = 0
    for gap in find(harness for harness in all_harnesses() if harness.primitive in primitives):
        reason = next((r for r in reasons if r.explains(gap.primitive, gap.what)), None)
        if reason is None:
            print(gap, flush=True)
            left += 1
        else:
            counts[reason] += 1
    needless = [r for r in reasons if not counts[r]] if chosen.is_full else []
    for reason in needless:
        print(f"a reason in gaps.toml is of no gap: {reason.reason}")
    explained = f"{sum(counts.values())} more with a reason in gaps.toml"
    print(f"{len(primitives)} primitives: {left} gaps, {explained}", file=sys.stderr)
    return 1 if left or needless or not primitives else 0


def run(options: argparse.Namespace, argv: list[str]) -> int:
    """Runs the chosen cells through pytest; the exit status is 0 if all ran and nothing is red."""
    import pytest

    from harnesses.engine.progress import ProgressBar

    # What TensorFlow logs in C++ comes as an exception too where it matters.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    root = str(place.ROOT)
    # Workers are new processes: they find the implementation where this one does.
    os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, sys.path)])
    if options.ray is not None:
        return _run_on_ray(options)
    # What a scheduler or `timeout` sends ends the run as Ctrl-C does, with the counts.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bar = ProgressBar(RunConsole())
    status = pytest.main(
        [
            str(_MATRIX),
            f"--rootdir={root}",
            # The hooks alone: what the other tests need, this run does not have to import.
            "--noconftest",
            f"-p{place.PREFIX}harnesses.engine.plugin",
            "-pno:terminal",
            "-oaddopts=--import-mode=importlib",
            "-pno:cacheprovider",
            # Its two collections of garbage take a second, to tell of what no plugin prints.
            "-pno:unraisableexception",
            *argv,
            f"-n{_workers(options)}",
        ],
        plugins=[bar],
    )
    return int(status)


def locate(options: argparse.Namespace, argv: list[str]) -> int:
    """Finds the equation at which a cell begins to differ from JAX, and who is wrong."""
    from harnesses.engine import located
    from harnesses.engine.progress import print_red

    try:
        found = located.located(options.cell, options.impl)
    except located.CellError as error:
        print_red(CommandConsole(), str(error))
        return 2
    print(found)
    if options.html:
        Path(options.html).write_text(found.html(), encoding="utf-8")
    return 0


def shrink(options: argparse.Namespace, argv: list[str]) -> int:
    """Finds the smallest program that goes wrong as a cell, or a function, does."""
    from harnesses.engine.progress import print_red
    from harnesses.engine.shrinking import cells, command

    try:
        return command.run(options, CommandConsole())
    except cells.CellError as error:
        print_red(CommandConsole(), str(error))
        return 2


def probe(options: argparse.Namespace, argv: list[str]) -> int:
    """Tries TensorFlow's ops in an engine, and writes the table of those that it takes."""
    from harnesses.engine.consumers import EngineError
    from harnesses.engine.progress import print_red
    from harnesses.probes import command

    try:
        return command.run(options, CommandConsole())
    except EngineError as error:
        print_red(CommandConsole(), str(error))
        return 2


def _run_on_ray(options: argparse.Namespace) -> int:
    from harnesses.engine import fleet
    from harnesses.engine.plugin import REFUSALS
    from harnesses.engine.progress import print_red

    try:
        return fleet.run(options, RunConsole())
    except (fleet.FleetError, *REFUSALS) as error:
        print_red(CommandConsole(), str(error))
        return 2


def _workers(options: argparse.Namespace) -> str:
    """How many worker processes a run takes where `-n` does not say."""
    if options.n is not None:
        return options.n
    try:
        cells = len(selection(options).cells())
    except TargetError:  # pytest's hooks say what is wrong
        cells = 0
    # Starting a worker takes longer than most cells.
    return str(min(os.cpu_count() or 1, cells)) if cells > 1 else "0"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harnesses", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for function in (list_, show, gaps, run):
        command = commands.add_parser(function.__name__.rstrip("_"), help=function.__doc__)
        add_options(command.add_argument)
        command.set_defaults(command=function)
        if function is run:
            command.add_argument("-n", help=_WORKERS)
            command.add_argument("--ray", metavar="ADDRESS", help=_RAY)
    _add_locate(commands)
    _add_shrink(commands)
    _add_probe(commands)
    return parser


def _add_locate(commands: Any) -> None:
    parser = commands.add_parser("locate", help=locate.__doc__)
    parser.add_argument("cell", metavar="CELL", help="as sin_float32-cpu-xla-litert")
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="the module to ask")
    parser.add_argument("--html", metavar="FILE", help="write a page with all equations, too")
    parser.set_defaults(command=locate)


def _add_shrink(commands: Any) -> None:
    from harnesses.engine.shrinking import options

    parser = commands.add_parser("shrink", help=shrink.__doc__)
    options.add_options(parser)
    parser.set_defaults(command=shrink)


def _add_probe(commands: Any) -> None:
    from harnesses.probes import command

    parser = commands.add_parser("probe", help=probe.__doc__)
    command.add_options(parser.add_argument)
    parser.set_defaults(command=probe)


def _show(harness: Harness, console: Console) -> None:
    table = Table(title=harness.name, title_justify="left", show_header=False)
    for key in ("family", "primitive", "dtype", "params", "x64", "ulps", "scale", "tags", "where"):
        table.add_row(key, str(getattr(harness, key)))
    leaves = jax.tree.leaves(tuple(harness.args), is_leaf=lambda node: isinstance(node, Arg))
    for index, arg in enumerate(leaves):
        table.add_row(f"argument {index}", str(arg))
    with jax.enable_x64(harness.x64):
        table.add_row("jaxpr", str(jax.make_jaxpr(harness.fun)(*harness.make_args())))
    console.print(table)


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1:]))
