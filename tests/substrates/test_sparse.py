"""tf.sparse, tf.IndexedSlices, and what adds rows to variables."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

INDICES = np.array([[0, 1], [1, 2], [2, 0]])


def sparse(tf, values=(1.0, 2.0, 3.0)):
    return tf.SparseTensor(INDICES, tf.constant(values), [3, 4])


def parts(found):
    return [found.indices, found.values, found.dense_shape]


@over(
    [
        Case(f"to {shape}", lambda tf, s=shape: parts(tf.sparse.reshape(sparse(tf), s)))
        for shape in ([4, 3], [-1], [2, -1, 3], [5, 3], [-1, 5], [-1, -1])
    ]
)
def test_reshape(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case(f"{a} and {b}", lambda tf, a=a, b=b: parts(tf.sparse.slice(sparse(tf), a, b)))
        for a, b in (
            ([0, 1], [2, 2]),
            ([1, 1], [20, 20]),
            ([-1, 0], [2, 2]),
            ([5, 0], [2, 2]),
            ([1], [20]),
            ([0, 0], [-1, 2]),
        )
    ]
)
def test_slice(case, substrate):
    assert_as_tensorflow(case, substrate)


def product(*shape, dtype=np.float32, **options):
    b = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return lambda tf: tf.sparse.sparse_dense_matmul(sparse(tf), b, **options)


@over(
    [
        Case("a matrix", product(4, 2)),
        Case("adjoint of the first", product(3, 2, adjoint_a=True)),
        Case("adjoint of the second", product(2, 4, adjoint_b=True)),
        Case("other sizes", product(3, 2)),
        Case("a vector", product(4)),
        Case("another dtype", product(4, 2, dtype=np.float64)),
        Case(
            "the second is sparse",
            lambda tf: tf.sparse.sparse_dense_matmul(tf.reshape(tf.range(6.0), [2, 3]), sparse(tf)),
        ),
        *(
            Case(
                f"the second is sparse, adjoint {a} and {b}",
                lambda tf, a=a, b=b: tf.sparse.sparse_dense_matmul(
                    tf.reshape(tf.range(12.0), [4, 3] if a == b else [3, 4]),
                    sparse(tf),
                    adjoint_a=a,
                    adjoint_b=b,
                ),
            )
            for a in (False, True)
            for b in (False, True)
        ),
        Case(
            "complex numbers",
            lambda tf: tf.sparse.sparse_dense_matmul(
                sparse(tf, (1j, 2.0, 3.0 + 1j)), tf.ones([2, 3], tf.complex128) * 1j, True, True
            ),
        ),
        Case("whole numbers", lambda tf: tf.sparse.sparse_dense_matmul(
            sparse(tf, (1, 2, 3)), tf.ones([4, 2], tf.int32))),
    ]
)  # fmt: skip
def test_products(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_sparse_tensors_are_trees_of_jax():
    tf = tf_of("jax")
    doubled = jax.jit(lambda s: jax.tree.map(lambda x: x * 2, s))(sparse(tf))
    assert np.asarray(doubled.values).tolist() == [2.0, 4.0, 6.0]
    b = np.ones((4, 2), np.float32)
    gradient = jax.grad(lambda s: tf.sparse.sparse_dense_matmul(s, b).sum(), allow_int=True)
    assert gradient(sparse(tf)).values.tolist() == [2.0, 2.0, 2.0]
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = tf.sparse.sparse_dense_matmul(tf.SparseTensor(INDICES, values, [3, 4]), b) ** 2
    assert tape.gradient(total, values).tolist() == [4.0, 8.0, 12.0]


def test_slices_need_known_indices():
    tf = tf_of("jax")

    def f(indices):
        return tf.sparse.slice(tf.SparseTensor(indices, tf.ones([3]), [3, 4]), [0, 0], [1, 1])

    with pytest.raises(ValueError, match=r"indices of tf.sparse.slice must be known"):
        jax.jit(f)(INDICES)


def rows(tf, shape=(4, 2)):
    values = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    given = None if shape is None else tf.constant(shape)
    return tf.IndexedSlices(values, tf.constant([0, 2, 0]), given)


@over(
    [
        Case("whole", lambda tf: tf.convert_to_tensor(rows(tf))),
        Case("without a shape", lambda tf: tf.convert_to_tensor(rows(tf, None))),
        Case("as another dtype", lambda tf: tf.convert_to_tensor(rows(tf), tf.float64)),
        Case("an operand", lambda tf: tf.add(rows(tf), 1.0)),
        Case("negative", lambda tf: tf.convert_to_tensor(-rows(tf))),
        Case("added", lambda tf: rows(tf) + 1),
        Case("shape", lambda tf: [str(rows(tf).shape), str(rows(tf, None).shape)]),
        Case("dtype", lambda tf: rows(tf).dtype.name),
        Case("parts", lambda tf: [rows(tf).values, rows(tf).indices, rows(tf).dense_shape]),
        Case("flat", lambda tf: tf.nest.flatten(rows(tf), expand_composites=True)),
        Case(
            "packed",
            lambda tf: tf.convert_to_tensor(
                tf.nest.map_structure(lambda x: x * 1, rows(tf), expand_composites=True)
            ),
        ),
        Case("its spec", lambda tf: repr(tf.type_spec_from_value(rows(tf)))),
        Case("its spec without a shape", lambda tf: repr(tf.type_spec_from_value(rows(tf, None)))),
        Case("a spec", lambda tf: repr(tf.IndexedSlicesSpec())),
        Case("equal specs", lambda tf: str(
            tf.type_spec_from_value(rows(tf)) == tf.type_spec_from_value(-rows(tf)))),
    ]
)  # fmt: skip
def test_indexed_slices(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_indexed_slices_are_trees_of_jax():
    tf = tf_of("jax")
    whole = jax.jit(lambda s: tf.convert_to_tensor(jax.tree.map(lambda x: x * 1, s)))(rows(tf))
    assert whole.tolist() == [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    assert jax.jit(lambda s: s)(rows(tf, None)).dense_shape is None


def scattered(indices, updates, start=((1.0, 2.0), (3.0, 4.0))):
    def program(tf):
        variable = tf.Variable(start)
        return [tf.compat.v1.scatter_add(variable, indices, updates), variable]

    return program


def descent(alpha, delta):
    def program(tf):
        variable = tf.Variable([1.0, 2.0])
        tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=alpha, delta=delta)
        return variable

    return program


@over(
    [
        Case("rows", scattered([1, 1], [[1.0, 2.0], [1.0, 1.0]])),
        Case("one row", scattered(1, [1.0, 2.0])),
        Case("one number", scattered([1, 0], 2.0)),
        Case("outside", scattered([0, 5], 1.0)),
        Case("descent", descent(0.5, [1.0, 2.0])),
        Case("descent of another shape", descent(0.5, [1.0])),
    ]
)
def test_changes_of_variables(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_the_gradient_of_rows_whose_shape_is_a_list():
    found = []
    for tf in (tensorflow, tf_of("jax")):
        values = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        with tf.GradientTape() as tape:
            tape.watch(values)
            dense = tf.convert_to_tensor(tf.IndexedSlices(values, tf.constant([0, 2, 0]), [4, 2]))
            total = tf.reduce_sum(dense**2)
        found.append(np.asarray(tape.gradient(total, values)))
    np.testing.assert_array_equal(*found)
