"""The first wrong result where only whole programs are wrong, found by cutting the program."""

from __future__ import annotations

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src.export.tolerances import Precision, deviation
from jax2tf._src.locate import exactness
from jax2tf._src.locate.finding import Suspect
from jax2tf._src.locate.program import as_numpy, operands_of
from jax2tf._src.locate.sides import File

# A cut program is wrong if its output deviates by more.
_WRONG = 1e-3


def suspect(side: File) -> Suspect | None:
    """The first result that is wrong if the program is cut behind it; None if there is none.

    It halves the program again and again: a result behind the wrong one is taken for wrong, too.
    """
    results = [v for v in side.program.readable() if _is_number(side, v)]
    low, high = 0, len(results) - 1
    last: np.ndarray | None = None
    while low < high:
        middle = (low + high) // 2
        actual = _cut(side, results[middle])
        if _is_wrong(side, results[middle], actual):
            high, last = middle, actual
        else:
            low = middle + 1
    if not results:
        return None
    v = results[low]
    actual = last if last is not None and high == low else _cut(side, v)
    if not _is_wrong(side, v, actual):
        return None
    index = next(i for i, eqn in enumerate(side.program.equations) if v in eqn.outvars)
    expected = as_numpy(side.program.reference[v])
    eqn = side.program.equations[index]
    ratio = exactness.ratio(actual, expected, exactness.allowed(eqn.primitive, expected))
    operands = operands_of(eqn, side.program.reference)
    return Suspect(index, v, operands, expected, actual, ratio, ())


def _cut(side: File, v: jex_core.Var) -> np.ndarray:
    return as_numpy(side.files.values(side.program, side.signature, [v])[v])


def _is_number(side: File, v: jex_core.Var) -> bool:
    return exactness.is_inexact(as_numpy(side.program.reference[v]).dtype)


def _is_wrong(side: File, v: jex_core.Var, actual: np.ndarray) -> bool:
    expected = as_numpy(side.program.reference[v])
    return not deviation(actual, expected, Precision.FULL) <= _WRONG
