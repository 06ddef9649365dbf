"""Random numbers that no key determines."""

from __future__ import annotations

from jax2tf._src.graph.ops.operands import integers
from jax2tf._src.graph.symbols import Symbol, converted, raw
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import float32
from jax2tf._src.util.typing import PyTree


def uniform(
    shape: PyTree, minval: PyTree = 0, maxval: PyTree = None, dtype: PyTree = float32
) -> Symbol:
    """Numbers from `minval` to `maxval`, which is 1 unless it is given."""
    of, sizes = dtypes.named(dtype), integers(shape)
    maxval = 1 if maxval is None else maxval
    if of.is_integer:
        limits = {"minval": converted(minval, of), "maxval": converted(maxval, of)}
        return raw.RandomUniformInt(shape=sizes, **limits)
    is_from_zero = isinstance(minval, int) and minval == 0
    if is_from_zero and isinstance(maxval, int) and maxval == 1:
        return raw.RandomUniform(shape=sizes, dtype=of)
    low: PyTree = converted(minval, of)
    high: PyTree = converted(maxval, of)
    numbers = raw.RandomUniform(shape=sizes, dtype=of)
    return numbers * high if is_from_zero else numbers * (high - low) + low
