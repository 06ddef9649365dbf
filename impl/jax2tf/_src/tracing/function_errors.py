"""Classifies errors of a user's function: about the structure of arguments, or TensorFlow."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping

import jax

from jax2tf._src.util.typing import PyTree

# The errors of an array that is used as a dict, a tuple or a list.
_OF_ARRAYS = re.compile(
    r"does not support string indexing|must be a mapping, not \w*Tracer|iteration over a 0-d array"
    r"|len\(\) of unsized object|Array\.__contains__"
)
# The errors of a container with other entries or none.
_OF_CONTAINERS = re.compile(
    r"(too many|not enough) values to unpack|^pytree structure error"
    r"|valid indices\. Got [{]"
    r"|can only concatenate (?P<one>list|tuple)|multiply sequence by non-int"
)
# The name of a type in errors of Python and JAX.
_TYPE = re.compile(r"'(\w+)'|^(list|tuple) indices must be")


def is_of_structure(
    error: Exception, args: tuple[tuple[PyTree, ...], Mapping[str, PyTree]]
) -> bool:
    """Whether an error is about an array where the function expects a container, or vice versa.

    Args:
      error: the exception that the function raised.
      args: the arguments that it was called with, positional and keyword.
    """
    kinds = _containers(args)
    if isinstance(error, AttributeError):
        return isinstance(error.obj, jax.core.Tracer) or type(error.obj).__name__ in kinds
    if isinstance(error, KeyError):
        return "dict" in kinds
    if not isinstance(error, TypeError | ValueError | IndexError):
        return False
    text = str(error)
    named = {name for match in _TYPE.finditer(text) for name in match.groups() if name}
    return bool(_OF_ARRAYS.search(text) or _OF_CONTAINERS.search(text) or named & kinds)


def arguments_of(error: Exception, args: Mapping[str, PyTree]) -> list[str]:
    """The names of the arguments that an error of structure may be about.

    If the error shows that an array was used as a container, these are the arguments that are a
    single array, otherwise the arguments that are containers.
    """
    of_array = _is_of_array(error)
    return [name for name, value in args.items() if jax.tree_util.all_leaves([value]) == of_array]


def _is_of_array(error: Exception) -> bool:
    if isinstance(error, AttributeError):
        return isinstance(error.obj, jax.core.Tracer)
    return bool(_OF_ARRAYS.search(str(error)))


def is_of_tensorflow(error: Exception) -> bool:
    """Whether a TensorFlow function was called with a JAX array, or its tensor was returned."""
    if "type <class 'tensorflow." in str(error):
        return True
    if "Tracer" not in f"{type(error).__name__}: {error}":
        return False
    keras = sys.modules.get("keras")
    on_tensorflow = keras is not None and keras.config.backend() == "tensorflow"
    packages = {"tensorflow", "keras"} if on_tensorflow else {"tensorflow"}
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(f.f_globals.get("__name__", "").split(".")[0] in packages for f in frames)


def _containers(args: tuple[tuple[PyTree, ...], Mapping[str, PyTree]]) -> set[str]:
    """The names of the types of the containers among the arguments, including None."""
    found: set[str] = set()

    def visited(node: object) -> bool:
        if node is None or not jax.tree_util.all_leaves([node]):
            found.add(type(node).__name__)
        return False

    positional, by_name = args
    for argument in (*positional, *by_name.values()):
        jax.tree.leaves(argument, is_leaf=visited)
    return found
