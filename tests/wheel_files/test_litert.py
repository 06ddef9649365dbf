"""LiteRT files from the wheel with its extra `litert`, which brings no TensorFlow."""

from __future__ import annotations

import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from jax import lax
from programs import PROGRAMS, assert_that_tensorflow_is_not_installed, normal

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


def test_integers_of_tensorflows_converter_are_refused(tmp_path):
    path = tmp_path / "m.tflite"
    with pytest.raises(jax2tf.MissingPackageError, match="pass quantize='float16' or 'int4'"):
        jax2tf.export(lambda params, x: x @ params, normal(64, 64), "8, 64", path, quantize="int8")
    assert not path.exists()


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
