"""Reductions in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, INTEGERS, NUMBERS, random

RAW = tf.raw_ops

AXES = [
    ((4, 7), [1]),
    ((4, 7), [0]),
    ((4, 7), [-1, 0]),
    ((3, 4, 5, 2), [1, 2]),
    ((3, 4, 5, 2), [0, 3]),
    ((3, 4, 5), [0]),
    ((5,), [0]),
    ((2, 3), []),
    ((), []),
    ((1, 3), [0]),
    ((2, 300), [1]),
]
EMPTY = [((0, 3), [0]), ((0, 3), [1]), ((2, 3, 0), [1, 2])]
TOLERANCE = {"float16": 4e-3, "bfloat16": 0.05, "float32": 1e-6, "float64": 1e-14}


def _reduce(op, axes, keep_dims=False):
    axis = np.array(axes, np.int32)
    return lambda x: getattr(RAW, op)(input=x, axis=axis, keep_dims=keep_dims)


@pytest.mark.parametrize(("shape", "axes"), AXES)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["Sum", "Prod", "Mean", "Max", "Min"])
def test_integers_wrap_around(op, dtype, shape, axes):
    for seed, keep_dims in ((2, False), (3, True)):
        check(_reduce(op, axes, keep_dims), random(shape, dtype, seed))


@pytest.mark.parametrize(("shape", "axes"), EMPTY)
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", ["Sum", "Prod", "Max", "Min"])
def test_axes_without_elements(op, dtype, shape, axes):
    # ONNX Runtime finds no extreme of integers of 64 bits where an open axis turns out empty.
    are_open = (False,) if op in ("Max", "Min") and dtype[-2:] in ("64", "32") else (False, True)
    check(_reduce(op, axes), random(shape, dtype), are_open=are_open)


@pytest.mark.parametrize(("shape", "axes"), AXES)
@pytest.mark.parametrize("dtype", [*FLOATS, "bfloat16"])
@pytest.mark.parametrize("op", ["Sum", "Prod", "Mean", "Max", "Min"])
def test_floats(op, dtype, shape, axes):
    x = random(shape, dtype)
    x = (1 + x / 8).astype(x.dtype) if op == "Prod" else x
    relative = TOLERANCE[dtype] * 10 if x.size > 100 else TOLERANCE[dtype]
    for keep_dims in (False, True):
        check(_reduce(op, axes, keep_dims), x, relative=relative)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_mean_of_nothing_is_nan(dtype):
    check(_reduce("Mean", [1]), np.zeros([2, 0], dtype))


@pytest.mark.parametrize(("shape", "axes"), [*AXES, *EMPTY])
@pytest.mark.parametrize("op", ["All", "Any"])
@pytest.mark.parametrize("opset", [18, 21])
def test_bools(op, shape, axes, opset):
    check(_reduce(op, axes), random(shape, "bool"), opset=opset)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_a_reduction_of_floats_is_one_node(op):
    x = np.ones([2, 3], np.float32)
    assert len(check(_reduce(op, [1]), x, are_open=(True, False))) == 1


def test_the_product_of_sizes_is_one_reduction():
    def count(x):
        return RAW.Prod(input=RAW.Shape(input=x)[1:], axis=[0])

    ops = check(count, np.ones([2, 3, 4], np.float32))
    assert ops.count("ReduceProd") == 1
    assert "If" not in ops


@pytest.mark.parametrize("shape", [(), (2,), (2, 3, 0)])
def test_the_product_of_all_sizes(shape):
    def count(x):
        return RAW.Prod(input=RAW.Shape(input=x), axis=[0])

    check(count, np.ones(shape, np.float32), are_open=(True,))


def test_computed_axes_are_refused():
    with pytest.raises(NotImplementedError, match="Max along axes that are computed"):
        check(lambda x, axis: RAW.Max(input=x, axis=axis), np.ones([2, 3]), np.array([1]))


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16", "bool"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_of_extremes(op, dtype):
    for shape, axis in (((4, 7), 1), ((4, 7), 0), ((3, 5, 4), -2), ((6,), 0)):
        for seed, kind in ((2, tf.int32), (3, tf.int64)):
            x = random(shape, dtype, seed)
            x.ravel()[3] = x.ravel()[1]

            def place(x, axis=axis, kind=kind):
                return getattr(RAW, op)(input=x, dimension=axis, output_type=kind)

            check(place, x)
