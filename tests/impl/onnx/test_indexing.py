"""Reading and writing of elements by their indices, as ONNX."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from tests.impl.onnx.running import Written
from tests.impl.onnx.values import DTYPES, FLOATS, NUMBERS, special

_raw = tf.raw_ops
_KINDS = ("int32", "int64")
_OPEN = tf.TensorShape([None, None, None])

_GATHERS = {
    "along_the_first": lambda x, i: tf.gather(x, i),
    "along_the_middle": lambda x, i: tf.gather(x, i, axis=1),
    "along_the_last": lambda x, i: tf.gather(x, i, axis=-1),
    "of_one": lambda x, i: tf.gather(x, i[0, 0], axis=1),
    "in_batches": lambda x, i: tf.gather(x, i, axis=1, batch_dims=1),
    "in_batches_along_the_last": lambda x, i: tf.gather(x, i, axis=2, batch_dims=1),
    "in_batches_of_two": lambda x, i: tf.gather(x, i[..., None] + [[[0]]], axis=2, batch_dims=2),
    "in_batches_by_vectors": lambda x, i: tf.gather(x, i[:, 0], axis=-1, batch_dims=1),
    "in_batches_by_cubes": lambda x, i: tf.gather(x, i[:, None], axis=2, batch_dims=1),
    "points": lambda x, i: tf.gather_nd(x, i),
    "rows": lambda x, i: tf.gather_nd(x, i[..., :1]),
    "elements": lambda x, i: tf.gather_nd(x, tf.concat([i, i[:, :1]], 1)),
    "everything": lambda x, i: tf.gather_nd(x, i[..., :0]),
    "one_point": lambda x, i: tf.gather_nd(x, i[0]),
    "one_row": lambda x, i: tf.gather_nd(x, i[0, :1]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", _GATHERS)
def test_gather(name, is_open, dtype):
    shape, places = (_OPEN, [None, 2]) if is_open else ([2, 2, 4], [2, 2])
    for kind in _KINDS:
        written = Written(_GATHERS[name], tf.TensorSpec(shape, dtype), tf.TensorSpec(places, kind))
        written.check(special(dtype, (2, 2, 4)), np.array([[1, 0], [0, 1]], kind))


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_of_nothing(dtype, kind):
    """No indices, and windows without elements."""
    written = Written(
        lambda x, i: [
            tf.gather(x, i),
            tf.gather(x, i, axis=2),
            tf.gather_nd(x, tf.stack([i, i], 1)),
            tf.gather(x[:, :, :0], [1, 0]),
            tf.gather(x[:, :, :0], [[1], [0]], axis=1, batch_dims=1),
        ],
        tf.TensorSpec(_OPEN, dtype),
        tf.TensorSpec([None], kind),
    )
    written.check(special(dtype, (2, 3, 4)), np.zeros(0, kind))


_SCATTERS = ("Update", "Add", "Sub", "Min", "Max")


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("Update", "bool"),
        *((n, d) for n in _SCATTERS for d in NUMBERS if n in ("Update",) or d != "float16"),
    ],
)
def test_scatter(name, dtype, kind):
    """Several updates of one row: they are written, or combined, one after the other."""
    op = getattr(_raw, f"TensorScatter{name}")
    is_read_in_order = dtype in FLOATS and name in ("Min", "Max")
    values = special if not is_read_in_order else _finite
    for shape, places, rows in (((3, 2, 4), [4, 2], [4, 4]), (_OPEN, [None, 2], [None, None])):
        written = Written(
            lambda x, i, u, op=op: op(tensor=x, indices=i, updates=u),
            tf.TensorSpec(shape, dtype),
            tf.TensorSpec(places, kind),
            tf.TensorSpec(rows, dtype),
        )
        x, updates = values(dtype, (3, 2, 4)), values(dtype, (4, 4), seed=1)
        for indices in ([[0, 1], [2, 0], [0, 0], [2, 1]], [[0, 1], [2, 0], [0, 1], [0, 1]]):
            written.check(x, np.array(indices, kind), updates)
        if places[0] is None:
            written.check(x, np.zeros((0, 2), kind), updates[:0])
            written.check(x[:, :, :0], np.zeros((0, 2), kind), updates[:0, :0])


def _finite(dtype, shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_updates_of_elements_and_blocks(dtype, depth):
    written = Written(
        lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u),
        tf.TensorSpec(_OPEN, dtype),
        tf.TensorSpec([None, None, depth], "int32"),
        tf.TensorSpec([None] * (5 - depth), dtype),
    )
    indices = np.random.RandomState(0).randint(0, 2, (2, 3, depth)).astype(np.int32)
    written.check(
        special(dtype, (3, 2, 4)), indices, special(dtype, (2, 3, *(3, 2, 4)[depth:]), seed=1)
    )


@pytest.mark.parametrize("name", ["Update", "Add"])
def test_many_updates_of_few_rows(name):
    """With several threads too, updates of one element keep their order."""
    op = getattr(_raw, f"TensorScatter{name}")
    written = Written(
        lambda x, i, u: op(tensor=x, indices=i, updates=u),
        tf.TensorSpec([None], "float32"),
        tf.TensorSpec([None, 1], "int32"),
        tf.TensorSpec([None], "float32"),
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 4
    written.session = onnxruntime.InferenceSession(
        written.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    random = np.random.RandomState(0)
    count = 200_000
    for rows in (1, 7, 1000):
        written.check(
            random.randn(rows).astype(np.float32),
            random.randint(0, rows, (count, 1)).astype(np.int32),
            random.randn(count).astype(np.float32),
        )


@pytest.mark.parametrize("dtype", NUMBERS[1:])
def test_scatter_into_zeros(dtype):
    written = Written(
        lambda i, u, n: [
            _raw.ScatterNd(indices=i, updates=u, shape=[3, 4]),
            _raw.ScatterNd(indices=i, updates=u, shape=tf.stack([n, 4])),
        ],
        tf.TensorSpec([None, 1], "int32"),
        tf.TensorSpec([None, 4], dtype),
        tf.TensorSpec([], "int32"),
    )
    for indices in ([[2], [0]], [[1], [1]], np.zeros((0, 1))):
        updates = special(dtype, (len(indices), 4))
        if dtype in FLOATS:
            # TensorFlow's kernel makes zeros of the smallest numbers.
            updates[np.abs(updates) < np.finfo(dtype).tiny] = 0
        written.check(np.array(indices, np.int32), updates, np.int32(5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis, kind, dtype):
    on, off = special(dtype, (1, 1, 1)).reshape(()), special(dtype, (1, 1, 1), 1).reshape(())
    written = Written(
        lambda i, n: [
            _raw.OneHot(indices=i, depth=3, on_value=on, off_value=off, axis=axis),
            _raw.OneHot(indices=i, depth=n, on_value=on, off_value=off, axis=axis),
            _raw.OneHot(indices=i[0, 0], depth=3, on_value=off, off_value=on, axis=-1),
        ],
        tf.TensorSpec([None, None], kind),
        tf.TensorSpec([], "int32"),
    )
    indices = np.array([[0, 1, 2], [3, 255, 100]]).astype(kind)
    written.check(indices, np.int32(4))
    if kind != "uint8":
        written.check(-indices, np.int32(2))


def test_float16_is_not_added():
    with pytest.raises(NotImplementedError, match="no add of float16"):
        Written(
            lambda x: _raw.TensorScatterAdd(tensor=x, indices=[[0], [0]], updates=x[:2]),
            tf.TensorSpec([3], "float16"),
        )


@pytest.mark.parametrize("name", ["Min", "Max"])
def test_extremes_of_float16(name):
    op = getattr(_raw, f"TensorScatter{name}")
    written = Written(
        lambda x, u: op(tensor=x, indices=[[0], [2], [0]], updates=u),
        tf.TensorSpec([3, 4], "float16"),
        tf.TensorSpec([3, 4], "float16"),
    )
    written.check(_finite("float16", (3, 4)), _finite("float16", (3, 4), 1))
