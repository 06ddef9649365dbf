"""The functions that rules call make the same nodes in our graphs as in TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from jax2tf._src import ops as tensorflow_ops
from jax2tf._src.graph import ops as our_ops
from jax2tf._src.graph.from_tensorflow import program_of
from jax2tf._src.graph.graph import Tensor
from jax2tf._src.graph.make import making
from jax2tf._src.graph.symbols import Symbol
from jax2tf._src.util import dtypes
from tests.impl.graph.harness_graphs import knows

X, Y, OPEN = (2, 3, 4), (2, 3, 4), (None, 3, 4)

# What is called, with the package `ops` and tensors x and y of float32, i and j of int32, p of
# bool, z of complex64; all of one shape.
CALLS: dict[str, Any] = {
    **{
        name: lambda o, t, name=name: getattr(o, name)(t.x)
        for name in (
            *("cos", "cosh", "erf", "exp", "floor", "is_finite", "is_inf", "is_nan", "log"),
            *("reciprocal", "sin", "sinh", "sqrt", "square", "tanh", "identity", "elu", "relu"),
            *("relu6", "abs", "sign", "real", "imag", "conj", "zeros_like", "ones_like", "shape"),
            *("size", "leaky_relu", "softmax", "log_softmax", "diag_part", "transpose"),
            *("matrix_transpose", "qr"),
        )
    },
    **{
        f"{name} of numbers": lambda o, t, name=name: getattr(o, name)(t.x, 2.5)
        for name in ("add", "equal", "less", "maximum", "minimum", "not_equal")
    },
    **{
        name: lambda o, t, name=name: getattr(o, name)(t.x, t.y)
        for name in (
            *("add", "equal", "greater", "greater_equal", "less", "maximum"),
            *("minimum", "not_equal", "pow", "squared_difference", "atan2", "complex"),
        )
    },
    **{
        name: lambda o, t, name=name: getattr(o, name)(t.i, t.j)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    },
    **{
        name: lambda o, t, name=name: getattr(o, name)(t.p, t.p)
        for name in ("logical_and", "logical_or")
    },
    **{
        f"{name} {axis}": lambda o, t, name=name, axis=axis: getattr(o, name)(t.x, axis)
        for name in ("reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "cumsum", "cumprod")
        for axis in (0, -1)
    },
    "reduce_sum of all": lambda o, t: o.reduce_sum(t.x),
    "reduce_sum of two": lambda o, t: o.reduce_sum(t.x, [0, 1], keepdims=True),
    "reduce_all": lambda o, t: o.reduce_all(t.p, 1),
    "reduce_any": lambda o, t: o.reduce_any(t.p, [1, 2]),
    "abs of complex": lambda o, t: o.abs(t.z),
    "real of complex": lambda o, t: o.real(t.z),
    "imag of complex": lambda o, t: o.imag(t.z),
    "conj of complex": lambda o, t: o.conj(t.z),
    "cast": lambda o, t: o.cast(t.x, dtypes.int32),
    "cast to itself": lambda o, t: o.cast(t.x, dtypes.float32) + 1.0,
    "bitcast": lambda o, t: o.bitcast(t.x, dtypes.int32),
    "where": lambda o, t: o.where(t.p, t.x, t.y),
    "where of a number": lambda o, t: o.where(t.p, t.x, 0.0),
    "constant": lambda o, t: o.constant([1, 2]),
    "constant of a dtype": lambda o, t: o.constant(1, dtypes.float32),
    "constant of an array": lambda o, t: o.constant(np.ones((2, 3))),
    "constant of a shape": lambda o, t: o.constant(1.5, shape=[2, 3]),
    "convert_to_tensor": lambda o, t: o.convert_to_tensor([t.i[0, 0, 0], 3]),
    "broadcast_to": lambda o, t: o.broadcast_to(t.x, [5, 2, 3, 4]),
    "broadcast_to a tensor": lambda o, t: o.broadcast_to(t.x, [t.i[0, 0, 0], 2, 3, 4]),
    "concat": lambda o, t: o.concat([t.x, t.y], 0),
    "concat of one": lambda o, t: o.concat([t.x], 0),
    "concat of sizes": lambda o, t: o.concat([[-1], o.shape(t.x)[1:]], 0),
    "ensure_shape": lambda o, t: o.ensure_shape(t.x, t.x.shape),
    "expand_dims": lambda o, t: o.expand_dims(t.x, -1),
    "fill": lambda o, t: o.fill([2, 3], 1.0),
    "fill of a shape": lambda o, t: o.fill(o.shape(t.x), t.x[0, 0, 0]),
    "gather": lambda o, t: o.gather(t.x, [0, 1], axis=1),
    "gather in batches": lambda o, t: o.gather(t.x, t.i[:, :, 0], axis=1, batch_dims=1),
    "gather_nd": lambda o, t: o.gather_nd(t.x, t.i[:, :, :2]),
    "one_hot": lambda o, t: o.one_hot(t.i, 5, dtype=dtypes.int32),
    "ones": lambda o, t: o.ones([2, 3], dtypes.int32),
    "zeros": lambda o, t: o.zeros([2, 3]),
    "many zeros": lambda o, t: o.zeros([20, 300]),
    "zeros of a shape": lambda o, t: o.zeros(o.shape(t.x), dtypes.int32),
    "pad": lambda o, t: o.pad(t.x, [[0, 1], [1, 0], [0, 0]]),
    "pad with a number": lambda o, t: o.pad(t.x, [[0, 1], [1, 0], [0, 0]], constant_values=1.0),
    "range": lambda o, t: o.range(5),
    "range to a size": lambda o, t: o.range(1, o.shape(t.x)[0]),
    "reshape": lambda o, t: o.reshape(t.x, [-1, 12]),
    "reshape to a scalar": lambda o, t: o.reshape(t.x[:1, 0, 0], []),
    "reshape to a shape": lambda o, t: o.reshape(t.x, o.shape(t.y)),
    "reshape to sizes": lambda o, t: o.reshape(t.x, [o.shape(t.x)[0], -1]),
    "reverse": lambda o, t: o.reverse(t.x, [0]),
    "slice": lambda o, t: o.slice(t.x, [0, 1, 0], [1, -1, 2]),
    "slice at a place of int64": lambda o, t: o.slice(
        t.x, o.cast([t.i[0, 0, 0], 0, 0], dtypes.int64), [1, -1, 2]
    ),
    "split": lambda o, t: o.split(t.x, 2, 2, 2),
    "split of sizes": lambda o, t: o.split(t.x, o.constant([1, 3]), 2, 2),
    "squeeze": lambda o, t: o.squeeze(t.x[:1], 0),
    "stack": lambda o, t: o.stack([t.x, t.y], 1),
    "stack of numbers": lambda o, t: o.stack([t.i[0, 0, 0], 3]),
    "strided_slice": lambda o, t: o.strided_slice(t.x, [0, 1], [1, 2], [1, 1], begin_mask=1),
    "tile": lambda o, t: o.tile(t.x, [1, 2, 1]),
    "transpose by": lambda o, t: o.transpose(t.x, [2, 0, 1]),
    "unstack": lambda o, t: o.unstack(t.x, 3, 1),
    "argmax": lambda o, t: o.argmax(t.x, 1),
    "argmin": lambda o, t: o.argmin(t.x, -1, output_type=dtypes.int32),
    "cumsum backwards": lambda o, t: o.cumsum(t.x, 1, exclusive=True, reverse=True),
    "cumulative_logsumexp": lambda o, t: o.cumulative_logsumexp(t.x, 1),
    "top_k": lambda o, t: o.top_k(t.x, 2),
    "matmul": lambda o, t: o.matmul(t.x[0], t.y[0], transpose_b=True),
    "matmul in batches": lambda o, t: o.matmul(t.x, t.y, adjoint_a=True),
    "matmul of complex": lambda o, t: o.matmul(t.z, t.z, transpose_a=True),
    "places of top_k": lambda o, t: o.top_k(t.x, 2).indices,
    "band_part": lambda o, t: o.band_part(t.x, 0, -1),
    "set_diag": lambda o, t: o.set_diag(t.x, t.y[:, :, 0]),
    "cholesky": lambda o, t: o.cholesky(t.x[:, :3, :3]),
    "eigh": lambda o, t: o.eigh(t.x[:, :3, :3]),
    "triangular_solve": lambda o, t: o.triangular_solve(t.x[:, :3, :3], t.y, lower=False),
    "conv2d": lambda o, t: o.conv2d(
        o.expand_dims(t.x, -1), o.ones([2, 2, 1, 5]), [1, 2], "SAME", dilations=[1, 1]
    ),
    "conv2d with edges": lambda o, t: o.conv2d(
        o.expand_dims(t.x, -1),
        o.ones([2, 2, 1, 5]),
        [1, 2],
        [[0, 0], [1, 2], [3, 4], [0, 0]],
        dilations=[1, 1],
    ),
    "zeros_like of a dtype": lambda o, t: o.zeros_like(t.x, dtypes.int8),
    "ones_like of a dtype": lambda o, t: o.ones_like(t.x, dtypes.bool_),
    "ones_like of its dtype": lambda o, t: o.ones_like(t.x, dtypes.float32),
    "repeat": lambda o, t: o.repeat(t.x, 3, axis=1),
    "repeat by a tensor": lambda o, t: o.repeat(t.x, t.i[0, 0, 0], axis=0),
    "repeat along the last": lambda o, t: o.repeat(t.x, t.i[0, 0, 0], axis=-1),
    "svd": lambda o, t: o.svd(t.x),
    "singular values": lambda o, t: o.svd(t.x, compute_uv=False),
    "svd of full matrices": lambda o, t: o.svd(t.x, full_matrices=True),
    "gelu": lambda o, t: o.gelu(t.x),
    "gelu by tanh": lambda o, t: o.gelu(t.x, approximate=True),
    "gelu of float16": lambda o, t: o.gelu(o.cast(t.x, dtypes.float16)),
    "gelu by tanh of bfloat16": lambda o, t: o.gelu(o.cast(t.x, dtypes.bfloat16), approximate=True),
    "gelu of float64": lambda o, t: o.gelu(o.cast(t.x, dtypes.float64)),
    **{
        f"{name} {padding}": lambda o, t, name=name, padding=padding: getattr(o, name)(
            t.x[..., None], (2, 1), [1, 2], padding
        )
        for name in ("max_pool2d", "avg_pool2d")
        for padding in ("SAME", "VALID")
    },
    "max_pool2d with edges": lambda o, t: o.max_pool2d(
        t.x[..., None], 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]]
    ),
    "conv3d": lambda o, t: o.conv3d(
        t.x[..., None, None], o.ones([2, 2, 1, 1, 5]), (1, 1, 2, 1, 1), "SAME"
    ),
    **{
        f"conv2d_transpose {padding}": lambda o, t, padding=padding: o.conv2d_transpose(
            t.x[..., None], o.ones([2, 2, 5, 1]), [2, 6, 8, 5], (1, 2, 2, 1), padding
        )
        for padding in ("SAME", "VALID")
    },
    "conv2d_transpose to sizes": lambda o, t: o.conv2d_transpose(
        t.x[..., None], o.ones([2, 2, 5, 1]), o.stack([o.shape(t.x)[0], 6, 8, 5]), [2, 2], "SAME"
    ),
    "conv3d_transpose": lambda o, t: o.conv3d_transpose(
        t.x[..., None, None], o.ones([1, 2, 2, 5, 1]), [2, 3, 8, 2, 5], (1, 1, 2, 2, 1), "SAME"
    ),
    **{
        f"{name}{rank}": lambda o, t, name=f"{name}{rank}": getattr(o, name)(t.z)
        for name in ("fft", "ifft")
        for rank in ("", "2d", "3d")
    },
    "fft of complex128": lambda o, t: o.fft(o.cast(t.z, dtypes.complex128)),
    **{
        f"{name} of {lengths}": lambda o, t, name=name, lengths=lengths: getattr(o, name)(
            t.z if name.startswith("i") else t.x, lengths
        )
        for rank, suffix in enumerate(("", "2d", "3d"), 1)
        for name in (f"rfft{suffix}", f"irfft{suffix}")
        for lengths in ([4] * rank, [2] * rank, [7, 8, 9][:rank])
    },
    "rfft of a size": lambda o, t: o.rfft(t.x, o.shape(t.x)[-1:]),
    "irfft of a size": lambda o, t: o.irfft(t.z, t.i[0, 0, :1]),
    "rfft of an open size": lambda o, t: o.rfft(o.transpose(t.x), o.shape(t.x)[:1]),
    "irfft2d of open sizes": lambda o, t: o.irfft2d(o.transpose(t.z), o.shape(t.x)[:2]),
    "rfft of float64": lambda o, t: o.rfft(o.cast(t.x, dtypes.float64), [4]),
    "irfft of complex128": lambda o, t: o.irfft(o.cast(t.z, dtypes.complex128), [6]),
    "rfft of nothing": lambda o, t: o.rfft(t.x[:, :0], [9]),
    "uniform": lambda o, t: o.uniform([2, 3]),
    "uniform of a shape": lambda o, t: o.uniform(o.shape(t.x), t.x[0, 0, 0], t.y[0, 0, 0]),
    "uniform of float64": lambda o, t: o.uniform([2, 3], 1.0, 2.5, dtype=dtypes.float64),
    "uniform from zero": lambda o, t: o.uniform([2, 3], maxval=2.5),
    "uniform integers": lambda o, t: o.uniform([2, 3], 1, 5, dtype=dtypes.int64),
    "TensorArray": lambda o, t: (
        o.TensorArray(dtypes.float32, 3, element_shape=[3, 4]).write(1, t.x[0]).stack()
    ),
    "TensorArray of a size": lambda o, t: (
        o.TensorArray(dtypes.int32, o.shape(t.x)[0], element_shape=(None, 4))
        .write(t.i[0, 0, 0], t.i[0])
        .stack()
    ),
    "TensorArray of any shape": lambda o, t: o.TensorArray(dtypes.float32, 3).write(0, t.x).stack(),
    "TensorArray of scalars": lambda o, t: (
        o.TensorArray(dtypes.float32, 2, element_shape=[]).write(0, t.x[0, 0, 0]).stack()
    ),
    "function": lambda o, t: o.function(lambda x: -x)(t.x) if o is our_ops else -t.x,
    "operators": lambda o, t: -t.x + 1.0 - 2.0 * t.y / 3.0 + (1.0 - t.x),
    "operators of integers": lambda o, t: (t.i // 2 + t.j % 3) & (t.i | 1) ^ t.j,
    "operators of bools": lambda o, t: (t.p & ~t.p) | (t.p ^ (t.x > t.y)),
    "comparisons": lambda o, t: [t.x < 1.0, t.x <= t.y, t.x >= 1.0, t.x == t.y, t.x != 1.0],
    "quotient of integers": lambda o, t: t.i / t.j,
    "index": lambda o, t: t.x[0],
    "slices": lambda o, t: t.x[1:, ..., ::-1],
    "new dimension": lambda o, t: t.x[:, None, 0],
    "computed index": lambda o, t: t.x[t.i[0, 0, 0]],
}


# Our graph knows an element of a shape that TensorFlow computes: an operand is a constant.
KNOWS_MORE = {
    *("rfft of a size", "rfft of an open size", "irfft2d of open sizes", "TensorArray of a size"),
}


class Arguments:
    def __init__(self, tensors):
        self.x, self.y, self.i, self.j, self.p, self.z = tensors


DTYPES = ("float32", "float32", "int32", "int32", "bool", "complex64")


def tree(x: Tensor) -> Any:
    """What a tensor is computed of."""
    if x.node is None or x.node.op == "Placeholder":
        return ("argument", x.name.partition(":")[0])
    if x.node.op == "Const":
        value = x.node.attributes["value"]
        return ("Const", value.dtype.name, value.shape, value.tobytes())
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in x.node.attributes.items()
        # The tests set TensorFlow's seed.
        if not name.startswith("seed")
    }
    return (x.node.op, x.index, tuple(map(tree, x.node.inputs)), attributes)


def flat(results):
    return list(results) if isinstance(results, list | tuple) else [results]


def by_tensorflow(call, shape):
    def named(*tensors):
        results = flat(call(tensorflow_ops, Arguments(tensors)))
        return {f"y{i:02}": x for i, x in enumerate(results)}

    specs = [tf.TensorSpec(shape, dtype, f"x{i}") for i, dtype in enumerate(DTYPES)]
    concrete = tf.function(named, autograph=False, input_signature=specs).get_concrete_function()
    return [x.node.inputs[0] for x in program_of(concrete).main.outputs]


def by_us(call, shape):
    named = tuple("b" if size is None else size for size in shape)
    with making(folds=False) as maker:
        arguments = [
            Symbol(maker.argument(f"x{i}", dtype, named), maker) for i, dtype in enumerate(DTYPES)
        ]
        return [x.tensor for x in flat(call(our_ops, Arguments(arguments)))]


@pytest.mark.parametrize("shape", [X, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("name", CALLS)
def test_same_nodes(name, shape):
    theirs, ours = by_tensorflow(CALLS[name], shape), by_us(CALLS[name], shape)
    if name in KNOWS_MORE:
        assert [x.node.op for x in ours] == [x.node.op for x in theirs]
    else:
        assert [tree(x) for x in ours] == [tree(x) for x in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert knows(a.shape, b.shape)


def test_control_flow():
    with making() as maker:
        x = Symbol(maker.argument("x", np.float32, ("b",)), maker)
        n = Symbol(maker.argument("n", np.int32, ()), maker)
        i, (y,) = our_ops.while_loop(
            lambda i, _: i < n, lambda i, c: (i + 1, (c[0] * 2.0,)), (our_ops.constant(0), (x,))
        )
        pair = our_ops.cond(n > 0, lambda: [x, y], lambda: [y, x])
        z = our_ops.switch_case(n, [lambda: x, lambda: y + pair[0]])
    assert [s.tensor.node.op for s in (i, y, *pair, z)] == ["While", "While", "If", "If", "If"]
    assert z.tensor.shape == ("b",)


def test_a_list_in_a_loop():
    with making() as maker:
        x = Symbol(maker.argument("x", np.float32, ("b", 3)), maker)
        size = our_ops.shape(x)[0]

        def step(i, rows):
            return i + 1, rows.write(i, our_ops.gather(x, i, axis=0) * 2.0)

        start = our_ops.TensorArray(dtypes.float32, size, element_shape=[None])
        _, rows = our_ops.while_loop(lambda i, _: i < size, step, (our_ops.constant(0), start))
        stacked = rows.stack()
    assert stacked.tensor.shape == ("b", 3)
    assert [node.op for node in maker.nodes if "List" in node.op or node.op == "While"] == [
        *("TensorListReserve", "While", "TensorListStack")
    ]


def test_elements_of_one_list_have_one_shape():
    with making() as maker:
        x = Symbol(maker.argument("x", np.float32, ("b", 3)), maker)
        rows = our_ops.TensorArray(dtypes.float32, 2, element_shape=[None, 3])
        with pytest.raises(ValueError, match="TensorArray: elements of shape"):
            rows.write(0, x[:, :2])


def test_python_is_not_called():
    with making(), pytest.raises(NotImplementedError, match=r"cannot call Python.*arguments"):
        our_ops.numpy_function(np.sin, [], dtypes.float32)


DTYPE_ARGUMENTS = {
    "cast": lambda o, t, dtype: o.cast(t.x, dtype),
    "bitcast": lambda o, t, dtype: o.bitcast(t.x, dtype),
    "zeros": lambda o, t, dtype: o.zeros([2, 3], dtype),
    "ones": lambda o, t, dtype: o.ones([], dtype=dtype),
    "zeros_like": lambda o, t, dtype: o.zeros_like(t.p, dtype),
    "constant": lambda o, t, dtype: o.constant([1, 0], dtype),
    "convert_to_tensor": lambda o, t, dtype: o.convert_to_tensor([1, 0], dtype),
    "range": lambda o, t, dtype: o.range(3, dtype=dtype),
    "shape": lambda o, t, dtype: o.shape(t.x, out_type=dtype),
    "size": lambda o, t, dtype: o.size(t.x, out_type=dtype),
    "one_hot": lambda o, t, dtype: o.one_hot(t.i, 3, dtype=dtype),
    "argmax": lambda o, t, dtype: o.argmax(t.x, output_type=dtype),
    "uniform": lambda o, t, dtype: o.uniform([2], 0, 5, dtype=dtype),
    "TensorArray": lambda o, t, dtype: o.TensorArray(dtype, 3, element_shape=[]).stack(),
    "raw": lambda o, t, dtype: o.raw.Cast(x=t.p, DstT=dtype),
}


@pytest.mark.parametrize("name", DTYPE_ARGUMENTS)
@pytest.mark.parametrize("shape", [X, OPEN], ids=["closed", "open"])
def test_dtypes_of_every_kind(name, shape):
    call = DTYPE_ARGUMENTS[name]
    trees = [
        [tree(x) for x in by_us(lambda o, t, dtype=dtype: call(o, t, dtype), shape)]
        for dtype in (dtypes.int32, np.int32, np.dtype(np.int32), "int32", tf.int32)
    ]
    theirs = [tree(x) for x in by_tensorflow(lambda o, t: call(o, t, tf.int32), shape)]
    assert trees == [theirs] * 5


@pytest.mark.parametrize("dtype", [x for x in dtypes.DTYPES.values() if x.size > 0])
def test_casts_and_zeros_of_each_dtype(dtype):
    theirs = tf.as_dtype(dtype.name)
    with making() as maker:
        x = Symbol(maker.argument("x", np.float32, ("b",)), maker)
        for given in (dtype, theirs, dtype.dtype):
            assert our_ops.cast(x, given).dtype == dtype == theirs
            assert our_ops.zeros([2], given).dtype == dtype
            assert our_ops.ones_like(x, given).dtype == dtype


EMPTY = [(0, 3, 4), (2, 0, 4), (2, 3, 0)]
# TensorFlow refuses these uses when they run, if one of these sizes is zero.
REFUSED_EARLY = {"broadcast_to": (0, 1, 2), "slice": (0, 2)}


@pytest.mark.parametrize("shape", EMPTY, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_same_nodes_of_empty_arrays(name, shape):
    call = CALLS[name]
    try:
        theirs = by_tensorflow(call, shape)
    except ValueError:
        return  # The call needs an element.
    if name in REFUSED_EARLY and not all(shape[i] for i in REFUSED_EARLY[name]):
        with pytest.raises(ValueError, match="; the operands are "):
            by_us(call, shape)
        return
    ours = by_us(call, shape)
    if name in KNOWS_MORE:
        assert [x.node.op for x in ours] == [x.node.op for x in theirs]
    else:
        assert [tree(x) for x in ours] == [tree(x) for x in theirs]


def test_what_is_known_of_a_tensor():
    with making() as maker:
        x = Symbol(maker.argument("x", np.float32, ("b", 3)), maker)
        assert our_ops.get_static_value(our_ops.shape(x)[1]) == 3
        assert our_ops.get_static_value(our_ops.shape(x)[0]) is None
        assert x.shape.as_list() == [None, 3]
        assert (x.shape.rank, x.shape[1], list(x.shape[1:])) == (2, 3, [3])
        assert (x.shape.num_elements(), x.shape.is_fully_defined()) == (None, False)
        assert x.dtype == dtypes.float32
        y = x + 1.0
        assert (y.op.type, [z.op.type for z in y.op.inputs]) == ("AddV2", ["Placeholder", "Const"])
        assert y.op.get_attr("T") == dtypes.float32
        y.set_shape([2, None])
        assert y.tensor.shape == (2, 3)
        with our_ops.name_scope("block"):
            assert our_ops.sin(x).op.name == "block/Sin"
        with pytest.raises(TypeError, match="has no value while a graph is made"):
            bool(x)
