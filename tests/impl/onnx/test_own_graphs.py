"""Files of ONNX that are written without TensorFlow."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import jax2tf
from jax2tf._src.api import own_graphs
from jax2tf._src.export import traced
from jax2tf._src.export.onnx import own_graphs as programs
from jax2tf._src.export.onnx import storage
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.graph import make
from jax2tf._src.graph.symbols import Symbol, raw
from jax2tf._src.graph.text import text_of
from jax2tf._src.lowering import supported
from jax2tf._src.targets.by_name import TARGETS
from tests.impl.onnx import models_without_tensorflow as models

PROGRAM = pathlib.Path(models.__file__)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of the files, and the error of each model and its outputs."""
    folder = tmp_path_factory.mktemp("files")
    command = [sys.executable, str(PROGRAM), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = map(json.loads, done.stdout.splitlines())
    return folder, {name: (error, outputs) for name, error, outputs in told}


@pytest.mark.parametrize("name", models.MODELS)
def test_onnx_runtime_gives_what_jax_gives(exported, name):
    _, results = exported
    error, outputs = results[name]
    assert error == ""
    assert outputs


def _shapes(values):
    return {
        x.name: [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim] for x in values
    }


def test_sizes_have_the_names_that_jax_has(exported):
    folder, _ = exported
    graph = onnx.load(folder / "sizes_by_name.onnx").graph
    assert _shapes(graph.input) == {"x": ["2*b + 1", "n"]}
    assert _shapes(graph.output) == {
        "output_0": ["b*n"],
        "output_1": ["n"],
        "output_2": ["2*b + 1", "n"],
    }


def test_names_of_inputs_and_scopes_are_there(exported):
    folder, _ = exported
    file = onnx.load(folder / "gather_and_scatter.onnx")
    assert list(_shapes(file.graph.input)) == ["x", "i"]
    assert any(node.metadata_props for node in file.graph.node)
    assert "tensorflow" not in {entry.key for entry in file.metadata_props}


def _program(function, params, *specs):
    (signature,) = signatures_of(function, params, specs)
    return traced.program_of(signature, params, {"target": TARGETS["onnx"]})


def test_parameters_are_constants_that_share_memory():
    weights = np.ones((300, 2), np.float32)
    program = _program(lambda p, x: x @ p["w"], {"w": weights}, "b, 300")
    assert [x.name for x in program.main.inputs] == ["x"]
    arrays = [node.attributes["value"] for node in program.main.nodes if node.op == "Const"]
    (constant,) = (array for array in arrays if array.shape == weights.shape)
    assert np.shares_memory(constant, weights)


def test_keys_and_numbers_among_the_parameters():
    params = {"key": jax.random.key(3), "scale": 2.0, "n": 3}

    def function(p, x):
        return x * p["scale"] + p["n"], jax.random.bits(p["key"], (2,))

    program = _program(function, params, "b")
    assert [x.dtype for x in program.main.outputs] == [np.float32, np.uint32]


def test_a_graph_of_a_conversion():
    conversion = own_graphs.conversion_of(
        lambda x: jnp.tanh(x)[:, 0], target="onnx", polymorphic_shapes="b, _"
    )
    spec = jax.ShapeDtypeStruct((5, 3), jnp.float32)
    trace, _ = conversion.trace((spec,), {}, own_graphs.described)
    graph = own_graphs.graph_of(conversion, trace, ["x"])
    first, *_, last = text_of(graph).splitlines()
    assert first.endswith("(x : float32[b, 3])")
    assert graph.outputs[0].shape == ("b",)
    assert last.startswith("  return Identity")


def test_what_the_target_does_not_take_is_refused():
    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="the target 'onnx'"):
        _program(lambda x: x + 1j, None, "b")


def test_python_is_not_called():
    def function(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), jnp.float32), x)

    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="cannot call Python"):
        _program(function, None, "3")


def test_an_input_that_no_result_needs(tmp_path):
    program = _program(lambda x, unused: x, None, "b", "b")
    storage.write(programs.parts_of(program, 21), tmp_path / "m.onnx", None)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    feed = {x.name: np.ones(3, np.float32) for x in session.get_inputs()}
    np.testing.assert_array_equal(session.run(None, feed)[0], feed["x"])


