"""Operands of ops: numbers, lists and shapes as tensors."""

from __future__ import annotations

import numpy as np

from jax2tf._src.graph.symbol_shapes import SymbolShape
from jax2tf._src.graph.symbols import Symbol, converted
from jax2tf._src.util.dtypes import DType, int32
from jax2tf._src.util.typing import PyTree


def integers(value: PyTree, dtype: DType = int32) -> Symbol:
    """A shape, axes or places as a tensor of integers."""
    if isinstance(value, SymbolShape):
        value = value.as_list()
    is_array = isinstance(value, np.ndarray | np.generic | Symbol)
    return converted(value, None if is_array else dtype)


def as_tensor(value: PyTree, like: PyTree) -> PyTree:
    """A number as a constant of the dtype of a tensor."""
    return value if isinstance(value, Symbol) else converted(value, dtype_of(like))


def dtype_of(x: PyTree) -> DType | None:
    return x.dtype if isinstance(x, Symbol) else None
