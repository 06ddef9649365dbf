"""`python -m jax2tf explain`, `python -m jax2tf plan` and `python -m jax2tf supports`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jax2tf._src import dims
from jax2tf._src.api import command_line
from jax2tf._src.explain import supports
from jax2tf._src.explain.stages import plan
from jax2tf._src.explain.survey import explain
from jax2tf._src.export import checkpoints
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.targets.by_name import TARGETS

T = TypeVar("T")

_EXAMPLE = """
example:
  python -m jax2tf explain package.model:predict --params weights.safetensors \\
      --input x=b,224,224,3:float32 --target litert --target onnx --html explanation.html
"""


_SUPPORTS_EXAMPLE = """
example:
  python -m jax2tf supports cumsum --dtype bfloat16 --target litert
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `explain`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    command_line.add_function(parser)
    parser.add_argument(
        "--target",
        dest="target",
        action="append",
        choices=list(TARGETS),
        help="what will read the graph; may be repeated; default: all",
    )
    _add_assume_finite(parser)
    parser.add_argument("--html", metavar="FILE", help="write a page, too")


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `plan`."""
    command_line.add_function(parser)
    parser.add_argument(
        "--target",
        choices=list(TARGETS),
        default="xla",
        help="what will read the graph; default: xla",
    )
    _add_assume_finite(parser)


def _add_assume_finite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--assume-finite", action="store_true", help="leave guards of NaN and infinity out"
    )


def run(options: argparse.Namespace) -> int:
    """Prints the explanation of a function; the exit status is 1 if a target cannot take it."""
    try:
        if options.html:
            # Checked first, because the explanation may take long.
            _require_writable(Path(options.html))
        explanation = _called(explain, options)
    except Exception as error:
        return command_line.told("explain", error)
    print(explanation)
    if options.html:
        Path(options.html).write_text(explanation.html(), encoding="utf-8")
    return 0 if all(report.converts for report in explanation.reports) else 1


def run_plan(options: argparse.Namespace) -> int:
    """Prints the equations after each pass; the exit status is 1 if one cannot be lowered."""
    try:
        text, converts = _called(plan, options)
    except Exception as error:
        return command_line.told("plan", error)
    print(text)
    return 0 if converts else 1


def add_supports_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `supports`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _SUPPORTS_EXAMPLE
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a primitive or a public function of JAX"
    )
    parser.add_argument("--dtype", help="one dtype; default: all")
    parser.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        help="a target, or savedmodel, gradient, poly, stablehlo; may be repeated; default: all",
    )
    parser.add_argument("--list", action="store_true", help="print all names that are known")


def run_supports(options: argparse.Namespace) -> int:
    """Prints what is supported of a primitive or function."""
    if options.list:
        print("\n".join(supports.names()))
        return 0
    try:
        if not options.name:
            raise ValueError("jax2tf: give a NAME, as cumsum or jax.numpy.cumsum, or --list")
        print(supports.answer(options.name, options.dtype, options.targets))
    except ValueError as error:
        return command_line.told("supports", error)
    return 0


def _called(function: Callable[..., T], options: argparse.Namespace) -> T:
    """Calls `explain` or `plan` with the arguments of a command line."""
    params = checkpoints.load(options.params) if options.params else None
    fun, specs = command_line.function(options.function), command_line.specs(options.inputs)
    (signature,) = signatures_of(fun, params, specs)
    args, kwargs = signature.arguments([given.spec for given in signature.inputs])
    shapes = signature.polymorphic_shapes
    return function(
        fun,
        *([] if params is None else [params]),
        *args,
        target=options.target,
        polymorphic_shapes=shapes if params is None else dims.OfInputs(shapes),
        polymorphic_constraints=options.constraints,
        assume_finite=options.assume_finite,
        **kwargs,
    )


def _require_writable(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"jax2tf.explain: --html should be a file in a folder that exists and can be written "
            f"to, got {str(path)!r}"
        )