def test_log1p_keeps_the_sign_of_a_zero(tmp_path):
    """A loop that divides by it, as draws of jax.random.binomial do, ends only so."""
    program = _program(jnp.log1p, None, "b")
    storage.write(programs.parts_of(program, 21), tmp_path / "m.onnx", None)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    x = np.array([-0.0, 0.0, -1.0, np.nan, np.inf, 0.5], np.float32)
    (y,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(y, np.log1p(x), rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(y[:2]), [True, False])


def run_once(tmp_path, function, *args, **options):
    """The result of an exported function in ONNX Runtime, and JAX's."""
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    jax2tf.export(function, None, specs, tmp_path / "m.onnx", verify=False, **options)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    feed = {taken.name: x for taken, x in zip(session.get_inputs(), args, strict=True)}
    return session.run(None, feed), jax.tree.leaves(function(*map(jnp.asarray, args)))


def convolved(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)


KERNEL = np.random.default_rng(0).standard_normal((3, 3, 3, 3)).astype(np.float32) / 5
HALF = np.full((1, 1, 1), 0.5, np.float32)


@pytest.mark.parametrize(
    "function",
    [
        # A loop and the graph around it both read x with the channels first.
        lambda x: jax.lax.fori_loop(
            0,
            3,
            lambda i, c: convolved(convolved(c, KERNEL) + x, KERNEL),
            convolved(convolved(x, KERNEL) + x, KERNEL),
        ),
        # A scalar is read among arrays with the channels first.
        lambda x: convolved(jnp.copysign(convolved(x, KERNEL), x.mean()), KERNEL),
        # A number of more dimensions than the array gives these to the result.
        lambda x: (x[0, 0, 0] * HALF) * (1 + jax.lax.erf(x[0, 0, 0] * np.float32(0.5**0.5))),
        # The mapped loop's branch that is not taken is infinite.
        jax.vmap(
            lambda x: jax.lax.while_loop(
                lambda c: c[0] > 1, lambda c: (1 / c[1], c[1] + x.sum()), (jnp.inf, x.sum())
            )
        ),
    ],
)
def test_shapes_and_names_that_passes_meet(tmp_path, function):
    x = np.random.default_rng(1).standard_normal((1, 5, 5, 3)).astype(np.float32)
    for actual, expected in zip(*run_once(tmp_path, function, x), strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("external_data", [None, True])
def test_integers_of_four_bits(tmp_path, external_data):
    """They are two in a byte in the file."""
    weights = jnp.asarray(np.random.default_rng(0).integers(-8, 8, (256, 128)), jnp.int4)
    x = np.ones((2, 256), np.float32)

    def function(x):
        return x @ weights.astype(jnp.float32)

    actual, expected = run_once(tmp_path, function, x, external_data=external_data)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_sizes_wrap_around_in_narrow_integers(tmp_path, dtype):
    def function(x):
        size = jnp.asarray(x.shape[0])
        return size.astype(dtype).astype(jnp.int32) - size, x * 2

    jax2tf.export(function, None, "b, 1", tmp_path / "m.onnx", verify=False)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    x = np.ones((70_000, 1), np.float32)
    difference, _ = session.run(None, {session.get_inputs()[0].name: x})
    assert difference == int(np.array(70_000).astype(dtype)) - 70_000


def test_files_whose_names_are_unusual(tmp_path):
    for _ in range(2):
        for name in ("net.data", "small.onnx"):
            options = {"external_data": True} if name == "small.onnx" else {}
            jax2tf.export(
                jnp.sin, None, "b, 3", tmp_path / name, format="onnx", overwrite=True, **options
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.data", "small.onnx"]


def test_a_search_for_an_argument_walks_past_no_op_twice():
    with make.making() as maker:
        x = y = Symbol(maker.argument("x", np.float32, (3,)), maker)
        known = raw.Fill(dims=np.array([3], np.int32), value=np.float32(1))
        for _ in range(2000):
            y = raw.AddV2(x=raw.Sin(x=y), y=y)
            known = raw.AddV2(x=known, y=known)
            assert supported.depends_on_an_argument(y.op)
            assert not supported.depends_on_an_argument(known.op)
        assert supported.depends_on_an_argument(known.op, x.op)


def test_what_a_loop_reads_of_the_graph_around_it_is_an_operand():
    with make.making() as maker:
        x = Symbol(maker.argument("x", np.float32, (3,)), maker)
        y = raw.Sin(x=x)

        def body(carried):
            inner = Symbol(carried, make.current())
            return [raw.AddV2(x=inner, y=y).tensor]

        def goes_on(carried):
            return raw.Less(
                x=raw.Sum(input=y, axis=np.array([0], np.int32)), y=np.float32(9)
            ).tensor

        (result,) = make.loop(goes_on, body, [x.tensor])
        operands = Symbol(result, maker).op.inputs
    assert [each.tensor for each in operands] == [x.tensor, y.tensor]


def test_debug_prints_are_left_out():
    def function(x):
        jax.debug.print("{}", x)
        return jnp.sin(x)

    program = _program(function, None, "3")
    assert [node.op for node in program.main.nodes] == ["Sin", "Identity"]


@pytest.mark.parametrize("divisor", [127.5, 49.0, -3.0, 1e-37, 0.0, np.inf, np.nan])
def test_a_quotient_by_a_number_is_rounded_as_in_jax(tmp_path, divisor):
    """XLA multiplies with the inverse; a quantised model rounds quotients at their halves."""
    x = np.array([127.5, 1.0, 7.0, -49.0, 1e-3, np.inf, np.nan, 0.0, -0.0], np.float32)
    program = _program(lambda x: x / divisor, None, "b")
    storage.write(programs.parts_of(program, 21), tmp_path / "m.onnx", None)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    expected = np.asarray(jax.jit(lambda x: x / divisor)(x))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y[5:]), np.signbit(expected[5:]))


@pytest.mark.parametrize(("dtype", "one"), [("int64", 2**33 + 7), ("float64", 0.1)])
def test_an_input_has_the_dtype_of_its_spec(tmp_path, dtype, one):
    """JAX sees 32 bits. Token ids are int64 for who feeds the file."""
    x = np.array([one, -1], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = jax2tf.export(lambda x: x * 3, None, f"b:{dtype}", tmp_path / "x.onnx", verify=[x])
    assert result.signatures == {"serving_default": {"x": f"{dtype}[b]"}}
    (y,) = onnxruntime.InferenceSession(result.path).run(None, {"x": x})
    np.testing.assert_array_equal(y, jnp.asarray(x) * 3)
    assert y.dtype.itemsize == 4
