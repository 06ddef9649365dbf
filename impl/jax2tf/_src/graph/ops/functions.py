"""Functions within a graph: each call becomes a part of the graph that calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from jax2tf._src.util.typing import PyTree


@dataclass(frozen=True)
class TensorSpec:
    """The dtype and the shape of an argument."""

    shape: PyTree
    dtype: PyTree


@dataclass(frozen=True)
class Function:
    """A function of tensors whose ops are made anew by each call."""

    body: Callable[..., PyTree]

    def __call__(self, *args: PyTree) -> PyTree:
        return self.body(*args)

    def get_concrete_function(self, *specs: TensorSpec) -> Function:
        """The function itself, whatever the arguments are."""
        return self


def function(body: Callable[..., PyTree], **options: PyTree) -> Function:
    """A function that a graph calls several times; no option changes what it gives."""
    del options
    return Function(body)


def functions_run_eagerly() -> bool:
    """Functions never run while a graph is made."""
    return False


def numpy_function(*args: PyTree, **options: PyTree) -> NoReturn:
    """No graph without TensorFlow calls Python.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "jax2tf: graphs without TensorFlow cannot call Python (jax.pure_callback, io_callback, "
        "debug callbacks); compute the values before the conversion and give them as arguments"
    )
