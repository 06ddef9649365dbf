"""LiteRT files from the wheel with its extra `litert`, which brings no TensorFlow."""

from __future__ import annotations

import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from jax import lax
from programs import PROGRAMS, RANDOM, assert_that_tensorflow_is_not_installed, normal

import jax2tf
from jax2tf._src.export.tflite import passes, registry


def test_tensorflow_is_not_installed():
    assert_that_tensorflow_is_not_installed()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_gives_jaxs_numbers(tmp_path, name):
    """`export` verifies the file too, by inputs of its own."""
    function, params, spec, shape = PROGRAMS[name]
    path = tmp_path / "m.tflite"
    jax2tf.export(function, params, spec, path)
    x = np.abs(normal(*shape))
    given = (x,) if params is None else (params, x)
    expected = jax.tree.leaves(function(*jax.tree.map(jnp.asarray, given)))
    run = Interpreter(str(path)).get_signature_runner("serving_default")
    (taken,) = run.get_input_details()
    actual = run(**{taken: x})
    assert len(actual) == len(expected)
    for a, e in zip(sorted(actual), expected, strict=True):
        np.testing.assert_allclose(actual[a], e, rtol=1e-5, atol=1e-5)
    assert zipfile.ZipFile(path).namelist() == ["jax2tf.json"]


