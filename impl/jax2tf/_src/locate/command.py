"""`python -m jax2tf locate` calls the public function from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from jax2tf._src.api import command_line
from jax2tf._src.export import checkpoints, command
from jax2tf._src.export.formats import FORMATS
from jax2tf._src.locate.answer import Party
from jax2tf._src.locate.locating import locate
from jax2tf._src.util.typing import PyTree

_EXAMPLE = """
example:
  python -m jax2tf locate package.model:predict --params weights.safetensors \\
      --input x=b,224,224,3:float32 --file model.onnx --html page.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    command_line.add_function(parser)
    other = parser.add_mutually_exclusive_group(required=True)
    other.add_argument("--file", metavar="PATH", help="the file or folder to compare with JAX")
    other.add_argument(
        "--target",
        help="a graph to compare with JAX: graph, compiled, eager, native, or the name of a target",
    )
    parser.add_argument("--format", choices=list(FORMATS), help="in place of the path's suffix")
    parser.add_argument(
        "--values",
        metavar="FILE",
        help="an .npz file with an array for each input; default: random",
    )
    parser.add_argument(
        "--option",
        dest="options",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option with which the file was exported, as quantize=float16",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with all equations, too")
    parser.add_argument("--json", metavar="FILE", help="write the whole answer as JSON, too")
    parser.add_argument(
        "--overlay", metavar="FILE", help="write node data for Model Explorer, too (.json)"
    )


def run(options: argparse.Namespace) -> int:
    """Prints the answer; the exit status is 1 if an equation, or the file, is wrong."""
    try:
        specs = command_line.specs(options.inputs)
        found = locate(
            command_line.function(options.function),
            options.params,
            specs,
            options.file or options.target,
            _values(options.values, specs),
            format=options.format,
            **dict(map(command.option, options.options)),
        )
    except Exception as error:
        return command_line.told("locate", error)
    print(found)
    if options.html:
        Path(options.html).write_text(found.html(), encoding="utf-8")
    if options.json:
        Path(options.json).write_text(found.json(), encoding="utf-8")
    if options.overlay:
        Path(options.overlay).write_text(found.overlay(), encoding="utf-8")
    return 0 if found.party is Party.NOBODY else 1


def _values(path: str | None, specs: PyTree) -> PyTree:
    """The inputs of an .npz file, in the structure of the specs."""
    if path is None:
        return None
    file = checkpoints.existing(path, "values", "inputs.npz")
    arrays = checkpoints.arrays_of_npz(file, "values")
    return arrays if isinstance(specs, dict) else tuple(arrays.values())
