"""`export` of ONNX files by our writer: names, opsets, and what the file says of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import jax2tf

PARAMS = {"w": np.arange(20, dtype=np.float32).reshape(4, 5)}


def model(params, X, n):
    with jax.named_scope("Block"), jax.named_scope("Dense_0"):
        product = jnp.tanh(jnp.einsum("bni,ij->bnj", X, params["w"]))
    return {
        "y": product.reshape(X.shape[0], -1) + n[:, None],
        "Z": jnp.concatenate([X, X[:, :1]], 1),
    }


SPECS = {"X": "b, n, 4", "n": "b"}


def exported(path, **options):
    report = jax2tf.export(model, PARAMS, SPECS, path, overwrite=True, **options)
    return report, onnx.load(path)


def described(values):
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in values
    }


def test_names_and_sizes_are_the_users(tmp_path):
    _, written = exported(tmp_path / "m.onnx")
    assert described(written.graph.input) == {"X": ["b", "n", 4], "n": ["b"]}
    assert described(written.graph.output) == {"y": ["b", "5*n"], "Z": ["b", "n + 1", 4]}
    assert written.producer_name == "jax2tf"
    assert {"jax2tf", "jax"} <= {entry.key for entry in written.metadata_props}
    (tanh,) = [node for node in written.graph.node if node.op_type == "Tanh"]
    assert {e.key: e.value for e in tanh.metadata_props} == {"jax_scope": "Block/Dense_0"}
    names = [node.name for node in written.graph.node]
    assert len(set(names)) == len(names)


def test_the_same_function_is_the_same_file(tmp_path):
    _, first = exported(tmp_path / "m.onnx")
    _, second = exported(tmp_path / "n.onnx")
    assert first.graph == second.graph


@pytest.mark.parametrize("opset", [18, 21, 25])
def test_opsets(tmp_path, opset):
    report, written = exported(tmp_path / "m.onnx", opset=opset)
    assert written.opset_import[0].version == opset
    assert report.verified


@pytest.mark.parametrize(
    ("options", "opsets"),
    [({"opset": 17}, "18 to 25"), ({"opset": 21, "writer": "tf2onnx"}, "7 to 18")],
)
def test_an_opset_that_the_writer_does_not_write(tmp_path, options, opsets):
    with pytest.raises(ValueError, match=f"writes the opsets {opsets}, got opset="):
        exported(tmp_path / "m.onnx", **options)


def test_tf2onnx_can_be_taken(tmp_path):
    _, written = exported(tmp_path / "m.onnx", writer="tf2onnx")
    assert written.producer_name == "tf2onnx"


@pytest.mark.parametrize("kind", ["float16", "int8_weights", "int4"])
def test_weights_of_fewer_bits(tmp_path, kind):
    params = {"w": np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)}

    def function(params, x):
        return jnp.tanh(x @ params["w"])

    path = tmp_path / "m.onnx"
    whole = jax2tf.export(function, params, "b, 64", path)
    fewer = jax2tf.export(function, params, "b, 64", path, overwrite=True, quantize=kind)
    assert fewer.size < 0.6 * whole.size


def test_vmapped_norms_of_an_open_batch_are_no_nan(tmp_path):
    def scale(x):
        return x * jnp.var(x, keepdims=True)

    def function(x):
        return jax.vmap(scale)(jax.vmap(scale)(x))

    jax2tf.export(function, None, "b, 8", tmp_path / "m.onnx")
