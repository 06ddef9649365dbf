"""Running sums and products, and sorted elements, in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, INTEGERS, NUMBERS, random

RAW = tf.raw_ops
TOLERANCE = {"float16": 4e-3, "bfloat16": 0.05, "float32": 1e-6, "float64": 1e-14}
SHAPES = [((4, 7), 1), ((4, 7), 0), ((3, 5, 4), -2), ((6,), 0), ((0, 4), 0), ((3, 0), 0)]


def _along(op, axis, exclusive, reverse):
    return lambda x: getattr(RAW, op)(x=x, axis=axis, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("op", ["Cumsum", "Cumprod"])
def test_cumulative(op, exclusive, reverse, shape, axis):
    for dtype in INTEGERS:
        check(_along(op, axis, exclusive, reverse), random(shape, dtype))
    for dtype in (*FLOATS, "bfloat16"):
        x = random(shape, dtype)
        check(_along(op, axis, exclusive, reverse), x, relative=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16"])
def test_a_newer_opset_has_cumulative_products(dtype):
    x = random((4, 7), dtype)
    relative = TOLERANCE.get(dtype, 0.0)
    ops = check(_along("Cumprod", 1, True, True), x, relative=relative, opset=26)
    assert "CumProd" in ops
    assert "Scan" not in ops


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16"])
@pytest.mark.parametrize(("shape", "k"), [((4, 7), 3), ((4, 7), 7), ((3, 2, 5), 0), ((6,), 1)])
def test_the_largest_elements(dtype, shape, k):
    for seed in (2, 3):
        x = random(shape, dtype, seed)
        # Of equal elements the first one comes first.
        x.ravel()[3] = x.ravel()[1]
        check(lambda x: list(RAW.TopKV2(input=x, k=k)), x)


def test_the_number_of_largest_elements_may_be_computed():
    x = random((4, 7), "float32")
    check(lambda x, k: list(RAW.TopKV2(input=x, k=k)), x, np.int32(2))
