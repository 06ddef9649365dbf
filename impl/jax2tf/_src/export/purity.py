"""Tells a function that changes each time JAX traces it from a file that is wrong.

A function that draws random numbers outside of its arguments, or counts its calls, has other values
in each trace. A file holds those of one trace, so that it cannot give what another trace gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

# Says whether a result (the first array) is near enough to another.
IsNear = Callable[[np.ndarray, np.ndarray], bool]


def differing_output(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], is_near: IsNear
) -> str | None:
    """The name of an output that two traces of a function give otherwise; None if there is none.

    Args:
      first: the outputs of one trace by name.
      second: those of another, with the same parameters and inputs.
      is_near: whether two arrays of one shape and dtype are the same result.
    """
    for name, expected in first.items():
        actual = second.get(name)
        if actual is None or (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
            return name
        if not is_near(actual, expected):
            return name
    return None


def said(where: str, inputs: str, state: str = "") -> str:
    """What an error says of such a function.

    Args:
      where: the output that differs.
      inputs: a description of the inputs.
      state: what is left behind, as a sentence.
    """
    return (
        "the function gives other results each time JAX traces it: two traces differ in "
        f"{where}, with the same parameters and inputs{inputs}. A file holds the values of one "
        f"trace. {state}What to do: make random numbers and other values that change outside of "
        "the function, and give them to it as parameters or inputs; a layer with a state, such as "
        "a stream of random numbers, has a mode for evaluation"
    )
