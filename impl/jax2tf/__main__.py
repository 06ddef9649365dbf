"""`python -m jax2tf explain | plan | supports | export | locate | run | versions`.

Tells what a function becomes for each target; prints what each pass makes of it; writes it as a
file of an engine; finds the line at which a file begins to differ from JAX; runs a program in which
jax.experimental.jax2tf is jax2tf; says what is installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import runpy
import sys

from jax2tf._src.api import drop_in, versions
from jax2tf._src.util import lazy_imports
from jax2tf._src.util.typing import PyTree


def main(argv: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    has_tensorflow = lazy_imports.has_tensorflow()
    if not has_tensorflow and argv and argv[0] not in _FREE:
        print(lazy_imports.missing_tensorflow(f"python -m jax2tf {argv[0]}"), file=sys.stderr)
        return 1
    parser = argparse.ArgumentParser(prog="python -m jax2tf", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for function in (explain, plan, supports, export, locate, run, versions_):
        name = function.__name__.rstrip("_")
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(command=function)
        if function in _ARGUMENTS and (has_tensorflow or function in (export, locate)):
            folder, add_arguments = _ARGUMENTS[function]
            getattr(_command(folder), add_arguments)(command)
        if function is run:
            usage = "python -m jax2tf run [-h] (SCRIPT | -m MODULE) [ARGUMENT ...]"
            command.usage = usage
            rest = argparse.REMAINDER
            command.add_argument("-m", dest="module", nargs=rest, help="a module, as python -m")
            command.add_argument("script", nargs=rest, help="a file of Python, and its arguments")
    options = parser.parse_args(argv)
    if options.command is run and not (options.module or options.script):
        commands.choices["run"].error("give a SCRIPT, or -m MODULE")
    return int(options.command(options))


def explain(options: argparse.Namespace) -> int:
    """Tells what a JAX function becomes for each target, and what it cannot become."""
    return _command("explain").run(options)


def plan(options: argparse.Namespace) -> int:
    """Prints the equations of a JAX function after each pass, and what lowers each of them."""
    return _command("explain").run_plan(options)


def supports(options: argparse.Namespace) -> int:
    """Tells which dtypes of a primitive or function of JAX each target supports, and why not."""
    return _command("explain").run_supports(options)


def export(options: argparse.Namespace) -> int:
    """Writes a JAX function as a file or folder of an engine, and runs it there."""
    return _command("export").run(options)


def locate(options: argparse.Namespace) -> int:
    """Finds the line at which a file, or a graph, begins to differ from JAX, and who is wrong."""
    return _command("locate").run(options)


# The commands that do not need TensorFlow.
_FREE = ("export", "locate", "versions", "-h", "--help")

# The folder of the command, and the function that adds its arguments.
_ARGUMENTS = {
    explain: ("explain", "add_arguments"),
    plan: ("explain", "add_plan_arguments"),
    supports: ("explain", "add_supports_arguments"),
    export: ("export", "add_arguments"),
    locate: ("locate", "add_arguments"),
}


def _command(folder: str) -> PyTree:
    """The module of a command."""
    return importlib.import_module(f"jax2tf._src.{folder}.command")


def run(options: argparse.Namespace) -> int:
    """Runs a program of Python in which jax.experimental.jax2tf is jax2tf."""
    drop_in.install()
    if options.module:
        if not _can_be_found(options.module[0]):
            print(
                f"python -m jax2tf run: there is no module {options.module[0]!r}; run this where "
                "it can be imported, such as the folder of its file",
                file=sys.stderr,
            )
            return 2
        sys.argv = options.module
        runpy.run_module(options.module[0], run_name="__main__", alter_sys=True)
        return 0
    script = options.script[0]
    is_program = os.path.isfile(script) or os.path.isfile(os.path.join(script, "__main__.py"))
    if not is_program:
        print(f"python -m jax2tf run: there is no file {script}", file=sys.stderr)
        return 2
    sys.argv = options.script
    if not sys.flags.safe_path:
        # As `python SCRIPT` has it: the script's folder, where -m has the current one.
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


def _can_be_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    # The package around it is not there, or the name is none.
    except (ModuleNotFoundError, ValueError):
        return False


def versions_(options: argparse.Namespace) -> int:
    """Prints what is installed of what jax2tf works with, and with which versions it was tested."""
    print(versions.table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
