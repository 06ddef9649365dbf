"""Products of matrices in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, random

RAW = tf.raw_ops
TOLERANCE = {"float16": 4e-3, "bfloat16": 0.02, "float32": 1e-6, "float64": 1e-14}
MATRICES = [
    ((3, 4), (4, 5)),
    ((1, 4), (4, 1)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((3, 4), (4, 0)),
]
BATCHES = [
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 4), (6, 2, 4, 5)),
]


@pytest.mark.parametrize("dtype", ["int32", "int64", *FLOATS, "bfloat16"])
@pytest.mark.parametrize(("left", "right"), MATRICES)
def test_products_of_matrices(dtype, left, right):
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        x = random(left[::-1] if a else left, dtype, 2)
        y = random(right[::-1] if b else right, dtype, 3)

        def product(x, y, a=a, b=b):
            return RAW.MatMul(a=x, b=y, transpose_a=a, transpose_b=b)

        # ONNX Runtime fuses a transpose with a product over nothing, and gives any numbers.
        are_open = (False,) if left == (3, 0) else (False, True)
        check(product, x, y, relative=TOLERANCE.get(dtype, 0.0), are_open=are_open)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", *FLOATS, "bfloat16"])
@pytest.mark.parametrize(("left", "right"), BATCHES)
def test_products_of_batches(dtype, left, right):
    relative = TOLERANCE.get(dtype, 0.0)
    x, y = random(left, dtype, 2), random(right, dtype, 3)
    check(lambda x, y: RAW.BatchMatMulV2(x=x, y=y), x, y, relative=relative)
    x = np.swapaxes(x, -1, -2).copy()
    check(lambda x, y: RAW.BatchMatMulV2(x=x, y=y, adj_x=True), x, y, relative=relative)


@pytest.mark.parametrize("dtype", ["int32", "int64", *FLOATS])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("...ij,jk->...ik", (2, 3, 4), (4, 5)),
        ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ],
)
def test_einsum(dtype, equation, left, right):
    x, y = random(left, dtype, 2), random(right, dtype, 3)
    relative = TOLERANCE.get(dtype, 0.0)
    check(lambda x, y: RAW.Einsum(inputs=[x, y], equation=equation), x, y, relative=relative)
