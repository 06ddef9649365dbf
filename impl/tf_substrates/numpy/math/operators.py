"""The operators of tensors that are not functions of tf.math themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.math.arithmetic import tf_pow, truediv
from tf_substrates.numpy.math.dtype_groups import BOOL, FLOATS, INTEGERS, SIGNED
from tf_substrates.numpy.math.elementwise import tf_abs
from tf_substrates.numpy.math.logic import logical_and, logical_or, logical_xor
from tf_substrates.numpy.math.registering import binary
from tf_substrates.numpy.recording import recorded
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import OPERATORS, convert, has_dtype, operands, require, wrap


def _boolean_or_bitwise(logical: Callable, bitwise: Callable, op_name: str) -> Callable:
    def call(x: Any, y: Any) -> Any:
        if (x if has_dtype(x) else y).dtype == np.bool_:
            return logical(x, y)
        return binary(op_name, bitwise, INTEGERS, x, y)

    return call


def _wrapped(function: Callable) -> Callable:
    return recorded(lambda *args: wrap(function(*args)))


def _equals(x: Any, y: Any, differ: bool) -> Any:
    if y is None:
        return differ
    x, y = operands("NotEqual" if differ else "Equal", x, y)
    try:
        broadcast_shapes(x.shape, y.shape, "Equal")
    except Exception:
        return np.asarray(differ)
    return xp.not_equal(x, y) if differ else xp.equal(x, y)


OPERATORS["truediv"] = truediv
OPERATORS["pow"] = tf_pow
OPERATORS["abs"] = tf_abs
OPERATORS["and"] = _wrapped(_boolean_or_bitwise(logical_and, xp.bitwise_and, "BitwiseAnd"))
OPERATORS["or"] = _wrapped(_boolean_or_bitwise(logical_or, xp.bitwise_or, "BitwiseOr"))
OPERATORS["xor"] = _wrapped(_boolean_or_bitwise(logical_xor, xp.bitwise_xor, "BitwiseXor"))
OPERATORS["negative"] = _wrapped(
    lambda x: xp.negative(require("Neg", convert(x), (*FLOATS, *SIGNED)))
)
OPERATORS["invert"] = _wrapped(
    lambda x: xp.invert(require("Invert", convert(x), (*INTEGERS, *BOOL)))
)
OPERATORS["tensor_equals"] = _wrapped(lambda x, y: _equals(x, y, differ=False))
OPERATORS["tensor_not_equals"] = _wrapped(lambda x, y: _equals(x, y, differ=True))
