"""Parameters as variables (`jax2tf.Module`), and what becomes of large captured arrays."""

from __future__ import annotations

import concurrent.futures
import re
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import nodes
from jax2tf._src.tracing import large_constants

LARGE = np.linspace(-1, 1, 300 * 100, dtype=np.float32).reshape(300, 100)


class Params(NamedTuple):
    layers: list
    step: int


PARAMS = Params([{"w": jnp.ones((300, 100)), "b": np.zeros(100)}, jnp.float32(2)], 7)


def model(params, x, *, shift=0.0):
    layer, scale = params.layers
    return jnp.tanh(x @ layer["w"] + layer["b"]) * scale + shift + params.step


def constants(function):
    """The sizes in bytes of all constants of a concrete function and those it calls."""
    return [n.attr["value"].tensor.ByteSize() for n in nodes(function.graph) if n.op == "Const"]


def test_a_variable_for_each_leaf():
    module = jax2tf.Module(model, PARAMS)
    names = {v.name: (v.dtype, v.trainable) for v in module.variables}
    assert names == {
        "layers/0/w:0": (tf.float32, True),
        "layers/0/b:0": (tf.float32, True),
        "layers/1:0": (tf.float32, True),
        "step:0": (tf.int32, False),
    }
    assert jax.tree.structure(module.params) == jax.tree.structure(PARAMS)
    x = np.ones((2, 300), np.float32)
    np.testing.assert_allclose(module(x, shift=1.0), model(PARAMS, x, shift=1.0), rtol=1e-5)


