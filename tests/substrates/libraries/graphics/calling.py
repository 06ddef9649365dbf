"""TensorFlow Graphics is imported module by module; most programs are a call of one function."""

from __future__ import annotations

import importlib
from typing import Any

from tests.substrates.libraries.programs import FLOAT32, GRAD, JAX, JIT, NUMPY, VMAP, Program, adder

EVERYWHERE = (NUMPY, NUMPY + FLOAT32, JAX, JIT, JIT + FLOAT32, GRAD, VMAP)
# Of what has no derivative.
VALUES = (NUMPY, NUMPY + FLOAT32, JAX, JIT, JIT + FLOAT32)
# What draws from TensorFlow's state.
ONLY_EAGER = (NUMPY, JAX)


def module(library: Any, path: str) -> Any:
    return importlib.import_module(f"{library.__name__}.{path}")


def add_calls(programs: list[Program], path: str, calls: dict[str, tuple]) -> None:
    """A program for each function of a module that is called with arrays alone.

    A dict at the end of the arrays holds keyword arguments; what follows a colon in a name says
    what is particular.
    """
    for name, given in calls.items():
        *arrays, last = given
        keywords = last if isinstance(last, dict) else {}
        arrays = arrays if isinstance(last, dict) else given

        def call(
            tf: Any, library: Any, *tensors: Any, _name: str = name, _: dict = keywords
        ) -> Any:
            return getattr(module(library, path), _name.partition(":")[0])(*tensors, **_)

        adder(programs, EVERYWHERE)(f"{path}.{name}", *arrays)(call)
