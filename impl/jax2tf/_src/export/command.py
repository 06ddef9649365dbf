"""`python -m jax2tf export` calls the public function from the command line."""

from __future__ import annotations

import argparse
import ast

from jax2tf._src.api import command_line
from jax2tf._src.export import checkpoints
from jax2tf._src.export.exporting import export
from jax2tf._src.export.formats import FORMATS
from jax2tf._src.util.typing import PyTree

_EXAMPLE = """
example:
  python -m jax2tf export package.model:predict --params weights.safetensors \\
      --input x=b,224,224,3:float32 --to model.tflite --option quantize=float16
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    command_line.add_function(parser)
    parser.add_argument("--to", metavar="PATH", required=True, help="what to write")
    parser.add_argument("--format", choices=list(FORMATS), help="in place of the path's suffix")
    parser.add_argument(
        "--option",
        dest="options",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the format, as quantize=float16 or opset=17",
    )
    parser.add_argument(
        "--representative-data",
        metavar="FILE",
        help="an .npz file for quantize=int8: an array for each input, its first axis the samples",
    )
    parser.add_argument("--tolerance", type=float, help="how far outputs may be from JAX's")
    parser.add_argument("--no-verify", action="store_true", help="do not run what was written")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")
    parser.add_argument("--no-progress", action="store_true", help="say nothing meanwhile")


def run(options: argparse.Namespace) -> int:
    """Exports a function and prints the result; returns the exit status."""
    try:
        specs = command_line.specs(options.inputs)
        format_options = dict(map(option, options.options))
        if options.representative_data:
            format_options["representative_data"] = _samples(options.representative_data, specs)
        result = export(
            command_line.function(options.function),
            options.params,
            specs,
            options.to,
            format=options.format,
            polymorphic_constraints=options.constraints,
            verify=not options.no_verify,
            tolerance=options.tolerance,
            overwrite=options.overwrite,
            progress=not options.no_progress,
            **format_options,
        )
    except Exception as error:
        return command_line.told("export", error)
    print(result)
    return 0


def option(text: str) -> tuple[str, PyTree]:
    """The name and the value of NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"jax2tf.export: an option should be NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    # A value that is not a Python literal is a plain word.
    except (ValueError, SyntaxError):
        return name, value


def _samples(path: str, specs: PyTree) -> list[PyTree]:
    file = checkpoints.existing(path, "representative_data", "samples.npz")
    by_name = checkpoints.arrays_of_npz(file, "representative_data")
    n = min((len(array) for array in by_name.values()), default=0)
    samples = [{name: array[i] for name, array in by_name.items()} for i in range(n)]
    return samples if isinstance(specs, dict) else [tuple(s.values()) for s in samples]