def test_names_that_tensorflow_takes_for_none(tmp_path):
    params = {"mlp/~/linear w": np.float32(1), "_b": np.float32(2), "\N{GREEK SMALL LETTER PI}": 3}
    module = jax2tf.Module(lambda p, x: sum(p.values()) * x, params)
    assert list(module.parameters) == sorted(params)
    assert sorted(v.name for v in module.variables) == [
        "mlp/_/linear_w:0",
        "parameters/_:0",
        "parameters/_b:0",
    ]
    module.f = tf.function(module, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    assert restored.f(2.0) == 12


def test_a_restored_module_has_its_lists_of_variables(tmp_path):
    table = np.ones((200, 100), np.float32)

    def fun(p, x):
        return x * p["w"] * p["frozen"] + jnp.sum(table)

    module = jax2tf.Module(
        fun, {"w": 2.0, "frozen": 3.0}, trainable={"w": True, "frozen": False}, name="inner"
    )
    module.f = tf.function(module, input_signature=[tf.TensorSpec([])], autograph=False)
    outer = tf.Module()
    outer.inner = module
    for saved in (module, outer, module):
        tf.saved_model.save(saved, tmp_path / "model")
        restored = tf.saved_model.load(tmp_path / "model")
        inner = restored.inner if saved is outer else restored
        (weight,) = inner.trainable_variables
        assert weight is inner.parameters["w"]
        assert {id(v) for v in inner.parameters.values()} <= {id(v) for v in inner.variables}
        with tf.GradientTape() as tape:
            y = inner.f(5.0)
        assert [float(g) for g in tape.gradient(y, inner.trainable_variables)] == [15.0]


def test_a_checkpoint_holds_each_variable_once(tmp_path):
    module = jax2tf.Module(lambda p, x: p["w"] * x, {"w": 2.0})
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    names = [name for name, _ in tf.train.list_variables(path) if "VARIABLE_VALUE" in name]
    assert [name for name in names if "module" in name] == [
        "module/parameters/w/.ATTRIBUTES/VARIABLE_VALUE"
    ]
    module.parameters["w"].assign(0.0)
    tf.train.Checkpoint(module=module).restore(path).assert_existing_objects_matched()
    assert float(module.parameters["w"]) == 2.0


def test_some_of_them_frozen():
    trainable = Params([{"w": True, "b": False}, False], False)
    module = jax2tf.Module(model, PARAMS, trainable=trainable)
    assert [v.name for v in module.trainable_variables] == ["layers/0/w:0"]
    assert not jax2tf.Module(model, PARAMS, trainable=False).trainable_variables


def test_paths_that_read_alike():
    params = {"a": {"b": 1.0}, "a/b": 2.0, "a/b_1": 3.0}
    module = jax2tf.Module(lambda p, x: jax.tree.map(lambda leaf: leaf * x, p), params)
    assert list(module.parameters) == ["a/b", "a/b_1", "a/b_1_1"]
    assert jax.tree.map(float, module(2.0)) == {"a": {"b": 2.0}, "a/b": 4.0, "a/b_1": 6.0}


@pytest.mark.parametrize("trainable", [{"v": False}, ["w"], "no", {"w": "w"}, {"w": 2}])
def test_trainable_of_another_structure(trainable):
    words = (
        rf"trainable should be .* prefix of params, .*'w'.*got {re.escape(repr(trainable))}; give"
    )
    with pytest.raises(ValueError, match=words):
        jax2tf.Module(lambda p, x: p["w"] * x, {"w": jnp.ones(3)}, trainable=trainable)


def test_no_function():
    with pytest.raises(TypeError, match=r"jax2tf\.Module: fun_jax should be a function .* got int"):
        jax2tf.Module(3, {"w": jnp.ones(3)})


@pytest.mark.parametrize("options", [{}, {"native_serialization": True}, {"enable_xla": False}])
def test_training(options):
    module = jax2tf.Module(
        lambda p, x: x @ p["w"], {"w": jnp.zeros((3, 1))}, polymorphic_shapes="b, _", **options
    )
    x = np.eye(3, dtype=np.float32)
    y = np.array([[1.0], [-2.0], [3.0]], np.float32)

    @tf.function(autograph=False)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((module(x) - y) ** 2)
        gradients = tape.gradient(loss, module.trainable_variables)
        for variable, gradient in zip(module.trainable_variables, gradients, strict=True):
            variable.assign_sub(gradient)
        return loss

    losses = [float(step(x, y)) for _ in range(20)]
    assert losses[-1] < 1e-2 < losses[0]
    np.testing.assert_allclose(module.params["w"], y, atol=0.2)


def test_signatures_share_the_variables_and_are_trained_after_restoring(tmp_path, without_jax):
    module = jax2tf.Module(model, PARAMS, polymorphic_shapes="b, _")
    spec = tf.TensorSpec([None, 300])
    module.plain = tf.function(module, autograph=False, input_signature=[spec])
    module.shifted = tf.function(
        lambda x: module(x, shift=1.0), autograph=False, input_signature=[spec]
    )
    assert max(constants(module.plain.get_concrete_function())) < 64_000
    signatures = {"plain": module.plain, "shifted": module.shifted}
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), signatures=signatures, options=options)
    assert (tmp_path / "saved_model.pb").stat().st_size < 200_000
    data = sum(f.stat().st_size for f in (tmp_path / "variables").iterdir())
    assert data < 1.2 * LARGE.nbytes
    lines = without_jax(
        """
        module = tf.saved_model.load(sys.argv[1])
        x = tf.ones([2, 300])
        variables = [v for v in module.parameters.values() if v.trainable]
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(module.plain(x))
        gradients = tape.gradient(y, variables)
        print(sorted(v.name for v in variables))
        print([g.shape == v.shape for g, v in zip(gradients, variables)])
        for v in variables:
            v.assign(tf.zeros_like(v))
        print([float(module.signatures[n](x)["output_0"][0, 0]) for n in ("plain", "shifted")])
        """,
        tmp_path,
    )
    assert lines == [
        "['layers/0/b:0', 'layers/0/w:0', 'layers/1:0']",
        "[True, True, True]",
        "[7.0, 8.0]",
    ]


def test_a_checkpoint_restores_by_path(tmp_path):
    path = tf.train.Checkpoint(jax2tf.Module(model, PARAMS)).write(str(tmp_path / "c"))
    other = jax2tf.Module(model, jax.tree.map(lambda x: x * 0, PARAMS))
    tf.train.Checkpoint(other).read(path).assert_consumed()
    assert float(other.params.layers[1]) == 2
    assert any("step" in name for name, _ in tf.train.list_variables(path))


