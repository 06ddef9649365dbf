"""`export` of ONNX files by our writer: names, opsets, and what the file says of itself."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax

import jax2tf
from jax2tf._src.export.onnx import functions

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


def test_sizes_that_the_graph_tells_need_no_second_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(functions, "_result_shapes", lambda *_: pytest.fail("it was traced again"))
    _, written = exported(tmp_path / "m.onnx")
    assert described(written.graph.output)["y"] == ["b", "5*n"]


def test_sizes_after_a_loop_have_names(tmp_path):
    def function(x):
        return lax.map(lambda row: jnp.cumsum(row) * 2.0, x), jnp.concatenate([x, x])

    jax2tf.export(function, None, "b, 3", tmp_path / "m.onnx")
    outputs = onnx.load(tmp_path / "m.onnx").graph.output
    assert [*described(outputs).values()] == [["b", 3], ["2*b", 3]]


def test_the_same_function_is_the_same_file(tmp_path):
    _, first = exported(tmp_path / "m.onnx")
    _, second = exported(tmp_path / "n.onnx")
    assert first.graph == second.graph


@pytest.mark.parametrize("opset", [18, 21, 25])
def test_opsets(tmp_path, opset):
    report, written = exported(tmp_path / "m.onnx", opset=opset)
    assert written.opset_import[0].version == opset
    assert report.verified


@pytest.mark.parametrize("opset", [17, 99])
def test_an_opset_that_the_writer_does_not_write(tmp_path, opset):
    with pytest.raises(ValueError, match=f"option 'opset' .* 18, .* 25.*got {opset}"):
        exported(tmp_path / "m.onnx", opset=opset)


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


def test_dense_layers_in_four_bits(tmp_path):
    params = {"w": np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)}

    def function(params, x):
        return jnp.tanh(x @ params["w"] + params["w"][0])

    report = jax2tf.export(function, params, "b, 64", tmp_path / "m.onnx", quantize="int4")
    assert report.verified
    ops = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert ops == ["MatMulNBits", "Add", "Tanh"]


KERNEL = np.random.default_rng(0).normal(size=(3, 3, 4, 4)).astype(np.float32)


def convolved(kernel, x):
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


def scaled_by_each(params, x):
    return jax.vmap(lambda scale: convolved(params["kernel"], x) * scale)(params["scales"])


def gradient_by_kernel(kernel, x):
    return jax.grad(lambda kernel: convolved(kernel, x).sum())(kernel)


@pytest.mark.parametrize(
    ("function", "params", "specs"),
    [
        (lambda x: lax.map(jnp.sin, x), None, "s, 3"),
        (lambda x: lax.scan(lambda c, r: (c, c * r), x.sum(), x), None, "4, 3"),
        (scaled_by_each, {"kernel": KERNEL, "scales": np.arange(3.0, dtype="f")}, "b, 8, 8, 4"),
        (lambda k, x: convolved(k, x) * np.full([2, 1, 1, 1, 1], 2, "f"), KERNEL, "b, 8, 8, 4"),
        (gradient_by_kernel, KERNEL, "b, 8, 8, 4"),
        (lambda x, kernel: convolved(kernel, x), None, ("2, 8, 8, c", "3, 3, c, 4")),
    ],
    ids=["map", "scan", "scaled", "rank", "gradient", "channels"],
)
def test_programs_that_were_refused(tmp_path, function, params, specs):
    report = jax2tf.export(function, params, specs, tmp_path / "m.onnx")
    assert report.verified


def test_the_same_loop_gives_the_same_bytes(tmp_path):
    def function(x):
        return lax.scan(lambda c, r: (c + r, lax.cond(c[0] > 0, jnp.sin, jnp.cos, c)), x[0], x)

    paths = [tmp_path / "1.onnx", tmp_path / "2.onnx"]
    for path in paths:
        jax2tf.export(function, None, "s, 3", path, verify=False)
    first, second = (path.read_bytes() for path in paths)
    assert first == second


@pytest.mark.parametrize("result", [(), {}, None])
def test_a_function_without_results(tmp_path, result):
    with pytest.raises(jax2tf.ExportError, match=r"returns no array, .* return an array"):
        jax2tf.export(lambda x: result, None, "b, 3", tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
