"""What functions refuse: by the class that TensorFlow raises, the substrate's own."""

from __future__ import annotations

import pytest
import tensorflow

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

CASES = [
    Case("one_hot of floats", lambda tf: tf.one_hot([1.0], 3)),
    Case("one_hot of int16", lambda tf: tf.one_hot(tf.constant([1], tf.int16), 3)),
    Case("one_hot of int64", lambda tf: tf.one_hot(tf.constant([1], tf.int64), 3)),
    Case("filling a negative number", lambda tf: tf.fill([-1], 1.0)),
    Case("an index beyond the dimensions", lambda tf: tf.unravel_index([12], [3, 4])),
    Case("the last index of the dimensions", lambda tf: tf.unravel_index([11], [3, 4])),
    Case("a branch by a text", lambda tf: tf.switch_case("a", [lambda: 1])),
    Case("a branch by a float", lambda tf: tf.switch_case(tf.constant(1.0), [lambda: 1])),
    Case(
        "another dtype into a TensorArray",
        lambda tf: tf.TensorArray(tf.float32, 3).write(0, tf.constant(1.0, tf.float64)),
    ),
    Case(
        "a Python number into a TensorArray",
        lambda tf: tf.TensorArray(tf.float32, 1).write(0, 1).stack(),
    ),
    Case("cross of pairs", lambda tf: tf.linalg.cross([1.0, 2.0], [3.0, 4.0])),
    Case("einsum of two sizes", lambda tf: tf.einsum("i,i->i", tf.ones([2]), tf.ones([3]))),
    Case("einsum of a missing operand", lambda tf: tf.einsum("ij,jk->ik", tf.ones([2, 3]))),
    Case("solve of two sizes", lambda tf: tf.linalg.solve(tf.eye(2), tf.ones([3, 1]))),
    Case("segments of another length", lambda tf: tf.math.segment_sum([1.0, 2.0], [0])),
    Case("a segment too far", lambda tf: tf.math.unsorted_segment_sum([1.0, 2.0], [0, 5], 2)),
    Case(
        "a product's segment too far",
        lambda tf: tf.math.unsorted_segment_prod([1.0, 2.0], [0, 5], 2),
    ),
    Case(
        "products of bfloat16",
        lambda tf: [
            tf.matmul(tf.ones([2, 3], tf.bfloat16), tf.ones([3, 1], tf.bfloat16)),
            tf.linalg.matvec(tf.ones([2, 3], tf.bfloat16), tf.ones([3], tf.bfloat16)),
        ],
    ),
]


@over(CASES)
def test_refusals(case, substrate):
    assert_as_tensorflow(case, substrate)


def names():
    found = vars(tensorflow.errors).values()
    return sorted(kind.__name__ for kind in found if isinstance(kind, type))


@pytest.mark.parametrize("name", [n for n in names() if hasattr(tf_of("numpy").errors, n)])
def test_both_substrates_have_the_same_classes_of_errors(name):
    assert getattr(tf_of("jax").errors, name) is getattr(tf_of("numpy").errors, name)


def test_what_numpy_computes_on_jax_raises_what_the_program_catches():
    tf = tf_of("jax")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        tf.math.floordiv(7, 0)
