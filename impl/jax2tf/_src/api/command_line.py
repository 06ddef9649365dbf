"""The function and the inputs of a command of `python -m jax2tf`."""

from __future__ import annotations

import argparse
import importlib
import operator
import re
import sys
from collections.abc import Sequence

from jax2tf._src.util.typing import PyTree


def add_function(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the function, its parameters and its inputs."""
    parser.add_argument(
        "function", metavar="MODULE:FUNCTION", help="a function of parameters and inputs"
    )
    parser.add_argument(
        "--params",
        metavar="FILE",
        help="a checkpoint: an Orbax folder, .safetensors or .npz; without it the function takes "
        "its inputs alone",
    )
    parser.add_argument(
        *("--input", "-i"),
        dest="inputs",
        metavar="[NAME=]SHAPE[:DTYPE]",
        action="append",
        default=[],
        help="an input, as x=b,224,224,3:float32; names in the shape are open dimensions; inputs "
        "without a name go by position",
    )
    parser.add_argument(
        "--constraint",
        dest="constraints",
        metavar="TEXT",
        action="append",
        default=[],
        help="what may be assumed of open dimensions, as 'b >= 8'",
    )


def function(text: str) -> PyTree:
    """The function that MODULE:FUNCTION names.

    Raises:
      ValueError: the text has another form, or the module or its function does not exist.
    """
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise ValueError(f"jax2tf: the function should be given as MODULE:FUNCTION, got {text!r}")
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # The named module exists and fails to import another one.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"jax2tf: there is no module {error.name!r}; run this where it can be imported, such "
            "as the folder of its file, or put that folder into PYTHONPATH"
        ) from error
    try:
        return operator.attrgetter(name)(imported)
    except AttributeError as error:
        raise ValueError(f"jax2tf: there is no {name!r} in {module}: {error}") from error


def specs(inputs: Sequence[str]) -> PyTree:
    """The specs of the inputs in the form of `jax2tf.export`, by name or by position.

    Raises:
      ValueError: only some inputs have names, or two have the same.
    """
    pairs = [_pair(text) for text in inputs]
    named = {name: spec for name, spec in pairs if name}
    if named and len(named) != len(pairs):
        raise ValueError(
            f"jax2tf: inputs should all have names, each another, or none: got {', '.join(inputs)}"
        )
    return named or tuple(spec for _, spec in pairs)


def told(command: str, error: Exception) -> int:
    """Prints an error of ours in one line, and returns the exit status.

    Errors of the user's function are raised again.
    """
    if not str(error).startswith("jax2tf"):
        raise error
    print(f"python -m jax2tf {command}: {error}", file=sys.stderr)
    return 1


def _pair(text: str) -> tuple[str, str]:
    match = re.match(r"([^\W\d]\w*)=(.*)", text)
    return (match[1], match[2]) if match else ("", text)
