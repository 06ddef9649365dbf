"""What commands of `python -m jax2tf` have in common: a function of a module, and its inputs."""

from __future__ import annotations

import argparse
import importlib
import operator
import re
import sys
from collections.abc import Sequence

from jax2tf._src.util.typing import PyTree


def add_function(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say which function, with which parameters and inputs."""
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
      ValueError: it is not written so, or there is no such module, or none of that name in it.
    """
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise ValueError(f"jax2tf: the function should be given as MODULE:FUNCTION, got {text!r}")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that it imports is the module's own affair.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"jax2tf: there is no module {error.name!r}; run this where it can be imported, such "
            "as the folder of its file, or put that folder into PYTHONPATH"
        ) from error
    try:
        return operator.attrgetter(name)(found)
    except AttributeError as error:
        raise ValueError(f"jax2tf: there is no {name!r} in {module}: {error}") from error


def specs(inputs: Sequence[str]) -> PyTree:
    """The specs of the inputs, as `jax2tf.export` takes them: by name, or by position.

    Raises:
      ValueError: some have names and some have none, or two have the same.
    """
    pairs = [_pair(text) for text in inputs]
    named = {name: spec for name, spec in pairs if name}
    if named and len(named) != len(pairs):
        raise ValueError(
            f"jax2tf: inputs should all have names, each another, or none: got {', '.join(inputs)}"
        )
    return named or tuple(spec for _, spec in pairs)


def told(command: str, error: Exception) -> int:
    """Says in a line what is wrong with the call, and returns the exit status.

    All else is an error of the user's function, and is raised as it is.
    """
    if not str(error).startswith("jax2tf"):
        raise error
    print(f"python -m jax2tf {command}: {error}", file=sys.stderr)
    return 1


def _pair(text: str) -> tuple[str, str]:
    match = re.match(r"([^\W\d]\w*)=(.*)", text)
    return (match[1], match[2]) if match else ("", text)
