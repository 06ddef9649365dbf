"""Ops on integers, quotients and remainders in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, INTEGERS, SIGNED, numbers, pairs

RAW = tf.raw_ops
_REMAINDERS = ("int32", "int64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bits(op, dtype):
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), *pairs(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_bits_are_flipped(dtype):
    check(lambda x: RAW.Invert(x=x), numbers(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["LeftShift", "RightShift"])
def test_shifts(op, dtype):
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), *pairs(dtype))
    for distance in (0, 3, 7):
        check(
            lambda x, y=distance: getattr(RAW, op)(x=x, y=tf.constant(y, x.dtype)), numbers(dtype)
        )


@pytest.mark.parametrize("op", ["LeftShift", "RightShift"])
def test_a_shift_of_uint32_by_a_constant_is_one_node(op):
    ops = check(lambda x: getattr(RAW, op)(x=x, y=tf.constant(5, x.dtype)), numbers("uint32"))
    assert ops == ["BitShift"]


def _divisions():
    for dtype in INTEGERS:
        yield from ((op, dtype) for op in ("FloorDiv", "FloorMod", "TruncateDiv", "Div"))
    yield from ((op, dtype) for op in ("TruncateMod", "Mod") for dtype in _REMAINDERS)


@pytest.mark.parametrize(("op", "dtype"), list(_divisions()))
def test_divisions_of_integers(op, dtype):
    x, y = pairs(dtype)
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), x, y[y != 0][None])
    for divisor in (1, 2, 7, -1, -3):
        if divisor > 0 or dtype in SIGNED:
            check(lambda x, y=divisor: getattr(RAW, op)(x=x, y=tf.constant(y, x.dtype)), x)


_OF_FLOATS = [(op, dtype) for op in ("FloorDiv", "FloorMod") for dtype in FLOATS]
_OF_FLOATS += [(op, dtype) for op in ("Div", "TruncateDiv") for dtype in FLOATS[1:]]
_OF_FLOATS += [(op, dtype) for op in ("Mod", "TruncateMod") for dtype in FLOATS[1:]]


@pytest.mark.parametrize(("op", "dtype"), _OF_FLOATS)
def test_divisions_of_floats(op, dtype):
    x, y = pairs(dtype)
    # A quotient that TensorFlow takes for zero is not rounded down to -1.
    x, y = (v[np.abs(v) >= 0.1] for v in (x.ravel(), y.ravel()))
    y = y[~(np.isfinite(y) & (np.abs(y) > 1e4))]
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), x[:, None], y[None])


@pytest.mark.parametrize("dtype", SIGNED)
def test_powers_wrap_around(dtype):
    x, y = pairs(dtype)
    check(lambda x, y: RAW.Pow(x=x, y=y), x, y[y >= 0][None])
    check(lambda x: RAW.Pow(x=x, y=tf.constant(11, x.dtype)), x)
    check(lambda x, y: RAW.Pow(x=x, y=y), x, np.array(13, dtype))
