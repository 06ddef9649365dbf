"""Arrays, reductions, segments, order: TensorFlow's values, dtypes, shapes and errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow

from tests.substrates.comparing import SUBSTRATES, Case, assert_as_tensorflow, over, tf_of

NAN, INF = np.nan, np.inf


def m(tf):
    return tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def i(tf):
    return tf.range(6)


REDUCTIONS = [
    Case(
        f"{name} of {what}",
        lambda tf, name=name, values=values, dtype=dtype, axis=axis: getattr(tf.math, name)(
            tf.constant(values, dtype), axis=axis
        ),
        atol=1e-7,
        # On JAX each of these is a program that XLA compiles.
        only=("numpy",) if what in ("NaN", "no axes") else SUBSTRATES,
    )
    for name in (
        "reduce_sum",
        "reduce_prod",
        "reduce_mean",
        "reduce_max",
        "reduce_min",
        "reduce_logsumexp",
        "reduce_euclidean_norm",
        "reduce_variance",
        "reduce_std",
    )
    for what, values, dtype, axis in (
        ("floats", [[1.0, -2.0], [3.0, 0.5]], "float32", 1),
        ("NaN", [1.0, NAN], "float32", None),
        ("infinities", [-INF, -INF], "float32", None),
        ("nothing", np.zeros([0]), "float32", None),
        ("no axes", [1.0, 2.0], "float32", []),
        ("ints", [[-7, 2], [3, 5]], "int32", [0, -1]),
        ("uint8", [200, 200], "uint8", None),
        ("an axis outside", [1.0, 2.0], "float32", 5),
        ("an axis twice", [[1.0]], "float32", [0, 0]),
        ("bools", [True, False], "bool", None),
    )
]

CASES = [
    Case(
        "keepdims",
        lambda tf: [
            f(m(tf), axis=0, keepdims=True)
            for f in (tf.reduce_sum, tf.reduce_max, tf.reduce_logsumexp)
        ],
    ),
    Case(
        "all and any",
        lambda tf: [
            f([[True, False], [True, True]], axis=a)
            for f in (tf.reduce_all, tf.reduce_any)
            for a in (0, None)
        ],
    ),
    Case("all of ints", lambda tf: tf.reduce_all(tf.constant([1]))),
    Case("count_nonzero", lambda tf: tf.math.count_nonzero([[0, 1], [2, 0]], axis=0)),
    Case(
        "argmax",
        lambda tf: [tf.argmax([1.0, NAN, 3.0]), tf.argmin([3, 3]), tf.argmax(m(tf), 1, tf.int32)],
    ),
    Case("argmin of nothing", lambda tf: tf.argmin(tf.zeros([0]))),
    Case(
        "cumulative",
        lambda tf: [
            f(m(tf), axis=1, exclusive=e, reverse=r)
            for f in (tf.cumsum, tf.math.cumprod, tf.math.cumulative_logsumexp)
            for e in (False, True)
            for r in (False, True)
        ],
    ),
    Case("cumsum of ints", lambda tf: tf.cumsum(i(tf))),
    Case(
        "segments",
        lambda tf: [
            f(m(tf), tf.constant([0, 2]))
            for f in (
                tf.math.segment_sum,
                tf.math.segment_prod,
                tf.math.segment_max,
                tf.math.segment_min,
                tf.math.segment_mean,
            )
        ],
    ),
    Case(
        "unsorted segments",
        lambda tf: [
            f(m(tf), tf.constant([2, -1]), 3)
            for f in (
                tf.math.unsorted_segment_sum,
                tf.math.unsorted_segment_prod,
                tf.math.unsorted_segment_max,
                tf.math.unsorted_segment_min,
                tf.math.unsorted_segment_mean,
                tf.math.unsorted_segment_sqrt_n,
            )
        ],
    ),
    Case(
        "bincount",
        lambda tf: [
            tf.math.bincount([1, 1, 3]),
            tf.math.bincount([1, 5], minlength=2, maxlength=3),
            tf.math.bincount([1, 1], weights=[0.5, 1.0]),
            tf.math.bincount([[1, 1], [0, 2]], axis=-1),
        ],
    ),
    Case("confusion_matrix", lambda tf: tf.math.confusion_matrix([0, 1, 1], [1, 1, 0])),
    Case("top_k", lambda tf: [*tf.math.top_k(tf.constant([1.0, 3.0, 2.0, 3.0]), 3)]),
    Case("top_k of too many", lambda tf: tf.math.top_k(tf.constant([1.0]), 3)),
    Case(
        "sort",
        lambda tf: [
            tf.sort([3, 1, 2]),
            tf.sort([3, 1, 2], direction="DESCENDING"),
            tf.argsort([3.0, 1.0, 2.0]),
            tf.sort(m(tf), axis=0, direction="DESCENDING"),
        ],
    ),
    Case("sort some way", lambda tf: tf.sort([1], direction="UP")),
    Case(
        "searchsorted",
        lambda tf: [
            tf.searchsorted([[1.0, 2.0, 2.0, 5.0]], [[2.0, 9.0, 0.0]], side=s)
            for s in ("left", "right")
        ],
    ),
    Case("in_top_k", lambda tf: tf.math.in_top_k([0, 2], [[0.1, 0.9, 0.5], [0.1, 0.2, 0.3]], 1)),
    Case(
        "histogram", lambda tf: tf.histogram_fixed_width([-1.0, 0.5, 1.5, 9.0], [0.0, 5.0], nbins=5)
    ),
    # shapes
    Case(
        "shape, size, rank",
        lambda tf: [
            tf.shape(m(tf)),
            tf.size(m(tf)),
            tf.rank(m(tf)),
            tf.shape(m(tf), out_type=tf.int64),
        ],
    ),
    Case(
        "reshape",
        lambda tf: [tf.reshape(m(tf), [3, -1]), tf.reshape(m(tf), [-1]), tf.reshape(5, [1, 1])],
    ),
    Case("reshape of another size", lambda tf: tf.reshape(m(tf), [4])),
    Case("reshape with two unknowns", lambda tf: tf.reshape(m(tf), [-1, -1])),
    Case(
        "expand and squeeze",
        lambda tf: [
            tf.expand_dims(m(tf), 1),
            tf.expand_dims(m(tf), -1),
            tf.squeeze(tf.zeros([1, 2, 1])),
            tf.squeeze(tf.zeros([1, 2, 1]), [0]),
        ],
    ),
    *(
        Case(
            f"gather with {batch_dims} batch dimensions from the end",
            lambda tf, b=batch_dims: tf.gather(
                tf.reshape(tf.range(24), [2, 3, 4]), [[1, 0, 2], [3, 1, 1]], batch_dims=b
            ),
        )
        for batch_dims in (-1, -2)
    ),
    Case("expand at a list of one", lambda tf: tf.expand_dims(m(tf), [-1])),
    Case("expand at a list of two", lambda tf: tf.expand_dims(m(tf), [0, 1])),
    Case(
        "searchsorted among none",
        lambda tf: [
            tf.searchsorted(tf.zeros([2, 0]), tf.ones([2, 3])),
            tf.searchsorted(tf.zeros([2, 3]), tf.ones([2, 0])),
            tf.searchsorted(tf.zeros([0, 3]), tf.ones([0, 2])),
        ],
    ),
    Case("expand outside", lambda tf: tf.expand_dims(m(tf), 5)),
    Case("squeeze what is not 1", lambda tf: tf.squeeze(m(tf), 0)),
    Case(
        "transpose",
        lambda tf: [
            tf.transpose(m(tf)),
            tf.transpose(m(tf), [1, 0]),
            tf.transpose(tf.constant([[1j, 2]]), conjugate=True),
        ],
    ),
    Case("transpose of another rank", lambda tf: tf.transpose(m(tf), [0])),
    Case("broadcast_to", lambda tf: tf.broadcast_to([1, 2], [3, 2])),
    Case("broadcast to what does not fit", lambda tf: tf.broadcast_to([1, 2], [3, 3])),
    Case(
        "broadcast shapes",
        lambda tf: [
            tf.broadcast_dynamic_shape([2, 1], [3]),
            tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])).as_list(),
        ],
    ),
    Case(
        "creation",
        lambda tf: [
            tf.zeros([2]),
            tf.ones([1, 2], tf.int32),
            tf.fill([2], 3.5),
            tf.eye(2, 3),
            tf.eye(2, batch_shape=[2]),
            tf.zeros_like([1, 2]),
            tf.ones_like([1], tf.bool),
            tf.zeros([], tf.complex64),
        ],
    ),
    Case(
        "range",
        lambda tf: [
            tf.range(3),
            tf.range(1, 5, 2),
            tf.range(5, 1, -2),
            tf.range(0.0, 1.0, 0.25),
            tf.range(3, dtype=tf.float64),
            tf.range(0),
            tf.range(tf.constant(3, tf.int64)),
        ],
    ),
    Case("range of step 0", lambda tf: tf.range(0, 5, 0)),
    Case("range away", lambda tf: tf.range(5, 0)),
    Case(
        "linspace",
        lambda tf: [
            tf.linspace(0.0, 1.0, 5),
            tf.linspace(1, 4, 4),
            tf.linspace([0.0, 1.0], [1.0, 3.0], 3, axis=-1),
            tf.linspace(2.0, 3.0, 1),
        ],
    ),
    Case("linspace of none", lambda tf: tf.linspace(0.0, 1.0, 0)),
    Case(
        "one_hot",
        lambda tf: [
            tf.one_hot([0, 2, -1], 3),
            tf.one_hot([0, 1], 2, on_value=5, off_value=1, axis=0),
            tf.one_hot(1, 3, dtype=tf.float64),
        ],
    ),
    Case(
        "sequence_mask", lambda tf: [tf.sequence_mask([1, 3]), tf.sequence_mask([1], 2, tf.float32)]
    ),
    Case(
        "meshgrid",
        lambda tf: [
            tf.meshgrid([1, 2], [3, 4, 5]),
            tf.meshgrid([1, 2], [3], indexing="ij"),
            tf.meshgrid([[1, 2], [3, 4]], 5),
        ],
    ),
    # joining
    Case(
        "concat",
        lambda tf: [
            tf.concat([m(tf), m(tf)], 0),
            tf.concat([m(tf), m(tf)], -1),
            tf.concat([[1], tf.constant([2.0])], 0),
        ],
    ),
    # On JAX integers that are known are NumPy's arrays, which take a tensor's dtype.
    Case(
        "concat of an array and a tensor",
        lambda tf: tf.concat([np.array([1]), i(tf)], 0),
        only=("numpy",),
    ),
    Case(
        "concat of two dtypes",
        lambda tf: tf.concat([i(tf), tf.constant([1.5])], 0),
        only=("numpy",),
    ),
    Case("concat of ints and Python floats", lambda tf: tf.concat([tf.constant([1]), [1.5]], 0)),
    Case("concat of two shapes", lambda tf: tf.concat([m(tf), tf.zeros([1, 2])], 0)),
    Case(
        "stack",
        lambda tf: [
            tf.stack([m(tf), m(tf)], -1),
            tf.stack([1, 2.5]),
            tf.stack([1, m(tf)[0, 0]]),
            tf.unstack(m(tf)),
            tf.unstack(m(tf), axis=1),
        ],
    ),
    Case("stack of two shapes", lambda tf: tf.stack([m(tf), m(tf)[0]])),
    Case("split", lambda tf: [tf.split(m(tf), 3, 1), tf.split(i(tf), [1, -1, 2])]),
    Case("split unevenly", lambda tf: tf.split(m(tf), 2, 1)),
    Case(
        "tile and repeat",
        lambda tf: [
            tf.tile(m(tf), [1, 2]),
            tf.repeat([1, 2], [1, 3]),
            tf.repeat(m(tf), 2, 0),
            tf.repeat(m(tf), 2),
        ],
    ),
    Case(
        "pad",
        lambda tf: [
            tf.pad(m(tf), [[1, 0], [0, 2]]),
            tf.pad(m(tf), [[0, 1], [1, 1]], constant_values=9.0),
            tf.pad(m(tf), [[1, 0], [1, 1]], "REFLECT"),
            tf.pad(m(tf), [[1, 0], [1, 1]], "SYMMETRIC"),
        ],
    ),
    Case("pad too far", lambda tf: tf.pad(m(tf), [[2, 0], [0, 0]], "REFLECT")),
    Case(
        "reverse and roll", lambda tf: [tf.reverse(m(tf), [0, 1]), tf.roll(m(tf), [1, -1], [0, 1])]
    ),
    Case("reverse_sequence", lambda tf: tf.reverse_sequence(m(tf), [1, 3], seq_axis=1)),
    # choosing
    Case(
        "where",
        lambda tf: [
            tf.where(m(tf) > 2.0, m(tf), 0.0),
            tf.where(True, 0, m(tf)),
            tf.where([True, False], 1.0, 2),
            tf.where(m(tf) > 2.0),
        ],
    ),
    Case("where of an int condition", lambda tf: tf.where([1, 0], 1.0, 2.0)),
    Case("where of one side", lambda tf: tf.where([True], 1.0)),
    Case(
        "boolean_mask",
        lambda tf: [
            tf.boolean_mask(m(tf), [True, False]),
            tf.boolean_mask(m(tf), m(tf) > 2.0),
            tf.boolean_mask(m(tf), [True, False, True], axis=1),
        ],
    ),
    Case(
        "slices",
        lambda tf: [
            tf.slice(m(tf), [0, 1], [2, -1]),
            tf.strided_slice(m(tf), [0, 0], [2, 3], [1, 2]),
        ],
    ),
    Case("slice outside", lambda tf: tf.slice(m(tf), [0, 1], [2, 3])),
    Case(
        "gather",
        lambda tf: [
            tf.gather(m(tf), [1, 0]),
            tf.gather(m(tf), [[0, 2]], axis=1),
            tf.gather(m(tf), [[0, 2], [1, 1]], batch_dims=1),
            tf.gather(m(tf), 1, axis=-1),
            tf.gather(tf.reshape(tf.range(24), [2, 3, 4]), [[0, 1], [2, 3]], axis=2, batch_dims=1),
        ],
    ),
    Case("gather outside", lambda tf: tf.gather(m(tf), [5])),
    Case("gather at floats", lambda tf: tf.gather(m(tf), [0.0])),
    Case(
        "gather_nd",
        lambda tf: [
            tf.gather_nd(m(tf), [[0, 1], [1, 2]]),
            tf.gather_nd(m(tf), [[1]]),
            tf.gather_nd(m(tf), [[0], [2]], batch_dims=1),
        ],
    ),
    Case("scatter_nd", lambda tf: tf.scatter_nd([[1], [3], [1]], [1.0, 2.0, 5.0], [5])),
    Case("scatter_nd of bool", lambda tf: tf.scatter_nd([[1], [1], [0]], [True, True, False], [3])),
    Case(
        "tensor_scatter_nd",
        lambda tf: [
            f(tf.zeros([3, 2]), [[0, 1], [2, 0]], [5.0, -6.0])
            for f in (
                tf.tensor_scatter_nd_update,
                tf.tensor_scatter_nd_add,
                tf.tensor_scatter_nd_sub,
                tf.tensor_scatter_nd_max,
                tf.tensor_scatter_nd_min,
            )
        ],
    ),
    Case(
        "scatter of another shape",
        lambda tf: tf.tensor_scatter_nd_add(tf.zeros([3]), [[0]], [1.0, 2.0]),
    ),
    Case(
        "stitch and partition",
        lambda tf: [
            tf.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]]),
            tf.dynamic_partition(m(tf), [1, 0], 2),
        ],
    ),
    Case("unique", lambda tf: [*tf.unique([3, 1, 3, 2]), *tf.unique_with_counts([3.0, 1.0, 3.0])]),
    Case("invert_permutation", lambda tf: tf.math.invert_permutation([2, 0, 1])),
    Case("unravel_index", lambda tf: tf.unravel_index([3, 5], [2, 3])),
    Case(
        "space and batch",
        lambda tf: [
            tf.space_to_batch(tf.reshape(tf.range(16.0), [1, 4, 4, 1]), [2, 2], [[0, 0], [2, 0]]),
            tf.batch_to_space(tf.reshape(tf.range(16.0), [4, 2, 2, 1]), [2, 2], [[0, 1], [1, 0]]),
        ],
    ),
    Case("ensure_shape", lambda tf: tf.ensure_shape(m(tf), [None, 3])),
    Case("ensure another shape", lambda tf: tf.ensure_shape(m(tf), [3, 3])),
]


@over(REDUCTIONS)
def test_reductions(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case(
            f"{kind} in a list, as {dtype}",
            lambda tf, make=make, dtype=dtype: tf.convert_to_tensor(
                [make(tf), 2], dtype=getattr(tf, dtype)
            ),
        )
        for kind, make in {
            "int32": lambda tf: tf.constant(3),
            "int64": lambda tf: tf.constant(3, tf.int64),
            "float32": lambda tf: tf.constant(3.5),
        }.items()
        for dtype in ("int32", "int64", "float64")
    ]
    + [
        Case(
            "tensors in lists of lists",
            lambda tf: tf.convert_to_tensor([[tf.constant(3)], [2]], dtype=tf.int64),
        ),
        Case(
            "a number that the dtype does not take",
            lambda tf: tf.convert_to_tensor([tf.constant(3), 2.5], dtype=tf.int64),
        ),
    ]
)
def test_lists_of_tensors_take_the_dtype_that_is_asked_for(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case(
            "tensors alone",
            lambda tf: tf.convert_to_tensor([tf.constant(1.5), tf.constant(1.0, tf.float64)]),
        ),
        Case(
            "a tensor and a number",
            lambda tf: tf.convert_to_tensor([tf.constant(1.5), 2, tf.constant(1.0, tf.float64)]),
        ),
        Case(
            "rows",
            lambda tf: tf.convert_to_tensor(
                [[tf.constant(1.5), 2], [tf.constant(1.0, tf.float64), 1]]
            ),
        ),
        Case(
            "an operand",
            lambda tf: tf.add([tf.constant(1.5), tf.constant(1.0, tf.float64)], 1.0),
        ),
        Case("a sum", lambda tf: tf.reduce_sum([tf.constant(1.5), tf.constant(1.0, tf.float64)])),
        Case(
            "an array of NumPy's takes the tensor's",
            lambda tf: tf.convert_to_tensor([np.ones(2), tf.constant([1.5, 2.5])]),
        ),
        Case("a float beside integers", lambda tf: tf.convert_to_tensor([1.5, np.array(1)])),
        Case(
            "rows of floats beside integers",
            lambda tf: tf.convert_to_tensor([np.array([1, 2]), [1.5, 2.0]]),
        ),
        # Integers that are known are arrays of NumPy's on JAX.
        *(
            Case(name, call, only=("numpy",))
            for name, call in {
                "integers": lambda tf: tf.convert_to_tensor(
                    [tf.constant(1), tf.constant(1, tf.int64)]
                ),
                "a float beside an integer tensor": lambda tf: tf.convert_to_tensor(
                    [1.5, tf.constant(1)]
                ),
            }.items()
        ),
    ]
)
def test_lists_have_tensors_of_one_dtype(case, substrate):
    assert_as_tensorflow(case, substrate)


_SLICES = np.array([[3.0, 1.0], [0.0, 2.0], [3.0, 1.0], [-1.0, 5.0]])


@over(
    [
        Case(
            f"axis {axis} of {shape}",
            lambda tf, axis=axis, shape=shape: tf.raw_ops.UniqueWithCountsV2(
                x=tf.constant(_SLICES.reshape(shape)), axis=axis, out_idx=tf.int64
            ),
        )
        for axis, shape in (
            ([0], (4, 2)),
            ([1], (2, 4)),
            ([-1], (4, 2)),
            ([0], (8,)),
            (np.zeros(0, np.int64), (8,)),
        )
    ]
    + [
        Case(
            "no axis of a matrix",
            lambda tf: tf.raw_ops.UniqueWithCountsV2(
                x=tf.constant(_SLICES), axis=np.zeros(0, np.int64)
            ),
        )
    ]
)
def test_unique_slices(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(CASES)
def test_arrays(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_single_indices_of_a_traced_condition():
    tf = tf_of("jax")
    x = np.array([[0.0, 2.0], [3.0, 0.0]], np.float32)
    for take in (lambda i: i[0, 0], lambda i: i[1], lambda i: i[0, -1]):
        found = jax.jit(lambda x, take=take: take(tf.where(x > 1.0)))(x)
        np.testing.assert_array_equal(found, take(tensorflow.where(x > 1.0)))
    for use in (
        lambda i: i,
        lambda i: i + 1,
        lambda i: i[:1],
        lambda i: i[-1],
        lambda i: i.shape,
        tf.shape,
        len,
    ):
        with pytest.raises(ValueError, match=r"The number of indices that tf\.where"):
            jax.jit(lambda x, use=use: use(tf.where(x > 1.0)))(x)


@pytest.mark.parametrize("module", [tensorflow, tf_of("numpy"), tf_of("jax")])
def test_a_tensor_converted_to_what_it_is_stays_itself(module):
    x = module.constant([1.0, 2.0])
    assert module.convert_to_tensor(x) is x
    assert module.convert_to_tensor(x, module.float32) is x
    assert module.constant(x) is x
    assert module.cast(x, module.float32) is x
    assert module.identity(x) is not x


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_a_shape_without_dimensions_takes_the_dtype_of_others(substrate):
    tf = tf_of(substrate)
    empty = tf.TensorShape([])
    assert tf.convert_to_tensor(empty).dtype == tf.int32
    for values in ([empty, [5]], [[5], empty], [empty, tf.constant([5])]):
        joined = tf.concat(values, 0)
        assert joined.dtype == tf.int32
        assert np.asarray(joined).tolist() == [5]
    assert tf.concat([empty, empty], 0).dtype == tf.int32
    # A list says its dtype, as in TensorFlow.
    assert tf.concat([[], [5]], 0).dtype == tf.float32


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_the_shape_of_an_array_of_jax_is_one(substrate):
    tf = tf_of(substrate)
    assert tf.concat([jax.numpy.zeros(()).shape, [5]], 0).dtype == tf.int32


def test_lists_of_traced_numbers_are_joined():
    tf = tf_of("jax")
    ends = lambda x: tf.reduce_sum(tf.concat([[x[0]], x[1:], [2.0 * x[2]]], axis=0))  # noqa: E731
    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert jax.jit(jax.grad(ends))(x).tolist() == [1.0, 1.0, 3.0]
    assert jax.vmap(ends)(np.stack([x, 2 * x])).tolist() == [12.0, 24.0]
