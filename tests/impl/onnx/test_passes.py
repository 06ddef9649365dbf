"""Passes leave fewer nodes and the same results, bit by bit."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.export.onnx import passes
from tests.impl.onnx.running import Written, assert_same

RNG = np.random.default_rng(0)
SCALE, OFFSET = (RNG.normal(size=8).astype(np.float32) for _ in range(2))
SPECIAL = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38, -3e38])


def rows(n):
    """Rows of ordinary numbers, and one of special ones."""
    array = RNG.normal(size=(n, 4, 8)).astype(np.float32)
    if n > 1:
        array[0, 1], array[1, :, 2], array[1, 2] = SPECIAL, np.nan, 0.0
        array[0, 3] = 1000.1
    return array


def images(n):
    array = RNG.normal(size=(n, 6, 6, 8)).astype(np.float32)
    if n > 1:
        array[0, 1, 2] = np.clip(SPECIAL, -1e3, 1e3)
    return array


def norm(x, scale=SCALE, offset=OFFSET, axis=-1, epsilon=1e-5):
    centered = x - tf.reduce_mean(x, axis, keepdims=True)
    variance = tf.reduce_mean(tf.pow(centered, 2.0), axis, keepdims=True)
    y = centered / tf.sqrt(variance + epsilon)
    y = y if scale is None else y * scale
    return y if offset is None else y + offset


def centered(x):
    return x - tf.reduce_mean(x, -1, keepdims=True)


def inverse(x, shaped=lambda mean, shape: mean):
    mean = shaped(tf.reduce_mean(x * x, -1, keepdims=True), tf.shape(x))
    return tf.math.rsqrt(mean + 1e-5)


def norm_by_inverse(x):
    return (c := centered(x)) * inverse(c)


def in_a_loop(function):
    """Three steps of a function, which captures what is around the loop."""
    return lambda x: tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: [i + 1, tf.ensure_shape(function(y), x.shape)],
        [0, x],
    )[1]


def in_a_branch(function):
    def branches(x):
        scale = tf.reduce_max(tf.abs(OFFSET))
        is_whole = tf.equal(tf.size(x), tf.size(x) // 8 * 8)
        return tf.cond(is_whole, lambda: function(x) * scale, lambda: x)

    return branches


def gelu(x, approximate):
    if approximate:
        return tf.nn.gelu(x, approximate=True)
    return 0.5 * x * (1.0 + tf.math.erf(x * np.float32(np.sqrt(0.5))))


def read_on_the_way(x):
    centered = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.pow(centered, 2.0), -1, keepdims=True)
    return [centered / tf.sqrt(variance + 1e-5) * SCALE, tf.exp(centered)]


MATRIX = RNG.normal(size=(8, 8)).astype(np.float32)
KERNEL = RNG.normal(size=(3, 3, 8, 8)).astype(np.float32)
OTHER = RNG.normal(size=(3, 3, 8, 8)).astype(np.float32)
EACH = RNG.normal(size=(3, 3, 8, 1)).astype(np.float32)


def conv(x, kernel=KERNEL):
    return tf.nn.conv2d(x, kernel, 1, "SAME")


def depthwise(x):
    return tf.nn.depthwise_conv2d(x, EACH, [1, 1, 1, 1], "SAME")


def transposed(x):
    return tf.nn.conv2d_transpose(x, KERNEL, tf.shape(x), 1, "SAME")


def heads(x):
    y = tf.reshape(x @ MATRIX, [-1, 4, 2, 4])
    return tf.transpose(y + OFFSET.reshape(2, 4), [0, 2, 1, 3])


def shared_kernel(x):
    y = conv(x)
    return [y * SCALE, conv(y)]


# The function, its operand, the ops that are there, and the ops that have gone.
CASES = {
    "norm": (norm, rows, ["LayerNormalization"], ["Sqrt", "Mul", "Add"]),
    "norm without offset": (
        lambda x: norm(x, offset=None),
        rows,
        ["LayerNormalization"],
        ["Div", "Mul"],
    ),
    "norm without scale": (
        lambda x: tf.exp(norm(x, None, None)),
        rows,
        ["LayerNormalization"],
        ["Div"],
    ),
    "norm of a result": (lambda x: norm(x, None, None), rows, ["LayerNormalization"], ["Div"]),
    "norm of another axis": (
        lambda x: norm(x, axis=1),
        rows,
        ["Div"],
        ["LayerNormalization"],
    ),
    "norm whose scale is a matrix": (
        lambda x: norm(x, np.outer(SCALE[:4], SCALE)),
        rows,
        ["LayerNormalization", "Mul"],
        ["Div"],
    ),
    "norm that is read on the way": (read_on_the_way, rows, ["Div"], ["LayerNormalization"]),
    "norm in a loop": (in_a_loop(norm), rows, ["LayerNormalization"], ["Div"]),
    "norm in a branch": (in_a_branch(norm), rows, ["LayerNormalization"], ["Sqrt"]),
    "norm by an inverse root": (
        lambda x: norm_by_inverse(x) * SCALE + OFFSET,
        rows,
        ["LayerNormalization"],
        ["Reciprocal", "Sqrt", "Mul", "Add"],
    ),
    "norm whose factor has the scale": (
        lambda x: (c := centered(x)) * (SCALE * inverse(c)) + OFFSET,
        rows,
        ["LayerNormalization"],
        ["Reciprocal", "Sqrt", "Mul", "Add"],
    ),
    "norm of which the center is read": (
        lambda x: [(c := centered(x)) * inverse(c) * SCALE, tf.exp(c)],
        rows,
        ["Pow", "Div"],
        ["LayerNormalization", "Reciprocal"],
    ),
    "RMS norm": (lambda x: x * inverse(x) * SCALE, rows, ["Pow", "Div"], ["Reciprocal"]),
    "RMS norm as Flax has it": (
        lambda x: x * (inverse(x) * SCALE),
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "RMS norm as Haiku has it": (
        lambda x: SCALE * x * inverse(x),
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "RMS norm by a quotient": (
        lambda x: x / tf.sqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5) * SCALE,
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "RMS norm of results": (
        lambda x: (y := tf.exp(x) * x) * inverse(y) * SCALE + y,
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "RMS norm times an array": (
        lambda x: x * inverse(x) * tf.exp(x),
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "RMS norm whose mean gets its dimension back": (
        lambda x: x * tf.math.rsqrt(tf.reduce_mean(x * x, -1)[..., None] + 1e-5) * SCALE,
        rows,
        ["Pow", "Div"],
        ["Reciprocal", "Unsqueeze"],
    ),
    "RMS norm whose inverse gets its dimension back": (
        lambda x: SCALE * (tf.math.rsqrt(tf.reduce_mean(x * x, -1) + 1e-5)[..., None] * x),
        rows,
        ["Pow", "Div"],
        ["Reciprocal", "Unsqueeze"],
    ),
    "RMS norm by the mean of another axis": (
        lambda x: tf.exp(x * tf.math.rsqrt(tf.reduce_mean(x * x, 1, keepdims=True) + 1e-5)),
        rows,
        ["Reciprocal"],
        ["Pow"],
    ),
    "RMS norm of another array": (
        lambda x: x * inverse(tf.exp(x)) * SCALE,
        rows,
        ["Reciprocal"],
        ["Pow"],
    ),
    "RMS norm in a loop": (
        in_a_loop(lambda x: x * inverse(x) * SCALE),
        rows,
        ["Pow", "Div"],
        ["Reciprocal"],
    ),
    "gelu by erf": (lambda x: gelu(x, False), rows, ["Gelu"], ["Erf", "Mul"]),
    "gelu by tanh": (lambda x: gelu(x, True), rows, ["Gelu"], ["Tanh", "Pow"]),
    "gelu in a loop": (in_a_loop(lambda x: gelu(x, True)), rows, ["Gelu"], ["Tanh"]),
    "gelu with another number": (
        lambda x: 0.25 * x * (1.0 + tf.math.erf(x * np.float32(np.sqrt(0.5)))),
        rows,
        ["Erf"],
        ["Gelu"],
    ),
    "a dense layer": (
        lambda x: tf.nn.relu(x[:, 0] @ MATRIX + OFFSET),
        rows,
        ["Gemm"],
        ["MatMul", "Add"],
    ),
    "a dense layer in a loop": (
        in_a_loop(lambda x: tf.tanh(x[:, 0] @ MATRIX + OFFSET)[:, None] + x),
        rows,
        ["Gemm"],
        ["MatMul"],
    ),
    "a product and a column": (
        lambda x: x[:, 0] @ MATRIX + OFFSET[:1],
        rows,
        ["MatMul", "Add"],
        ["Gemm"],
    ),
    "a product that two read": (
        lambda x: [tf.exp(y := x[:, 0] @ MATRIX), y + OFFSET],
        rows,
        ["MatMul", "Add"],
        ["Gemm"],
    ),
    "heads": (heads, rows, ["Reshape"], []),
    "zeros behind a product": (
        lambda x: tf.nn.relu(x @ MATRIX + np.zeros(8, "f")) * (x @ MATRIX + np.zeros((1, 8), "f")),
        rows,
        ["MatMul"],
        ["Add"],
    ),
    "zeros behind heads": (
        lambda x: tf.exp(tf.reshape(x @ MATRIX, [-1, 4, 2, 4]) + np.zeros((2, 4), "f")),
        rows,
        ["Reshape"],
        ["Add"],
    ),
    "zeros that broadcast": (
        lambda x: tf.exp(x @ MATRIX[:, :1] + np.zeros(8, "f")),
        rows,
        ["Add"],
        [],
    ),
    "zeros behind other ops": (lambda x: 1.0 / (x + np.zeros(8, "f")), rows, ["Add"], []),
    "negative zeros": (lambda x: tf.exp(x @ MATRIX - np.zeros(8, "f")), rows, ["MatMul"], []),
    "bias of a convolution": (lambda x: conv(x) + OFFSET, images, ["Conv"], []),
    "norm of a batch": (
        lambda x: tf.nn.relu(conv(tf.nn.relu((conv(x) + SCALE) * SCALE + OFFSET), OTHER) * SCALE),
        images,
        ["Conv"],
        ["Mul", "Add"],
    ),
    "norm of a batch, each channel": (
        lambda x: tf.nn.relu(depthwise(x) * SCALE + OFFSET) + 0.0 * x,
        images,
        ["Conv"],
        [],
    ),
    "bias of a transposed convolution": (
        lambda x: conv(transposed(x) + OFFSET),
        images,
        ["ConvTranspose"],
        ["Add"],
    ),
    "a kernel that two read": (shared_kernel, images, ["Mul"], []),
    "a convolution that two read": (
        lambda x: [conv(conv(x) * SCALE), tf.exp(conv(x))],
        images,
        ["Mul"],
        [],
    ),
    "bias of a convolution in a loop": (
        in_a_loop(lambda x: tf.tanh(conv(x) * SCALE + OFFSET)),
        images,
        ["Conv"],
        [],
    ),
    "a sum of other sizes": (
        lambda x: conv(conv(x) + np.arange(6, dtype=np.float32)[:, None]),
        images,
        ["Add"],
        [],
    ),
    "Reshape of Reshape": (
        lambda x: tf.exp(tf.reshape(tf.reshape(x, [-1, 32]), [-1, 2, 16])),
        rows,
        ["Reshape"],
        [],
    ),
    "Reshape to the same": (
        lambda x: tf.reshape(tf.reshape(x, [2, 8, 4]), [2, 4, 8]) * 2.0,
        lambda n: rows(2),
        ["Mul"],
        [],
    ),
    "Squeeze of ExpandDims": (
        lambda x: tf.exp(tf.squeeze(tf.expand_dims(x, 1), [1])),
        rows,
        [],
        ["Squeeze", "Unsqueeze"],
    ),
    "Squeeze of another axis": (
        lambda x: tf.exp(tf.squeeze(tf.expand_dims(x[:, :1], 3), [1])),
        rows,
        ["Squeeze"],
        [],
    ),
}

# Others are not fused by ONNX Runtime without the passes, and round elsewhere.
EXACT = frozenset(
    {
        *("norm", "norm of another axis", "a dense layer", "a dense layer in a loop"),
        *("a product and a column", "a product that two read"),
        *("gelu by erf", "gelu with another number", "heads"),
        *("bias of a convolution", "a sum of other sizes", "bias of a transposed convolution"),
        *("Reshape of Reshape", "Reshape to the same", "Squeeze of ExpandDims"),
        *("Squeeze of another axis", "zeros behind a product", "zeros behind heads"),
        *("zeros that broadcast", "zeros behind other ops", "negative zeros"),
    }
)


def plain(monkeypatch, *args):
    with monkeypatch.context() as patch:
        patch.setattr(passes, "_PASSES", ())
        return Written(*args)


@pytest.mark.parametrize("size", [2, None])
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_same(monkeypatch, case, size):
    function, made, there, gone = CASES[case]
    spec = tf.TensorSpec([size if size is None else len(made(size)), *made(1).shape[1:]])
    written, before = Written(function, spec), plain(monkeypatch, function, spec)
    ops = written.ops()
    assert len(ops) <= len(before.ops())
    assert set(there) <= set(ops)
    assert set(gone).isdisjoint(ops)
    for n in (2,) if size or case == "Reshape to the same" else (0, 1, 2, 5):
        array = made(n)
        for result, expected in zip(written.run(array), before.run(array), strict=True):
            if case in EXACT:
                assert_same(result, expected)
            else:
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [18, 19, 20])
def test_gelu_of_an_opset(opset):
    written = Written(lambda x: gelu(x, True), tf.TensorSpec([4]), opset=opset)
    assert ("Gelu" in written.ops()) is (opset >= 20)


def test_rms_norm_whose_mean_is_broadcast(monkeypatch):
    """Haiku writes it so; the sizes of the batch are compared by name."""

    def function(x):
        return SCALE * x * inverse(x, tf.broadcast_to)

    spec, names = tf.TensorSpec([None, 4, 8]), {"x0": ("b", 4, 8)}
    written = Written(function, spec, shapes=names)
    assert {"Pow", "Div"} <= set(written.ops())
    assert {"Reciprocal", "Expand"}.isdisjoint(written.ops())
    array, before = rows(3), plain(monkeypatch, function, spec)
    (result,), (expected,) = written.run(array), before.run(array)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("opset", [18, 22, 23])
def test_rms_norm_of_an_opset(monkeypatch, opset, scaled):
    def function(x):
        return x * inverse(x) * SCALE if scaled else x * inverse(x)

    spec = tf.TensorSpec([None, 4, 8])
    written = Written(function, spec, opset=opset)
    assert ("RMSNormalization" in written.ops()) is (opset >= 23)
    array, before = rows(3), plain(monkeypatch, function, spec)
    (result,), (expected,) = written.run(array), before.run(array)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_norms_of_other_dtypes_stay(dtype):
    def function(x):
        scale, offset = (tf.constant(a.astype(dtype)) for a in (SCALE, OFFSET))
        centered = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.pow(centered, tf.constant(2, dtype)), -1, keepdims=True)
        return centered / tf.sqrt(variance + tf.constant(1e-5, dtype)) * scale + offset

    assert "LayerNormalization" not in Written(function, tf.TensorSpec([None, 8], dtype)).ops()


CASTS = {
    ("int8", "int32", "int64"): 1,
    ("int8", "int32", "int8"): 0,
    ("int32", "int8", "int32"): 2,
    ("float16", "float32", "float16"): 0,
    ("float16", "float32", "float64"): 1,
    ("float32", "float16", "float32"): 2,
    ("float16", "float32", "int32"): 2,
    ("int32", "float64", "float32"): 1,
    ("int64", "float64", "float32"): 2,
    ("int32", "int64", "uint8"): 1,
    ("uint8", "float32", "int32"): 1,
    ("bool", "int32", "float32"): 1,
}


@pytest.mark.parametrize(("dtypes", "n"), CASTS.items())
def test_casts_of_casts(monkeypatch, dtypes, n):
    source, between, to = dtypes

    def function(x):
        return tf.reshape(tf.cast(tf.cast(tf.reshape(x, [-1, 2]), between), to), [2, -1])

    spec = tf.TensorSpec([None, 4], source)
    written, before = Written(function, spec), plain(monkeypatch, function, spec)
    assert written.ops().count("Cast") == n
    given = RNG.normal(size=(6, 4)) * 1e6 if source != "bool" else RNG.integers(0, 2, (6, 4))
    if source.startswith(("int", "uint")):
        limits = np.iinfo(source)
        given = RNG.integers(limits.min, limits.max, (6, 4), source)
    with np.errstate(over="ignore"):
        array = given.astype(source)
    assert_same(written.run(array)[0], before.run(array)[0])


def stored(path):
    return [onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer]


@pytest.mark.parametrize("external", [False, True])
def test_a_tied_embedding_is_stored_once(tmp_path, external):
    table = RNG.normal(size=(100, 64)).astype(np.float32)

    def function(params, tokens):
        return jnp.tanh(params["words"][tokens]) @ params["words"].T

    path = tmp_path / "m.onnx"
    jax2tf.export(function, {"words": table}, "b, 7:int32", path, external_data=external)
    assert sum(array.size == table.size for array in stored(path)) == 1


@pytest.mark.parametrize("same", [True, False])
def test_equal_arrays_are_stored_once(tmp_path, same):
    first = RNG.normal(size=(64, 64)).astype(np.float32)
    second = first.copy()
    if not same:
        first[32, 32], second[32, 32] = 0.0, -0.0

    def function(params, x):
        return (x @ params["first"]) * 2 + x * (x @ params["second"])

    jax2tf.export(function, {"first": first, "second": second}, "b, 64", tmp_path / "m.onnx")
    assert sum(array.size == first.size for array in stored(tmp_path / "m.onnx")) == 2 - same


def test_a_matrix_that_is_its_own_transpose_as_a_square(tmp_path):
    square = RNG.normal(size=(64, 64)).astype(np.float32)

    def function(square, x):
        return (x @ square) + (x @ square.T) * jax.nn.sigmoid(x)

    assert jax2tf.export(function, square, "b, 64", tmp_path / "m.onnx").verified
    assert sum(array.size == square.size for array in stored(tmp_path / "m.onnx")) == 1
