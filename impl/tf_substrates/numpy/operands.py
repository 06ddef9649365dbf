"""What JAX's arrays take beside them in an operator.

JAX refuses a list or tuple there, TensorFlow's tensors take it: `x + [1.0, 2.0]`. With
`tf_substrates.jax` imported, JAX's arrays take it too. So an error becomes a result; every other
operand goes to JAX's own operator. Arrays of NumPy's that a rewritten package makes (`OfNumPy`)
take the tensor's dtype, as beside TensorFlow's tensors.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_substrates.numpy.array_classes import ARRAY_CLASSES
from tf_substrates.numpy.namespaces import EXPORTS
from tf_substrates.numpy.tensors import operands

JAX_MODE = False
if JAX_MODE:
    import jax
    from jax.extend import source_info_util

    # An operator stands in the line of its caller, and not in a line here.
    source_info_util.register_exclusion(__file__)


class OfNumPy(np.ndarray):
    """An array that takes the dtype of a tensor beside it."""

    # The operators of JAX's arrays come first.
    __array_priority__ = -1.0


# By the name of the operator: itself, and TensorFlow's operation for messages.
_OPERATORS: dict[str, tuple[Callable, str]] = {
    "add": (operator.add, "AddV2"),
    "sub": (operator.sub, "Sub"),
    "mul": (operator.mul, "Mul"),
    "truediv": (operator.truediv, "RealDiv"),
    "floordiv": (operator.floordiv, "FloorDiv"),
    "mod": (operator.mod, "FloorMod"),
    "pow": (operator.pow, "Pow"),
    "matmul": (operator.matmul, "MatMul"),
    "lt": (operator.lt, "Less"),
    "le": (operator.le, "LessEqual"),
    "gt": (operator.gt, "Greater"),
    "ge": (operator.ge, "GreaterEqual"),
    "eq": (operator.eq, "Equal"),
    "ne": (operator.ne, "NotEqual"),
    "and": (operator.and_, "BitwiseAnd"),
    "or": (operator.or_, "BitwiseOr"),
    "xor": (operator.xor, "BitwiseXor"),
}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _taking_lists(original: Callable, of_list: Callable) -> Callable:
    """JAX's operator, `of_list` beside a list or tuple."""

    @functools.wraps(original)
    def call(self: Any, other: Any) -> Any:
        if isinstance(other, OfNumPy):
            return original(self, _array(other, self.dtype))
        if isinstance(other, (list, tuple)):
            return of_list(self, other)
        return original(self, other)

    return call


def _before_lists(function: Callable, op_name: str) -> Callable:
    def of_list(self: Any, other: Any) -> Any:
        # By functions that tapes record, and once more the operator, which they record too.
        tensor = EXPORTS["convert_to_tensor"](other, dtype_hint=self.dtype)
        operands(op_name, self, tensor)  # refuses another dtype
        return function(self, tensor)

    return of_list


def _behind_lists(function: Callable) -> Callable:
    def of_list(self: Any, other: Any) -> Any:
        return function(jax.numpy.asarray(EXPORTS["convert_to_tensor"](other, self.dtype)), self)

    return of_list


def _array(other: OfNumPy, dtype: np.dtype) -> np.ndarray:
    array = other.view(np.ndarray)
    return array.astype(dtype) if array.dtype.kind == "f" and dtype.kind in "fV" else array


def _install() -> None:
    for owner in ARRAY_CLASSES:
        for name, (function, op_name) in _OPERATORS.items():
            wrapped = {name: _before_lists(function, op_name)}
            if name not in _COMPARISONS:
                wrapped[f"r{name}"] = _behind_lists(function)
            for method, of_list in wrapped.items():
                original = getattr(owner, f"__{method}__")
                setattr(owner, f"__{method}__", _taking_lists(original, of_list))


if JAX_MODE:
    _install()
