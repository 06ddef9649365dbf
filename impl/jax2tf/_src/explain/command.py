"""`python -m jax2tf explain`: the public function on the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from jax2tf._src import dims
from jax2tf._src.api import command_line
from jax2tf._src.explain.survey import explain
from jax2tf._src.export import checkpoints
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.targets.by_name import TARGETS

_EXAMPLE = """
example:
  python -m jax2tf explain package.model:predict --params weights.safetensors \\
      --input x=b,224,224,3:float32 --target litert --target onnx --html explanation.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    command_line.add_function(parser)
    parser.add_argument(
        "--target",
        dest="targets",
        action="append",
        choices=list(TARGETS),
        help="what will read the graph; may be repeated; default: all",
    )
    parser.add_argument(
        "--assume-finite", action="store_true", help="leave guards of NaN and infinity out"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page, too")


def run(options: argparse.Namespace) -> int:
    """Prints what a function becomes; the exit status is 1 where a target cannot take it."""
    try:
        if options.html:
            # Before the work, which may take long.
            _require_writable(Path(options.html))
        params = checkpoints.load(options.params) if options.params else None
        fun, specs = command_line.function(options.function), command_line.specs(options.inputs)
        (signature,) = signatures_of(fun, params, specs)
        args, kwargs = signature.arguments([given.spec for given in signature.inputs])
        shapes = signature.polymorphic_shapes
        explanation = explain(
            fun,
            *([] if params is None else [params]),
            *args,
            target=options.targets,
            polymorphic_shapes=shapes if params is None else dims.OfInputs(shapes),
            polymorphic_constraints=options.constraints,
            assume_finite=options.assume_finite,
            **kwargs,
        )
    except Exception as error:
        return command_line.told("explain", error)
    print(explanation)
    if options.html:
        Path(options.html).write_text(explanation.html(), encoding="utf-8")
    return 0 if all(report.converts for report in explanation.reports) else 1


def _require_writable(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"jax2tf.explain: --html should be a file in a folder that exists and can be written "
            f"to, got {str(path)!r}"
        )
