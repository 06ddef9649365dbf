"""Diagonals of matrices as ONNX."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import DTYPES, FLOATS, special

_SHAPES = {"static": [2, 3, 4], "open": [None, None, None]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", _SHAPES)
def test_band(sizes, dtype):
    written = Written(
        lambda x: [
            tf.linalg.band_part(x, lower, upper)
            for lower, upper in ((1, 0), (-1, 1), (0, -1), (-1, -1), (0, 0), (2, 1))
        ],
        tf.TensorSpec(_SHAPES[sizes], dtype),
    )
    written.check(special(dtype))
    if sizes == "open":
        written.check(special(dtype, (0, 4, 3)))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("int16", "uint16")])
def test_diagonal(dtype):
    written = Written(
        lambda x: [
            tf.linalg.diag(x),
            tf.linalg.diag(x, k=1),
            tf.linalg.diag(x, k=-2),
            tf.linalg.diag(x, num_rows=6, num_cols=4),
            tf.linalg.diag(x, num_rows=4, num_cols=6),
            tf.linalg.diag(x, num_rows=5, num_cols=6, k=2),
        ],
        tf.TensorSpec([None, 3, 4], dtype),
    )
    written.check(special(dtype))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("int16", "uint16")])
def test_diagonal_of_an_open_size(dtype):
    written = Written(lambda x: tf.linalg.diag(x), tf.TensorSpec([None, None], dtype))
    written.check(special(dtype, (2, 3)))
    written.check(special(dtype, (2, 0)))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("int16", "uint16")])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4, 3), (1, 3, 3)])
def test_part(shape, dtype):
    written = Written(
        lambda x: [tf.linalg.diag_part(x, k=k) for k in (0, 1, 2, 1 - shape[1])],
        tf.TensorSpec([None, *shape[1:]], dtype),
    )
    written.check(special(dtype, shape))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("int16", "uint16")])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4, 3), (1, 3, 3)])
def test_set(shape, dtype):
    written = Written(
        lambda x, d: [
            tf.linalg.set_diag(x, d[:, :3]),
            tf.linalg.set_diag(x, d[:, : min(shape[1] - 1, shape[2])], k=-1),
            tf.linalg.set_diag(x, d[:, : min(shape[1], shape[2] - 1)], k=1),
        ],
        tf.TensorSpec([None, *shape[1:]], dtype),
        tf.TensorSpec([None, 3], dtype),
    )
    diagonals = special(dtype, (shape[0], 3), seed=1)
    if dtype in FLOATS:
        # A Where of ONNX Runtime makes 0.0 of a -0.0 that it takes where the condition holds.
        diagonals[diagonals == 0] = 0
    written.check(special(dtype, shape), diagonals)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_eye(dtype):
    written = Written(
        lambda x: [tf.eye(3, 4, dtype=x.dtype), tf.eye(3, batch_shape=[2], dtype=x.dtype)],
        tf.TensorSpec([], dtype),
    )
    written.check(np.zeros((), dtype))
