"""Comparisons and Booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.dtype_groups import ANY, REALS
from tf_substrates.numpy.math.registering import Row, register_binary
from tf_substrates.numpy.namespaces import export, op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, has_dtype, require, wrap

_COMPARISONS: list[Row] = [
    ("less math.less", xp.less, REALS, "Less"),
    ("less_equal math.less_equal", xp.less_equal, REALS, "LessEqual"),
    ("greater math.greater", xp.greater, REALS, "Greater"),
    ("greater_equal math.greater_equal", xp.greater_equal, REALS, "GreaterEqual"),
    ("equal math.equal", xp.equal, ANY, "Equal"),
    ("not_equal math.not_equal", xp.not_equal, ANY, "NotEqual"),
]
register_binary(_COMPARISONS)


def _logical(names: str, function: Callable, op_name: str, default_name: Any = None) -> Callable:
    first, *others = names.split()

    def call(x: Any, y: Any, name: Any = default_name) -> Any:
        x, y = _booleans(op_name, x), _booleans(op_name, y)
        broadcast_shapes(x.shape, y.shape, op_name)
        return function(x, y)

    call.__name__ = call.__qualname__ = first.rpartition(".")[2]
    return op(first, *others, static=True)(call)


def _booleans(op_name: str, x: Any) -> Any:
    if not has_dtype(x):
        return convert(x, dtype=np.bool_)
    x = convert(x)
    if x.dtype != np.bool_:
        raise invalid_argument(
            f"cannot compute {op_name} as input #0(zero-based) was expected to be a bool tensor"
            f" but is a {dtypes.dtype_of(x).name} tensor [Op:{op_name}]"
        )
    return x


logical_and = _logical("logical_and math.logical_and", xp.logical_and, "LogicalAnd")
logical_or = _logical("logical_or math.logical_or", xp.logical_or, "LogicalOr")
logical_xor = _logical("math.logical_xor", xp.logical_xor, "LogicalXor", "LogicalXor")


@op("logical_not", "math.logical_not", static=True)
def logical_not(x: Any, name: Any = None) -> Any:
    return xp.logical_not(_booleans("LogicalNot", x))


@export("math.is_non_decreasing", "compat.v1.debugging.is_non_decreasing")
def is_non_decreasing(x: Any, name: Any = None) -> Any:
    """Whether no element of x, flattened, is less than the one before it."""
    return _increasing(x, xp.less_equal)


@export("math.is_strictly_increasing", "compat.v1.debugging.is_strictly_increasing")
def is_strictly_increasing(x: Any, name: Any = None) -> Any:
    """Whether every element of x, flattened, is more than the one before it."""
    return _increasing(x, xp.less)


def _increasing(x: Any, ordered: Callable) -> Any:
    flat = require("Less", convert(x), REALS).reshape(-1)
    return wrap(xp.all(ordered(flat[:-1], flat[1:])))
