"""tf.sparse: a part and another shape of a sparse tensor, and its product with a dense one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import EXPORTS, export, op
from tf_substrates.numpy.sets import SparseTensor
from tf_substrates.numpy.tensors import convert, require, static_value, wrap


@export("sparse.reshape", "compat.v1.sparse_reshape")
def reshape(sp_input: SparseTensor, shape: Any, name: Any = None) -> SparseTensor:
    """The same elements in another shape, of which one size may be -1.

    Raises:
      tf.errors.InvalidArgumentError: another number of elements, or more than one -1.
    """
    old = sp_input.shape.as_list()
    new = _whole_shape(old, static_value(shape, "The shape of tf.sparse.reshape").tolist())
    indices = convert(sp_input.indices)
    flat = xp.zeros(indices.shape[0], np.int64)
    for axis, size in enumerate(old):
        flat = flat * size + indices[:, axis]
    columns = []
    for size in reversed(new):
        columns.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    moved = xp.stack(columns[::-1], axis=-1) if new else xp.zeros((len(flat), 0), np.int64)
    return SparseTensor(wrap(moved), sp_input.values, new)


def _whole_shape(old: list, new: list) -> list:
    """The shape without -1."""
    unknown = [axis for axis, size in enumerate(new) if size == -1]
    if len(unknown) > 1:
        raise invalid_argument(
            f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}"
            " [Op:SparseReshape]"
        )
    count, known = math.prod(old), math.prod(size for size in new if size != -1)
    whole = [count // max(known, 1) if size == -1 else size for size in new]
    if math.prod(whole) != count:
        needs = f"requires a multiple of {known}" if unknown else f"has {known}"
        raise invalid_argument(
            f"Input to reshape is a tensor with {count} dense values, but the requested shape"
            f" {needs}. input_shape={old} output_shape={whole} [Op:SparseReshape]"
        )
    return whole


@export("sparse.slice", "compat.v1.sparse_slice")
def tf_slice(sp_input: SparseTensor, start: Any, size: Any, name: Any = None) -> SparseTensor:
    """The elements from `start` on, in a shape of at most `size`.

    Raises:
      ValueError: the indices depend on what JAX traces; how many are inside decides a shape.
      tf.errors.InvalidArgumentError: start or size have another length, or a size is negative.
    """
    shape = sp_input.shape.as_list()
    first, sizes = (
        static_value(v, f"tf.sparse.slice: {what}").ravel().tolist()
        for v, what in ((start, "start"), (size, "size"))
    )
    for what, given in (("start", first), ("size", sizes)):
        if len(given) != len(shape):
            raise invalid_argument(
                f"Expected {what} to be a vector of length {len(shape)} but got length"
                f" {len(given)} [Op:SparseSlice]"
            )
    if min(sizes, default=0) < 0:
        raise invalid_argument(f"Expected a non-negative size, got {min(sizes)} [Op:SparseSlice]")
    indices = static_value(sp_input.indices, "The indices of tf.sparse.slice")
    end = [at + count for at, count in zip(first, sizes, strict=True)]
    inside = np.flatnonzero(np.all((indices >= first) & (indices < end), axis=-1))
    left = [
        max(min(count, whole - at), 0) for at, count, whole in zip(first, sizes, shape, strict=True)
    ]
    values = EXPORTS["gather"](sp_input.values, inside)
    return SparseTensor(indices[inside] - np.array(first, np.int64), values, left)


_PRODUCTS = ("bfloat16", "complex64", "complex128", "float32", "float64", "int32")


@export("sparse.sparse_dense_matmul", "compat.v1.sparse_tensor_dense_matmul")
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: Any = None
) -> Any:
    """The product of two matrices, one of which is sparse.

    Args:
      sp_a: `[m, n]`; one of `sp_a` and `b` is a tf.SparseTensor.
      b: `[n, k]`.
      adjoint_a, adjoint_b: whether a matrix is transposed and conjugated before.

    Raises:
      tf.errors.InvalidArgumentError: the dtypes differ, `b` is no matrix, or sizes do not match.
    """
    if isinstance(b, SparseTensor):
        # By the adjoint of the product, of which TensorFlow takes the transpose alone: complex
        # results are conjugates of what they should be.
        product = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return EXPORTS["transpose"](product)
    return SparseTensorDenseMatMul(
        sp_a.indices, sp_a.values, sp_a.dense_shape, b, adjoint_a, adjoint_b
    )


@op("raw_ops.SparseTensorDenseMatMul")
def SparseTensorDenseMatMul(
    a_indices: Any,
    a_values: Any,
    a_shape: Any,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: Any = None,
) -> Any:
    """The product of a sparse matrix, of which there are the parts, and a dense one."""
    shape = static_value(a_shape, "The shape of a sparse matrix").tolist()
    values, right = convert(a_values), convert(b)
    if values.dtype != right.dtype:
        first, second = (dtypes.dtype_of(array).name for array in (values, right))
        raise invalid_argument(
            f"cannot compute SparseTensorDenseMatMul as input #3(zero-based) was expected to be a"
            f" {first} tensor but is a {second} tensor [Op:SparseTensorDenseMatMul]"
        )
    require("SparseTensorDenseMatMul", values, _PRODUCTS)
    if len(right.shape) != 2:
        raise invalid_argument("Tensor 'b' is not a matrix [Op:SparseTensorDenseMatMul]")
    rows, columns = xp.moveaxis(convert(a_indices), -1, 0)
    if adjoint_a:
        rows, columns, values, shape = columns, rows, xp.conj(values), shape[::-1]
    if adjoint_b:
        right = xp.conj(right).T
    if right.shape[0] != shape[1]:
        raise invalid_argument(
            "Cannot multiply A and B because inner dimension does not match:"
            f" {shape[1]} vs. {right.shape[0]}.  Did you forget a transpose?"
            " [Op:SparseTensorDenseMatMul]"
        )
    terms = values[:, None] * right[columns]
    return convert(EXPORTS["math.unsorted_segment_sum"](terms, rows, shape[0]))