class TestLargeConstants:
    def test_embedded(self):
        graph = tf.function(jax2tf.convert(lambda x: x @ LARGE.T), autograph=False)
        assert max(constants(graph.get_concrete_function(tf.TensorSpec([1, 100])))) > LARGE.nbytes

    @pytest.mark.parametrize("native", [False, True])
    def test_refused(self, native):
        converted = jax2tf.convert(
            lambda x: x @ LARGE.T, large_constants="refuse", native_serialization=native
        )
        with pytest.raises(jax2tf.ConversionError, match=r"float32\[100, 300\] of 120000 bytes"):
            converted(np.ones((1, 100), np.float32))

    def test_small_ones_stay(self):
        converted = jax2tf.convert(lambda x: x + np.ones(100), large_constants="refuse")
        assert converted(np.ones(100, np.float32)).shape == (100,)

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}, {"enable_xla": False}])
    def test_variables_of_a_module(self, tmp_path, options):
        large = jnp.asarray(LARGE)

        def fun(params, x):
            return jnp.sin(x @ large) * params

        module = jax2tf.Module(fun, jnp.float32(3), **options)
        spec = tf.TensorSpec([1, 300])
        module.f = tf.function(module, autograph=False, input_signature=[spec])
        x = np.full((1, 300), 0.01, np.float32)
        with tf.GradientTape() as tape:
            y = module.f(x)
        np.testing.assert_allclose(y, fun(3, x), rtol=1e-3, atol=1e-5)
        (variable,) = module.trainable_variables
        gradient = tape.gradient(y, variable)
        np.testing.assert_allclose(gradient, jnp.sum(fun(1, x)), rtol=1e-3, atol=1e-4)
        assert max(constants(module.f.get_concrete_function()), default=0) < 64_000
        # One variable for the forward and the backward pass.
        assert [v.shape for v in module.variables if not v.trainable] == [(300, 100)]
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, str(tmp_path), options=options)
        assert (tmp_path / "saved_model.pb").stat().st_size < 64_000
        restored = tf.saved_model.load(str(tmp_path))
        np.testing.assert_allclose(restored.f(x), y, rtol=1e-6)

    def test_of_a_jitted_function_inside(self):
        large = jnp.asarray(LARGE)
        fun = jax.jit(lambda params, x: x @ large * params)
        x = np.ones((1, 300), np.float32)
        for options in ({}, {"native_serialization": True}):
            module = jax2tf.Module(fun, 3.0, **options)
            np.testing.assert_allclose(module(x), fun(3.0, x), rtol=1e-4)
            assert [v.shape for v in module.variables if not v.trainable] == [(300, 100)]

    def test_of_a_jitted_function_in_a_loop(self):
        large = jnp.asarray(LARGE)
        inner = jax.jit(lambda x: x + (x @ large).sum())
        module = jax2tf.Module(
            lambda params, x: jax.lax.fori_loop(0, 2, lambda _, x: inner(x) * params, x),
            3.0,
            native_serialization=True,
        )
        with pytest.raises(jax2tf.ConversionError) as refusal:
            module(np.ones((1, 300), np.float32))
        words = ("inside of a loop or branch captures an array float32[300, 100]", "'embed'")
        assert all(word in str(refusal.value) for word in words)

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}])
    def test_views_of_one_array_are_constants_of_their_own(self, options):
        w = np.linspace(-1, 1, 300 * 200, dtype=np.float32).reshape(300, 200)
        views = [
            *(w, w[:250], w[::-1], w[:, ::-1], w.T, w.reshape(200, 300), w.reshape(-1)),
            *(w.view(np.int32), w.view(np.uint32), np.broadcast_to(w[0], (300, 200))),
            *(w.reshape(100, 600)[:, ::2], w.view(np.complex64), w[:], w.reshape(300, 200)),
        ]
        keys = jax.random.split(jax.random.key(0), 10_000)

        def fun(params, x):
            return [x.astype(v.dtype) * v for v in views], jax.random.key_data(keys) + jnp.uint32(x)

        module = jax2tf.Module(fun, 3.0, **options)
        # Two of them are the whole array once more, with the same elements.
        n_distinct = len(views) - 2 + 1
        for call in (module, tf.function(module, autograph=False), module):
            actual = jax.tree.map(np.asarray, call(2.0))
            jax.tree.map(np.testing.assert_array_equal, actual, jax.jit(fun)(3.0, 2.0))
            assert len([v for v in module.variables if not v.trainable]) == n_distinct

    def test_threads_share_the_variables(self):
        made = []

        def variable(value):
            time.sleep(0.1)
            made.append(tf.Variable(value))
            return made[-1]

        converted = jax2tf.convert(lambda x: LARGE + x, large_constants=variable)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for i, result in enumerate(pool.map(converted, np.arange(8, dtype=np.float32))):
                np.testing.assert_array_equal(result, LARGE + np.float32(i))
        assert len(made) == 1

    @pytest.mark.parametrize("options", [{}, {"native_serialization": True}, {"enable_xla": False}])
    def test_more_than_a_graph_holds(self, options, monkeypatch):
        monkeypatch.setattr(large_constants, "GRAPH_LIMIT", 3 * LARGE.nbytes // 2)
        matrix, other = jnp.asarray(LARGE.T), jnp.asarray(LARGE.T + 1)

        def fun(x):
            return x @ matrix + x @ other

        graph = tf.function(jax2tf.convert(fun, **options), autograph=False)
        with pytest.raises(jax2tf.ConversionError) as error:
            graph(np.ones((1, 100), np.float32))
        for words in (
            f"captures arrays of {2 * LARGE.nbytes} bytes",
            f"float32[100, 300] of {LARGE.nbytes} bytes",
            f"holds at most {3 * LARGE.nbytes // 2}. What to do: ",
            "jax2tf.Module",
            "large_constants",
        ):
            assert words in str(error.value)
        # One array is one constant, and what is a variable or no graph has no such limit.
        one = tf.function(jax2tf.convert(lambda x: x @ matrix + matrix[0], **options))
        assert one(np.ones((1, 100), np.float32)).shape == (1, 300)
        module = tf.function(jax2tf.Module(lambda p, x: fun(x) * p, 1.0, **options))
        assert module(np.ones((1, 100), np.float32)).shape == (1, 300)

    def test_no_such_policy(self):
        with pytest.raises(ValueError, match="large_constants should be 'embed', 'refuse' or"):
            jax2tf.convert(jnp.sin, large_constants="drop")


def test_another_function_of_the_same_parameters():
    module = jax2tf.Module(model, PARAMS)
    scaled = module.function(
        lambda params, y, *, by: y * params.layers[1] * by, polymorphic_shapes={"y": "b"}
    )
    graph = tf.function(scaled, autograph=False)
    function = graph.get_concrete_function(tf.TensorSpec([None]), by=tf.TensorSpec([]))
    module.parameters["layers/1"].assign(3.0)
    np.testing.assert_array_equal(function(tf.ones([2]), by=tf.constant(2.0)), [6, 6])
    assert len(module.variables) == 4


def test_a_tensor_gives_the_variable_its_memory():
    tensor = tf.experimental.dlpack.from_dlpack(jnp.ones([300, 100]).__dlpack__())
    module = jax2tf.Module(lambda p: p.sum(), tensor)
    (variable,) = module.variables
    variable.assign_add(tf.ones([300, 100]))
    assert float(module()) == 60_000


@pytest.mark.parametrize("x64", [False, True])
def test_a_tensor_of_64_bits_is_a_variable_of_the_width_that_jax_has(x64):
    with jax.enable_x64(x64):
        module = jax2tf.Module(lambda p: p * 2, tf.constant([1.5], tf.float64))
        assert module.variables[0].dtype == (tf.float64 if x64 else tf.float32)
        np.testing.assert_array_equal(module(), [3.0])
