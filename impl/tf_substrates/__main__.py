"""python -m tf_substrates rewrite PACKAGE --substrate jax --out FOLDER
python -m tf_substrates rewrite --out FOLDER
python -m tf_substrates check PACKAGE
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator

from tf_substrates.rewriter import project
from tf_substrates.rewriter.check import (
    MISSING,
    REFUSED,
    UNKNOWN,
    Missing,
    check,
    left_out,
    looked_at,
    name_of,
)
from tf_substrates.rewriter.companions import advice, companions
from tf_substrates.rewriter.packages import Planned, planned, write


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; 1 if `check` finds a missing name, 2 if what is given cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tf_substrates", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_rewrite = commands.add_parser("rewrite", help="write a package on a substrate into a folder")
    of_rewrite.add_argument(
        "package",
        nargs="?",
        help="an installed package, or the path of its folder; those of [tool.tf_substrates] in"
        " --project if not given",
    )
    of_rewrite.add_argument(
        "--substrate", choices=["numpy", "jax"], help="needed with PACKAGE; else the table's"
    )
    of_rewrite.add_argument("--out", required=True, help="the folder to write into")
    of_rewrite.add_argument("--name", help="its new name; PACKAGE_SUBSTRATE if not given")
    of_rewrite.add_argument("--omit", nargs="*", default=[], help="modules to leave out")
    of_rewrite.add_argument("--project", default="pyproject.toml", help="the file of the table")
    of_check = commands.add_parser("check", help="list what a package uses that is not here")
    of_check.add_argument("package", help="an installed package, or the path of its folder or file")
    of_check.add_argument("--substrate", choices=["numpy", "jax"], default="numpy")
    options = parser.parse_args(arguments)
    try:
        if options.command == "rewrite":
            for written in _rewritten(options, of_rewrite):
                print(written)
            return 0
        found = check(options.package, options.substrate)
        omitted = left_out(options.package, options.substrate)
        files = looked_at(options.package, options.substrate)
        name = name_of(options.package)
        others = advice(name, companions(files, [name]))
    # OSError: the disk is full, or a file is not there or may not be read or written.
    except (ModuleNotFoundError, OSError, SyntaxError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for missing in found:
        print(missing)
    for line in _counts(found):
        print(line)
    if omitted:
        print(
            f"{_several(len(omitted), 'module')} not looked at: `rewrite` leaves or replaces them"
        )
    if others:
        print(others)
    print(_verdict(found, len(files), bool(others)))
    return 1 if any(missing.kind == MISSING for missing in found) else 0


def _verdict(found: list[Missing], files: int, has_others: bool) -> str:
    looked = f"{files} file was" if files == 1 else f"{files} files were"
    if not files:
        return "verdict: there is no file of Python to look at"
    if any(missing.kind == MISSING for missing in found):
        return f"verdict: what is missing stops it ({looked} looked at)"
    if found:
        return f"verdict: what is listed fails where it runs, the rest is here ({looked} looked at)"
    together = ", if it is rewritten together with them" if has_others else ""
    return f"verdict: all that it uses of TensorFlow is here{together} ({looked} looked at)"


def _counts(found: list[Missing]) -> Iterator[str]:
    for kind in (MISSING, REFUSED, UNKNOWN):
        uses = [missing for missing in found if missing.kind == kind]
        if uses:
            names = {missing.name for missing in uses}
            places = "place" if len(uses) == 1 else "places"
            yield f"{_several(len(names), 'name')} {kind}, in {len(uses)} {places}"


def _several(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def _rewritten(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[pathlib.Path]:
    """What `rewrite` writes: the package that is given, or those of the project's table."""
    if options.package is not None:
        if options.substrate is None:
            parser.error("rewrite PACKAGE needs --substrate numpy or --substrate jax")
        plan = planned(options.package, options.substrate, options.out, options.omit, options.name)
        return _written([plan])
    if options.name is not None or options.omit:
        parser.error("--name and --omit go with PACKAGE; the project's table has `omit`")
    found = project.read(options.project)
    substrates = found.substrates if options.substrate is None else (options.substrate,)
    return _written([plan for name in substrates for plan in found.planned(name, options.out)])


def _written(plans: list[Planned]) -> list[pathlib.Path]:
    """Writes packages, and tells of libraries for TensorFlow that they import beside them."""
    paths = write(plans)
    together = {plan.original for plan in plans}
    told = {
        plan.original: advice(
            plan.original, companions(looked_at(plan.source, plan.substrate.name), together)
        )
        for plan in plans
    }
    for text in filter(None, told.values()):
        print(text, file=sys.stderr)
    return paths


if __name__ == "__main__":
    sys.exit(main())