def ops_of(path):
    """The ops of a file, each with the dtypes of its operands: "GATHER FLOAT32 INT32"."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes(), 0))
    names, types = (
        {value: name for name, value in vars(enum).items()}
        for enum in (schema.BuiltinOperator, schema.TensorType)
    )
    return [
        " ".join(
            [
                names[model.operatorCodes[op.opcodeIndex].builtinCode],
                *(types[graph.tensors[i].type] for i in op.inputs if i >= 0),
            ]
        )
        for graph in model.subgraphs
        for op in graph.operators
    ]


@pytest.mark.parametrize(("kind", "most"), [("float16", 0.7), ("dynamic", 0.45), ("int4", 0.33)])
def test_weights_in_fewer_bits(tmp_path, kind, most):
    weights = normal(64, 64)
    full, small = tmp_path / "full.tflite", tmp_path / "small.tflite"
    jax2tf.export(lambda params, x: x @ params, weights, "b, 64", full)
    jax2tf.export(lambda params, x: x @ params, weights, "b, 64", small, quantize=kind)
    assert small.stat().st_size < most * full.stat().st_size


def convolution(kernel, x):
    return lax.conv_general_dilated(
        *(x, kernel, (1, 1), "SAME"),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[-1] // kernel.shape[2],
    )


# Functions of one weight, the ops that read it as integers, and the places where it is stored.
READ_AS_INTEGERS = {
    "product": (lambda w, x: x @ w, (64, 64), "b, 64", ["FULLY_CONNECTED FLOAT32 INT8"]),
    "convolution": (convolution, (3, 3, 8, 16), "b, 4, 4, 8", ["CONV_2D FLOAT32 INT8 FLOAT32"]),
    "by channels": (
        *(convolution, (3, 3, 1, 128), "b, 4, 4, 128"),
        ["DEPTHWISE_CONV_2D FLOAT32 INT8 FLOAT32"],
    ),
    "matrices": (lambda w, x: x @ w, (2, 32, 32), "2, 3, 32", ["BATCH_MATMUL FLOAT32 INT8"]),
    "in a loop": (
        lambda w, x: lax.fori_loop(0, 2, lambda i, h: jnp.tanh(h @ w), x / 8),
        *((64, 64), "b, 64", ["FULLY_CONNECTED FLOAT32 INT8"]),
    ),
    "rows": (lambda w, n: w[n], (64, 32), "b:int32", ["EMBEDDING_LOOKUP INT32 INT8"]),
    "tied": (
        lambda w, n: jnp.tanh(w[n]) @ w.T,
        *((64, 32), "b, s:int32"),
        ["EMBEDDING_LOOKUP INT32 INT8", "FULLY_CONNECTED FLOAT32 INT8"],
    ),
    "of another form": (lambda w, x: x * w, (64, 32), "64, 32", ["DEQUANTIZE INT8"]),
}


@pytest.mark.parametrize("name", READ_AS_INTEGERS)
def test_weights_are_stored_once_and_read_as_integers(tmp_path, name):
    function, shape, spec, expected = READ_AS_INTEGERS[name]
    path = tmp_path / "m.tflite"
    weights = normal(*shape)
    result = jax2tf.export(function, weights, spec, path, quantize="dynamic")
    ops = ops_of(path)
    assert sorted(op for op in ops if "INT8" in op) == sorted(expected)
    assert result.ops == len(ops)
    # Each scale of a row is stored with a zero of eight bytes.
    assert result.size < weights.size + 12 * max(shape) + 4000


def test_a_table_may_be_looked_up_with_indices_of_any_shape(tmp_path):
    table = normal(64, 32)
    for spec, shape in {":int32": (), "2, 3:int32": (2, 3), "b, 2, c:int32": (0, 2, 3)}.items():
        path = tmp_path / "m.tflite"
        verify = [np.ones(shape, np.int32)]
        options = {"quantize": "dynamic", "verify": verify, "overwrite": True}
        result = jax2tf.export(lambda w, n: w[n], table, spec, path, **options)
        assert result.differences["serving_default"]["output"] < 0.02
        assert "EMBEDDING_LOOKUP INT32 INT8" in ops_of(path) or shape == ()


def test_signatures_share_a_table_of_integers(tmp_path):
    table = normal(64, 32)
    functions = {"embed": (lambda w, n: w[n], "b:int32"), "head": (lambda w, x: x @ w.T, "b, 32")}
    for kind in ("dynamic", "int4"):
        options = {"quantize": kind, "overwrite": True}
        result = jax2tf.export(functions, table, None, tmp_path / "m.tflite", **options)
        assert result.size < table.size + 2 * 12 * 64 + 4000


def samples(*shape, of=normal):
    return [of(*shape) for _ in range(4)]


def words(*shape):
    return RANDOM.integers(0, 64, shape).astype(np.int32)


def attention(params, x):
    """One head with a causal mask, a norm before it and an activation behind it."""
    y = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (y @ matrix for matrix in params)
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), q @ k.swapaxes(1, 2) / 4, -1e9)
    return x + jax.nn.gelu(jax.nn.softmax(scores) @ v)


def of_unknown_ops(w, x):
    """Ops that litert-quantizer has no integers for."""
    y = jnp.tanh(x @ w)
    y = jax.nn.leaky_relu(y) + jnp.abs(y)[:, ::-1] - jax.nn.elu(y).max(0, keepdims=True)
    y = jnp.where(y < 1, y, jnp.minimum(y, y[::-1]))
    return jnp.exp(y)


EVEN = [RANDOM.permuted(np.tile(np.arange(8, dtype=np.float32), (4, 1)), axis=1) for _ in range(4)]
DEAD = normal(16, 8)
DEAD[:, 2:4] = 0, 1e-9
# By name: a function, its parameters, the spec of its input, and samples of that input.
OF_INTEGERS = {
    "perceptron": (PROGRAMS["perceptron"][0], PROGRAMS["perceptron"][1], "b, 8", samples(4, 8)),
    "convolutions": (*PROGRAMS["convolutions"][:3], samples(2, 16, 16, 3)),
    "attention": (attention, normal(3, 16, 16) / 4, "2, 8, 16", samples(2, 8, 16)),
    "tied": (lambda w, n: w[n] @ w.T, normal(64, 32), "b, s:int32", samples(2, 3, of=words)),
    "unknown ops": (of_unknown_ops, normal(8, 8) / 2, "6, 8", samples(6, 8)),
    "places": (lambda w, x: (x @ w).argmax(-1), np.eye(8, dtype=np.float32), "b, 8", EVEN),
    "an input": (lambda w, x: jnp.exp(x[::-1]) @ w, normal(8, 8), "4, 8", samples(4, 8)),
    "channels that are off": (lambda w, x: x @ w + 3, DEAD, "b, 16", samples(4, 16)),
    "matrices": (lambda w, x: w @ (x @ w), normal(2, 8, 8), "2, 8, 8", samples(2, 8, 8)),
    "a known row": (lambda w, x: (w[:2] @ w, x @ w), normal(8, 8), "b, 8", samples(4, 8)),
    "of several sizes": (lambda w, x: x @ w, normal(8, 8), "b, 8", [normal(2, 8), normal(5, 8)]),
}


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers_alone_are_computed(tmp_path, name):
    function, params, spec, data = OF_INTEGERS[name]
    path = tmp_path / "m.tflite"
    options = {"quantize": "int8", "representative_data": data}
    result = jax2tf.export(function, params, spec, path, tolerance=0.07, **options)
    ops = ops_of(path)
    assert result.ops == len(ops)
    assert {op.split()[0] for op in ops if "FLOAT32" in op} <= {"QUANTIZE"}
    before = path.read_bytes()
    jax2tf.export(function, params, spec, path, tolerance=0.07, overwrite=True, **options)
    assert path.read_bytes() == before


def test_a_tied_table_of_integers_is_stored_once(tmp_path):
    function, table, spec, data = OF_INTEGERS["tied"]
    options = {"quantize": "int8", "representative_data": data}
    result = jax2tf.export(function, table, spec, tmp_path / "m.tflite", **options)
    assert result.size < table.size + 3500


def test_inputs_and_outputs_of_integers(tmp_path):
    path = tmp_path / "m.tflite"
    options = {"quantize": "int8", "representative_data": samples(6, 8), "integer_io": True}
    jax2tf.export(of_unknown_ops, normal(8, 8) / 2, "6, 8", path, tolerance=0.07, **options)
    assert not any("FLOAT32" in op for op in ops_of(path))
    run = Interpreter(str(path)).get_signature_runner("serving_default")
    assert [d["dtype"] for d in run.get_input_details().values()] == [np.int8]
    assert [d["dtype"] for d in run.get_output_details().values()] == [np.int8]


def test_signatures_loops_and_infinities_among_integers(tmp_path):
    def decode(w, x):
        y = lax.fori_loop(0, 2, lambda i, h: jnp.tanh(h @ w), x @ w)
        return jnp.where(jnp.abs(y) == jnp.inf, 0, y)

    path = tmp_path / "m.tflite"
    functions = {"encode": (lambda w, x: x @ w, "b, 32"), "decode": (decode, "b, 32")}
    data = {"encode": samples(2, 32), "decode": [x * 9 for x in samples(2, 32)]}
    weights = normal(32, 32) / 6
    options = {"quantize": "int8", "representative_data": data}
    jax2tf.export(functions, weights, None, path, tolerance=0.07, **options)
    products = [op for op in ops_of(path) if op.startswith("FULLY")]
    assert sorted(products) == ["FULLY_CONNECTED FLOAT32 INT8", *2 * ["FULLY_CONNECTED INT8 INT8"]]
    # The names of tensors are the writer's.
    assert {d["name"] for d in Interpreter(str(path)).get_input_details()} == {"x"}


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: jnp.where(x > 0, jnp.log(x), 0), r"Log holds NaN for .*_data\[1\] of 'serving_"),
        (
            lambda x: jnp.where(x > 0, x, -jnp.inf).max(),
            r"SelectV2 holds an infinity .*-1e9 in pla",
        ),
    ],
)
def test_numbers_without_a_range_are_refused(tmp_path, function, said):
    data = [np.ones(3, np.float32), np.float32([1, -1, 2])]
    options = {"quantize": "int8", "representative_data": data}
    with pytest.raises(jax2tf.ExportError, match=said):
        jax2tf.export(function, None, "3", tmp_path / "m.tflite", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "representative_data has no inputs for 'serving_default'; give some"),
        ([np.float32([1, np.nan, 1])], r"representative_data\[0\] of 'serving_default' holds NaN"),
        (None, "needs representative_data, inputs from which the ranges"),
    ],
)
def test_samples_without_ranges_are_refused(tmp_path, data, said):
    with pytest.raises(ValueError, match=said):
        jax2tf.export(
            *(jnp.tanh, None, "3", tmp_path / "m.tflite"), quantize="int8", representative_data=data
        )


def test_the_extra_of_integers_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    options = {"quantize": "int8", "representative_data": samples(3)}
    with pytest.raises(jax2tf.MissingPackageError, match=r"install .*'jax2tf\[litert-int8\]'"):
        jax2tf.export(jnp.tanh, None, "3", tmp_path / "m.tflite", **options)


def test_what_no_file_can_hold_is_refused(tmp_path):
    def function(x):
        return jax.pure_callback(np.sin, x, x)

    with pytest.raises(jax2tf.ConversionError, match=r"pure_callback.*cannot call Python"):
        jax2tf.export(function, None, "3", tmp_path / "m.tflite")
    assert not (tmp_path / "m.tflite").exists()


def test_a_mistake_of_a_pass_is_ours(tmp_path, monkeypatch):
    def fail(graph):
        raise KeyError("a pass")

    monkeypatch.setattr(passes, "improve", fail)
    words = r"writer of LiteRT files failed, which is a mistake in jax2tf .*KeyError: 'a pass'"
    with pytest.raises(jax2tf.ExportError, match=words):
        jax2tf.export(jnp.tanh, None, "b", tmp_path / "m.tflite")
    assert not list(tmp_path.iterdir())


def test_an_op_without_a_rule_is_no_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "rule_of", lambda op: None)
    with pytest.raises(jax2tf.ExportError, match=r"refuses the function: .*no rule writes Tanh"):
        jax2tf.export(jnp.tanh, None, "b", tmp_path / "m.tflite")
