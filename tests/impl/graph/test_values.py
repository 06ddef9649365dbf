"""Ops of known operands: numbers and sizes give the same, and what TensorFlow gives."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

from jax2tf._src.graph import values
from jax2tf._src.graph.make import make, making

X = np.array([[5, 0, -3], [7, 2, 4]], np.int32)
Y = np.array([[2, 3, 4], [1, 7, 2]], np.int32)


def ints(*numbers):
    return np.array(numbers, np.int32)


def one(number):
    return np.array(number, np.int32)


# The operands and the attributes of a use of each op.
USES = {
    **{op: ([X, Y], {}) for op in ("AddV2", "Maximum", "Minimum", "Mul", "Sub")},
    "BroadcastTo": ([X, ints(4, 2, 3)], {}),
    "Cast": ([X], {"DstT": np.dtype(np.int64)}),
    "ConcatV2": ([[X, Y], one(1)], {}),
    "ExpandDims": ([X, one(-1)], {}),
    "Fill": ([ints(2, 3), one(7)], {}),
    "GatherV2": ([X, ints(1, 0, 1), one(1)], {}),
    "Identity": ([X], {}),
    "Neg": ([X], {}),
    "OnesLike": ([X], {}),
    "Pack": ([[X, Y]], {"axis": 1}),
    "Range": ([one(7), one(0), one(-2)], {}),
    "Reshape": ([X, ints(3, -1)], {}),
    "ReverseV2": ([X, ints(0, -1)], {}),
    "Slice": ([X, ints(0, 1), ints(2, -1)], {}),
    "Split": ([one(1), X], {"num_split": 3}),
    "Squeeze": ([X[:, None]], {"squeeze_dims": [1]}),
    "StridedSlice": ([X, ints(0, -1), ints(2, -4), ints(1, -2)], {"begin_mask": 1}),
    "Tile": ([X, ints(2, 1)], {}),
    "Transpose": ([X, ints(1, 0)], {}),
    "Unpack": ([X], {"num": 3, "axis": 1}),
    "ZerosLike": ([X], {}),
}
OF_BOTH = {op for op, x in values.OPS.items() if None not in (x.of_numbers, x.of_sizes)}


def test_every_op_has_a_use():
    assert USES.keys() == OF_BOTH


def by_tensorflow(op, operands, attributes):
    raw = getattr(tf.raw_ops, op)
    names = [*inspect.signature(raw).parameters][: len(operands)]
    options = {"axis" if name == "squeeze_dims" else name: x for name, x in attributes.items()}
    results = raw(**dict(zip(names, operands, strict=True)), **options)
    return [x.numpy() for x in (results if isinstance(results, list) else [results])]


def our_node(op, operands, attributes):
    """A node of arguments, and its operands in one list."""
    arrays = [x for part in operands for x in (part if isinstance(part, list) else [part])]
    with making(folds=False):
        node = make(op, arrays, attributes)[0].node
    return node, arrays


@pytest.mark.parametrize("op", USES)
def test_numbers_and_sizes(op):
    operands, attributes = USES[op]
    theirs = by_tensorflow(op, operands, attributes)
    node, arrays = our_node(op, operands, attributes)
    for given in (arrays, [np.array(x, object) for x in arrays]):
        result = values.OPS[op].value(node, given)
        ours = result if isinstance(result, list) else [result]
        for a, b in zip(ours, theirs, strict=True):
            assert np.shape(a) == b.shape
            np.testing.assert_array_equal(np.asarray(a).astype(b.dtype), b)


@pytest.mark.parametrize("op", [op for op in USES if values.OPS[op].places])
def test_nothing_is_known_at_unknown_places(op):
    node, arrays = our_node(op, *USES[op])
    for place in values.OPS[op].places:
        sizes = [np.array(x, object) for x in arrays]
        sizes[place] = np.full(arrays[place].shape, "b", object)
        assert values.OPS[op].value(node, sizes) is None


@pytest.mark.parametrize(
    ("op", "x", "y", "expected"),
    [
        ("AddV2", ["b", 2, None], [1, 3, 4], ["b + 1", 5, None]),
        ("FloorDiv", ["4*b", 7, 5], [2, 2, 0], ["2*b", 3, None]),
        ("TruncateDiv", ["4*b", -7, 7], [2, 2, 2], ["2*b", None, 3]),
        ("FloorMod", [7, -7, "2*b"], [2, 2, 2], [1, 1, 0]),
        ("Maximum", ["b", 2, 3], ["b", 5, 1], ["b", 5, 3]),
    ],
)
def test_sizes_with_names(op, x, y, expected):
    node, _ = our_node(op, [X[0], Y[0]], {})
    result = values.OPS[op].value(node, [np.array(x, object), np.array(y, object)])
    assert result.tolist() == expected
