"""The arguments of `python -m harnesses shrink`."""

from __future__ import annotations

import argparse

from harnesses.cell.names import DEFAULT_IMPLEMENTATION, LOWERINGS

SECONDS = 120.0
LIMIT = 60.0
# This size stands for the open dimension. It is a prime, so few sizes of programs are multiples.
OPEN = 17


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "what",
        metavar="CELL | MODULE:FUNCTION",
        help="as sin_float32-cpu-xla-litert, or a function of JAX with --input or --values",
    )
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="the module to ask")
    parser.add_argument(
        "--input",
        dest="inputs",
        metavar="SIZES[:DTYPE]",
        action="append",
        default=[],
        help="an argument of the function, drawn at random: 2,8:float32 (the dtype's default); "
        "with --mode poly b,8:float32, where b is the open dimension",
    )
    parser.add_argument(
        "--values", metavar="FILE", help="an .npz file with the function's arguments, in order"
    )
    parser.add_argument(
        "--mode",
        default="graph",
        help="of a function: graph, litert, onnx, gradient_graph, poly ...",
    )
    parser.add_argument("--lowering", default="no_xla", choices=list(LOWERINGS))
    parser.add_argument("--x64", action="store_true", help="of a function: types of 64 bits")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="begin no new try after so many (default: %(default)g)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        help="a program that is tried for longer is stopped, and the search goes on without it; 0 "
        "tries all in this process (default: %(default)g)",
    )
    # What the process that is watched gets.
    parser.add_argument("--answers", help=argparse.SUPPRESS)
    parser.add_argument(
        "--into", metavar="FILE", help="write the program there, each time that it becomes smaller"
    )
