"""`jax2tf.export`: SavedModels and LiteRT, what is verified, and what is left at the path."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import textwrap
import threading
import types
import warnings
import zipfile
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf import compat
from jax2tf.export import formats, measures, packages, placing, progress
from jax2tf.export.measures import Precision

RNG = np.random.default_rng(0)
PARAMS = {
    "w1": RNG.normal(size=(4, 8)).astype(np.float32),
    "w2": jnp.asarray(RNG.normal(size=(8, 3)).astype(np.float32)),
}
X = RNG.normal(size=(5, 4)).astype(np.float32)

export = functools.partial(jax2tf.export, progress=False)


def mlp(params, x):
    return {"y": jnp.tanh(x @ params["w1"]) @ params["w2"]}


def interpreter(path):
    with warnings.catch_warnings():
        # It says that ai-edge-litert takes its place.
        warnings.simplefilter("ignore", UserWarning)
        return tf.lite.Interpreter(str(path))


def left(folder):
    """What stands in a folder, hidden files too."""
    return sorted(os.listdir(folder))


class TestSavedModel:
    def test_it_trains_on_in_a_process_without_jax(self, tmp_path, without_jax):
        result = export(mlp, PARAMS, "b, 4", tmp_path / "model")
        assert result.format == "savedmodel"
        lines = without_jax(
            """
            model = tf.saved_model.load(sys.argv[1])
            print(sorted(model.parameters), len(model.trainable_variables))
            predict = model.signatures["serving_default"]
            with tf.GradientTape() as tape:
                y = predict(x=tf.ones([7, 4]))["y"]
                loss = tf.reduce_sum(y)
            print(y.shape, [g.shape.rank for g in tape.gradient(loss, model.trainable_variables)])
            print(sorted(model.serving_default(tf.ones([2, 4]))))
            """,
            tmp_path / "model",
        )
        assert lines == ["['w1', 'w2'] 2", "(7, 3) [2, 2]", "['y']"]

    def test_the_result(self, tmp_path):
        result = export(mlp, PARAMS, {"x": "b, 4"}, tmp_path / "model")
        assert result.path == tmp_path / "model"
        assert result.signatures == {"serving_default": {"x": "float32[b, 4]"}}
        files = [f for f in result.path.rglob("*") if f.is_file()]
        assert result.size == sum(f.stat().st_size for f in files) > 0
        assert result.ops >= 3
        assert 0 <= result.differences["serving_default"]["y"] < 1e-5
        assert result.verified == tuple(f"serving_default: random inputs, b={b}" for b in (2, 3))
        text = str(result)
        for words in ("savedmodel", f"{result.ops} ops", "x: float32[b, 4]", "b=3", "y: largest"):
            assert words in text
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.ops = 0

    def test_metadata(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "model", verify=False)
        text = (tmp_path / "model/assets.extra/jax2tf.json").read_text()
        assert json.loads(text) == {
            "jax2tf": jax2tf.__version__,
            "jax": jax.__version__,
            "tensorflow": tf.__version__,
            "source": f"{__name__}:mlp",
        }

    def test_options(self, tmp_path):
        path = tmp_path / "model"
        export(mlp, PARAMS, "b, 4", path, trainable={"w1": False, "w2": True}, enable_xla=False)
        assert [v.name for v in tf.saved_model.load(str(path)).trainable_variables] == ["w2:0"]
        export(mlp, PARAMS, "b, 4", path, with_gradient=False, overwrite=True)
        restored = tf.saved_model.load(str(path))
        assert restored.serving_default(X)["y"].shape == (5, 3)
        with pytest.raises(LookupError), tf.GradientTape():
            restored.serving_default(X)

    def test_a_dimension_that_is_checked(self, tmp_path):
        specs = {"x": "b, 4", "y": "2*b"}
        export(lambda x, y: x.sum() + y.sum(), None, specs, tmp_path / "model")
        restored = tf.saved_model.load(str(tmp_path / "model"))
        restored.serving_default(tf.ones([2, 4]), tf.ones([4]))
        with pytest.raises(tf.errors.InvalidArgumentError):
            restored.serving_default(tf.ones([2, 4]), tf.ones([5]))

    def test_large_captured_arrays_are_variables(self, tmp_path):
        table = RNG.normal(size=(200, 200)).astype(np.float32)
        export(lambda x: x @ table, None, "b, 200", tmp_path / "model")
        assert (tmp_path / "model/saved_model.pb").stat().st_size < table.nbytes / 2

    def test_gradients_that_jax_does_not_have(self, tmp_path):
        def halve(x):
            return jax.lax.while_loop(lambda x: jnp.all(x > 1), lambda x: x / 2, x)

        with pytest.raises(
            jax2tf.ExportError, match=r"gradients.*lax\.while_loop.*pass with_gradient=False"
        ):
            export(halve, None, "3", tmp_path / "model")
        assert export(halve, None, "3", tmp_path / "model", with_gradient=False).verified


class TestLiteRt:
    def test_a_batch_that_is_open(self, tmp_path):
        path = tmp_path / "model.tflite"
        result = export(mlp, PARAMS, "b, 4", path)
        assert (result.format, result.size) == ("litert", path.stat().st_size)
        assert 2 <= result.ops <= 10
        (y,) = interpreter(path).get_signature_runner()(x=X).values()
        np.testing.assert_allclose(y, jax.jit(mlp)(PARAMS, X)["y"], rtol=1e-5, atol=1e-6)

    def test_metadata(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite", verify=False)
        with zipfile.ZipFile(tmp_path / "model.tflite") as archive:
            assert json.loads(archive.read("jax2tf.json"))["source"] == f"{__name__}:mlp"

    @pytest.mark.parametrize(
        ("quantize", "most"), [("float16", 0.55), ("dynamic", 0.3), ("int8", 0.3), ("int4", 0.15)]
    )
    def test_quantised(self, quantize, most, tmp_path):
        w = (RNG.normal(size=(128, 128)) / 11).astype(np.float32)
        samples = [RNG.normal(size=(2, 128)).astype(np.float32) for _ in range(8)]
        options = {"representative_data": iter(samples)} if quantize == "int8" else {}
        path = tmp_path / "model.tflite"
        result = export(
            lambda p, x: jnp.tanh(x @ p), w, "b, 128", path, quantize=quantize, **options
        )
        assert path.stat().st_size < most * w.nbytes + 4000
        assert 0 < result.differences["serving_default"]["output"] < 0.5
        if quantize == "int8":
            inputs = [f"serving_default: representative input {i}" for i in (0, 1)]
            assert list(result.verified) == inputs

    def test_numbers_that_float16_does_not_have_stay(self, tmp_path):
        """Tables and small numbers are no weights: 0.9999 would be 1, and 1e-8 would be 0."""
        kept = np.cumprod(1 - np.linspace(1e-4, 0.02, 50, dtype=np.float32))
        w = (RNG.normal(size=(64, 64)) / 8).astype(np.float32)

        def step(p, x, at):
            norm = jnp.sqrt((0 * x).sum() + 1e-8)
            return x @ p / jnp.sqrt(1 - jnp.asarray(kept)[at]) + 1e-8 / norm

        path = tmp_path / "model.tflite"
        result = export(step, w, ("b, 64", ":int32"), path, quantize="float16")
        assert result.differences["serving_default"]["output"] < 0.1
        assert path.stat().st_size < 0.55 * w.nbytes + 5000

    @pytest.mark.parametrize("quantize", ["float16", "int4"])
    def test_weights_stand_where_kernels_read_them(self, quantize, tmp_path):
        """At multiples of 16 bytes, which their own sizes are not."""
        w = [(RNG.normal(size=shape) / 8).astype(np.float32) for shape in ((35, 37), (37, 29))]
        path = tmp_path / "model.tflite"
        export(lambda p, x: jnp.tanh(x @ p[0]) @ p[1], w, "b, 35", path, quantize=quantize)
        content = path.read_bytes()
        model = compat.litert_schema().Model.GetRootAs(content, 0)
        start = np.frombuffer(content, np.uint8).ctypes.data
        buffers = [model.Buffers(i) for i in range(model.BuffersLength())]
        weights = [b.DataAsNumpy() for b in buffers if b.DataLength() > 256]
        assert [x.size % 16 for x in weights] != [0] * len(weights)
        assert [(x.ctypes.data - start) % 16 for x in weights] == [0] * len(weights)

    def test_signatures_share_weights_of_four_bits(self, tmp_path):
        w = (RNG.normal(size=(128, 128)) / 11).astype(np.float32)
        functions = {
            "once": (lambda p, x: x @ p, "b, 128"),
            "twice": (lambda p, x: jnp.tanh(x @ p) @ p, "b, 128"),
        }
        result = export(functions, w, None, tmp_path / "model.tflite", quantize="int4")
        assert result.size < w.nbytes / 8 + 6000
        assert result.differences["twice"]["output"] > 0

    @pytest.mark.parametrize("integer_io", [False, True])
    def test_full_integers(self, integer_io, tmp_path):
        samples = [RNG.normal(size=(2, 4)) for _ in range(8)]
        path = tmp_path / "model.tflite"
        options = {"quantize": "int8", "representative_data": samples, "integer_io": integer_io}
        export(mlp, PARAMS, "b, 4", path, **options)
        details = interpreter(path).get_input_details() + interpreter(path).get_output_details()
        dtype = np.int8 if integer_io else np.float32
        assert {detail["dtype"] for detail in details} == {dtype}

    def test_complex_results(self, tmp_path):
        words = r"takes no Complex.* give the real and the imaginary part, jnp.real\(x\)"
        with pytest.raises(jax2tf.ConversionError, match=words):
            export(lambda x: {"complex": 1j * x}, None, "3", tmp_path / "m.tflite")
        assert left(tmp_path) == []

    def test_complex_inputs(self, tmp_path):
        result = export(lambda z: z.real * z.imag, None, "3:complex64", tmp_path / "m.tflite")
        assert result.path == tmp_path / "m.tflite"

    def test_what_it_does_not_take(self, tmp_path):
        with pytest.raises(jax2tf.ConversionError):
            export(lambda x: jnp.linalg.eigvals(x), None, "3, 3", tmp_path / "model.tflite")
        assert left(tmp_path) == []


class TestBfloat16InFloat32:
    PARAMS: ClassVar = {
        "table": jnp.asarray(RNG.normal(size=(20, 16)), jnp.bfloat16),
        "w": jnp.asarray(RNG.normal(size=(16, 16)) / 4, jnp.bfloat16),
        "bias": RNG.normal(size=(16,)).astype(np.float32),
    }

    @staticmethod
    def model(params, tokens, x):
        """Activations, loops, branches and a mask of bfloat16, with sums of float32."""
        layer = jax.checkpoint(lambda y: jax.nn.gelu(y @ params["w"]))
        y = layer(params["table"][tokens] + x)
        squares = jnp.square(y.astype(jnp.float32) + params["bias"])
        y = y / jnp.sqrt(squares.mean(-1, keepdims=True)).astype(jnp.bfloat16)

        def step(state, row):
            state = jnp.where(state > 0, state, jnp.bfloat16(0.5) * state) + row
            return state, state.sum()

        state, sums = jax.lax.scan(step, jnp.zeros_like(y[:, 0]), y.swapaxes(0, 1))
        state = jax.lax.cond(state.sum() > 0, lambda s: s / 2, lambda s: s, state)
        state = jax.lax.fori_loop(0, 2, lambda i, s: jax.nn.silu(s), state)
        scores = jnp.einsum("bld,bmd->blm", y, y, preferred_element_type=jnp.float32) / 4
        shares = jax.nn.softmax(jnp.where(jnp.tri(y.shape[1], dtype=bool), scores, -jnp.inf))
        mixed = shares.astype(jnp.bfloat16) @ y
        return {"mixed": mixed, "state": state, "sums": sums.astype(jnp.float32), "n": tokens + 1}

    SPECS: ClassVar = {"tokens": "b, l:int32", "x": "b, l, 16:bfloat16"}

    def test_a_model(self, tmp_path):
        path = tmp_path / "model.tflite"
        result = export(self.model, self.PARAMS, self.SPECS, path, widen_bfloat16=True)
        assert result.signatures["serving_default"]["x"] == "float32[b, l, 16]"
        assert len(result.verified) == 2
        tokens = RNG.integers(0, 20, (2, 4)).astype(np.int32)
        x = jnp.asarray(RNG.normal(size=(2, 4, 16)), jnp.bfloat16)
        runner = interpreter(path).get_signature_runner()
        given = runner(tokens=tokens, x=np.asarray(x.astype(np.float32)))
        expected = jax.jit(self.model)(self.PARAMS, tokens, x)
        for name, value in expected.items():
            value = np.asarray(value.astype(np.int32 if name == "n" else np.float32))
            assert given[name].dtype == value.dtype
            np.testing.assert_allclose(given[name], value, rtol=0, atol=0.05 * np.abs(value).max())

    def test_what_is_computed_is_float32(self, tmp_path):
        """Nothing is rounded: it is what JAX gives for float32 parameters."""
        w = self.PARAMS["w"]
        path = tmp_path / "model.tflite"
        specs = "b, 16:bfloat16"
        export(lambda p, x: jnp.tanh(x @ p), w, specs, path, widen_bfloat16=True)
        x = RNG.normal(size=(3, 16)).astype(np.float32)
        (given,) = interpreter(path).get_signature_runner()(x=x).values()
        np.testing.assert_allclose(given, np.tanh(x @ w.astype(np.float32)), atol=1e-6)

    def test_in_signatures_and_with_integers(self, tmp_path):
        samples = [jnp.asarray(RNG.normal(size=(2, 16)), jnp.bfloat16) for _ in range(4)]
        functions = {
            "once": (lambda p, x: x @ p, "b, 16:bfloat16"),
            "twice": (lambda p, x: jnp.tanh(x @ p) @ p, "b, 16:bfloat16"),
        }
        result = export(
            *(functions, self.PARAMS["w"], None, tmp_path / "model.tflite"),
            widen_bfloat16=True,
            quantize="int8",
            representative_data=dict.fromkeys(functions, samples),
        )
        assert list(result.differences) == ["once", "twice"]

    def test_a_saved_model(self, tmp_path):
        path = tmp_path / "model"
        export(self.model, self.PARAMS, self.SPECS, path, widen_bfloat16=True)
        restored = tf.saved_model.load(str(path))
        assert {v.dtype for v in restored.variables} == {tf.float32}

    def test_a_function_without_any(self, tmp_path):
        result = export(mlp, PARAMS, "b, 4", tmp_path / "m.tflite", widen_bfloat16=True)
        assert result.differences["serving_default"]["y"] < 1e-5

    def test_bits_are_refused(self, tmp_path):
        def noisy(x):
            return x + jax.random.normal(jax.random.key(0), x.shape, jnp.bfloat16)

        words = r"widen_bfloat16=True .*bits of bfloat16 .*What to do: draw random numbers in"
        with pytest.raises(jax2tf.ExportError, match=words):
            export(noisy, None, "3:bfloat16", tmp_path / "m.tflite", widen_bfloat16=True)
        assert left(tmp_path) == []

    def test_who_does_not_ask_for_it_is_told(self, tmp_path):
        fun = lambda p, x: x.astype(jnp.bfloat16) @ p  # noqa: E731
        with pytest.raises(jax2tf.ExportError, match=r"What to do: pass widen_bfloat16=True"):
            export(fun, self.PARAMS["w"], "b, 16", tmp_path / "m.tflite")
        with pytest.raises(jax2tf.ConversionError, match=r"export\(\.\.\., widen_bfloat16=True"):
            tf.function(
                jax2tf.convert(lambda x: x + jnp.bfloat16(1), target="onnx"), autograph=False
            ).get_concrete_function(tf.TensorSpec([3], tf.bfloat16))


class TestSeveralSignatures:
    SIGNATURES: ClassVar = {
        "encode": (lambda p, x: jnp.tanh(x @ p["w"]), "b, 8"),
        "decode": (lambda p, z, scale: z @ p["w"].T * scale, {"z": "b, 4", "scale": ":float32"}),
    }
    SHARED: ClassVar = {"w": RNG.normal(size=(8, 4)).astype(np.float32)}

    @pytest.mark.parametrize("name", ["model", "model.tflite"])
    def test_they_share_the_parameters(self, name, tmp_path):
        result = export(self.SIGNATURES, self.SHARED, None, tmp_path / name)
        assert list(result.signatures) == list(result.differences) == ["encode", "decode"]
        assert len(result.verified) == 4
        if name == "model":
            restored = tf.saved_model.load(str(tmp_path / name))
            assert len(restored.variables) == 1
            assert restored.decode(z=tf.ones([2, 4]), scale=2.0)["output"].shape == (2, 8)
        else:
            signatures = interpreter(tmp_path / name).get_signature_list()
            assert sorted(signatures) == ["decode", "encode"]

    def test_inputs_for_each(self, tmp_path):
        verify = {"encode": [np.ones((1, 8))], "decode": [{"z": np.ones((2, 4)), "scale": 3.0}]}
        result = export(
            self.SIGNATURES, self.SHARED, None, tmp_path / "model.tflite", verify=verify
        )
        assert result.verified == ("encode: given input 0", "decode: given input 0")
        del verify["decode"]
        with pytest.raises(ValueError, match="verify has no inputs for 'decode'"):
            export(self.SIGNATURES, self.SHARED, None, tmp_path / "other", verify=verify)

    def test_quantised_with_data_for_each(self, tmp_path):
        data = {
            "encode": [RNG.normal(size=(2, 8)) for _ in range(4)],
            "decode": [{"z": RNG.normal(size=(2, 4)), "scale": 2.0} for _ in range(4)],
        }
        options = {"quantize": "int8", "representative_data": data}
        result = export(self.SIGNATURES, self.SHARED, None, tmp_path / "model.tflite", **options)
        assert result.verified[0] == "encode: representative input 0"

    @pytest.mark.parametrize("format", ["onnx", "openvino", "tfjs"])
    def test_formats_of_one_function_refuse_them(self, format, tmp_path, monkeypatch):
        monkeypatch.setattr(formats, "check_packages", lambda *args, **kwargs: None)
        with pytest.raises(jax2tf.ExportError, match=rf"'{format}' holds one .*\(encode, decode\)"):
            export(self.SIGNATURES, self.SHARED, None, tmp_path / "model", format=format)

    @pytest.mark.parametrize(
        ("signatures", "specs", "words"),
        [
            ({}, None, "is empty"),
            ({"f": (mlp, "b, 4")}, "b, 4", "specs should be None"),
            ({"f": mlp}, None, r"'f' should be a pair \(function, specs\)"),
            ({"1f": (mlp, "b, 4")}, None, "letters, digits and underscores, got '1f'"),
            ({"restore": (mlp, "b, 4")}, None, "cannot be called 'restore'"),
            ({"variables": (mlp, "b, 4")}, None, "cannot be called 'variables'"),
        ],
    )
    def test_what_is_no_dict_of_signatures(self, signatures, specs, words, tmp_path):
        with pytest.raises(ValueError, match=words):
            export(signatures, PARAMS, specs, tmp_path / "model")


class TestSpecs:
    def inputs(self, fun, specs, tmp_path, **options):
        result = export(fun, None, specs, tmp_path / "model", **options)
        return result.signatures["serving_default"]

    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ("b, 4", "float32[b, 4]"),
            ("(b, 2*s + 1):int32", "int32[b, 2*s + 1]"),
            ("", "float32[]"),
            (":bool", "bool[]"),
            ("3:bfloat16", "bfloat16[3]"),
            (np.ones((2, 3)), "float32[2, 3]"),
            (jnp.ones(3, jnp.int8), "int8[3]"),
            (2.5, "float32[]"),
            (tf.ones([2]), "float32[2]"),
            (jax.ShapeDtypeStruct((2,), np.float16), "float16[2]"),
            (jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 3"), np.float32), "float32[b, 3]"),
            (tf.TensorSpec([None, 4, None], tf.float32), "float32[d0, 4, d1]"),
            (tf.TensorSpec([2], tf.int64), "int64[2]"),
        ],
    )
    def test_what_says_shape_and_dtype(self, spec, expected, tmp_path):
        assert self.inputs(lambda x: x + x, spec, tmp_path) == {"x": expected}

    def test_trees_names_and_positions(self, tmp_path):
        def fun(x, tree, *rest, flag=True, Mask):
            return x + tree["a"] + tree["b"][0] + rest[0] + Mask if flag else x

        specs = ("b", {"a": "b", "b": [""]}, "b")
        with pytest.raises(TypeError, match="Mask"):
            self.inputs(fun, specs, tmp_path)
        fun = functools.partial(fun, Mask=1.0)
        names = list(self.inputs(fun, specs, tmp_path))
        assert names == ["x", "tree_a", "tree_b_0", "rest_0"]

    def test_keywords(self, tmp_path):
        def fun(x, *, Mask, n=2):
            return x * Mask * n

        taken = self.inputs(fun, {"x": "b", "Mask": "b"}, tmp_path)
        assert taken == {"Mask": "float32[b]", "x": "float32[b]"}
        restored = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
        assert restored(Mask=tf.fill([2], 3.0), x=tf.ones([2]))["output"].numpy().tolist() == [6, 6]

    def test_names_of_tensor_specs_and_names_that_meet(self, tmp_path):
        specs = (
            tf.TensorSpec([2], name="tokens"),
            {"A": "2", "a": "2"},
            tf.TensorSpec([], name="in"),
        )
        names = self.inputs(lambda x, t, s: x + t["a"] - t["A"] * s, specs, tmp_path)
        assert list(names) == ["tokens", "t_A", "t_a_1", "in_"]

    def test_names_of_outputs(self, tmp_path):
        result = export(lambda x: ({"a b": x, "c": [x * 2]}, x + 1), None, "2", tmp_path / "model")
        names = list(result.differences["serving_default"])
        assert names == ["output_0_a_b", "output_0_c_0", "output_1"]

    def test_constraints(self, tmp_path):
        def fun(x):
            return x[:4] if x.shape[0] >= 8 else x

        result = export(
            fun,
            None,
            "b",
            tmp_path / "model",
            polymorphic_constraints=["b >= 8", "mod(b, 5) == 0"],
            verify=[np.ones(10), np.ones(15)],
        )
        assert len(result.verified) == 2
        constraints = ["b >= 8", "mod(b, 4) == 0", "s <= 2*b"]
        result = export(
            lambda x, y: (fun(x), y.sum()),
            None,
            ("b", "s"),
            tmp_path / "other",
            polymorphic_constraints=constraints,
        )
        assert result.verified[0].endswith("b=8, s=12")

    def test_the_caller_s_scope(self, tmp_path):
        (b,) = jax.export.symbolic_shape("b", constraints=["b >= 20"])
        result = export(
            lambda x: x[:20], None, jax.ShapeDtypeStruct((b,), np.float32), tmp_path / "model"
        )
        assert result.verified == tuple(f"serving_default: random inputs, b={b}" for b in (24, 32))

    @pytest.mark.parametrize("divisor", [8, 24, 96, 384, 512])
    def test_multiples_of_usual_sizes(self, divisor, tmp_path):
        result = export(
            lambda x: x,
            None,
            "b",
            tmp_path / "model",
            polymorphic_constraints=[f"mod(b, {divisor}) == 0"],
        )
        assert result.verified[0].endswith(f" b={divisor}")

    def test_a_size_of_0_is_tried_where_it_is_allowed(self, tmp_path):
        result = export(
            lambda x: x.sum(),
            None,
            "b - 2",
            tmp_path / "model",
            polymorphic_constraints=["b <= 3", "b >= 2"],
        )
        assert [text.rpartition(" ")[2] for text in result.verified] == ["b=2", "b=3"]

    def test_no_two_sizes(self, tmp_path):
        with pytest.raises(jax2tf.ExportError, match=r"no two sizes .* b >= 5000 .*verify="):
            export(
                lambda x: x,
                None,
                "b",
                tmp_path / "model",
                polymorphic_constraints=["b >= 5000"],
            )

    @pytest.mark.parametrize(
        ("specs", "error", "words"),
        [
            ("b, 4:float33", ValueError, "'b, 4:float33' of x .* a colon, a dtype"),
            ("b, 4]", ValueError, r"'b, 4\]' of x should be a shape"),
            ((None, object()), TypeError, "the spec of tree should be an array, a jax.Shape"),
            (tf.TensorSpec(None), ValueError, "the spec of x has no rank"),
            (jax.random.key(0), TypeError, "the spec of x is one of typed PRNG keys"),
            ({"z": "b"}, ValueError, "entry for 'z', and the inputs of fun are x, tree"),
            (("b", "b", "b"), TypeError, r"of fun\(x, tree=None\), got 3: too many positional"),
            ((3, 4, 5), TypeError, "one spec for each input; a shape is a text: '3, 4, 5'"),
        ],
    )
    def test_what_is_no_spec(self, specs, error, words, tmp_path):
        def fun(x, tree=None):
            return x

        with pytest.raises(error, match=words):
            export(fun, None, specs, tmp_path / "model")

    def test_static_arguments(self, tmp_path):
        fun = jax.jit(lambda p, x, n, *, m: p * x * n * m, static_argnames=("n", "m"))
        words = (
            r"m, n of <lambda> is static in jax.jit.* functools.partial\(<lambda>, m=..., n=...\)"
        )
        with pytest.raises(ValueError, match=words):
            export(fun, 1.0, {"x": "3", "n": "", "m": ""}, tmp_path / "model")
        export(functools.partial(fun, n=2, m=3), 1.0, {"x": "3"}, tmp_path / "model")

    def test_dimensions_of_two_scopes(self, tmp_path):
        specs = tuple(
            jax.ShapeDtypeStruct(jax.export.symbolic_shape(name), np.float32) for name in "ab"
        )
        with pytest.raises(ValueError, match="the shape of y has dimensions of another"):
            export(lambda x, y: x, None, specs, tmp_path / "model")


class TestVerification:
    """What is written wrong is found, whatever is wrong with it."""

    @pytest.fixture
    def broken(self, monkeypatch):
        """Has the engine give what a function makes of its results."""

        def plant(fault):
            load = formats.litert.load

            def loaded(target, job):
                run = load(target, job)
                return lambda signature, arrays: fault(run(signature, arrays))

            monkeypatch.setattr(formats.litert, "load", loaded)

        return plant

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (lambda r: {"y": r["y"] + 1e-2}, "JAX's largest element, is .* tolerance is 0.0001 "),
            (lambda r: {"y": r["y"] * np.nan}, "is inf"),
            (lambda r: {"y": r["y"][:1]}, r"as float32\[1, 3\], and JAX as float32\[2, 3\]"),
            (lambda r: {"y": r["y"].astype(np.float64)}, r"as float64\[2, 3\], and JAX"),
            (lambda r: {"z": r["y"]}, r"has no output 'y' \(result\['y'\]\), but z"),
            (lambda r: 1 / 0, "does not run .* ZeroDivisionError"),
        ],
    )
    def test_faults(self, fault, words, broken, tmp_path):
        broken(fault)
        with pytest.raises(jax2tf.VerificationError, match=words) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite")
        text = str(caught.value)
        assert "signature 'serving_default', random inputs, b=2" in text
        assert "What to do" in text
        assert caught.value.signature == "serving_default"
        assert left(tmp_path) == []

    def test_a_file_that_does_not_load(self, monkeypatch, tmp_path):
        def load(target, job):
            raise RuntimeError("no such op")

        monkeypatch.setattr(formats.litert, "load", load)
        words = "'litert' does not load: RuntimeError: no such op. What to do: .* verify=False"
        with pytest.raises(jax2tf.VerificationError, match=words) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite")
        assert caught.value.signature is None
        assert left(tmp_path) == []

    def test_the_error_has_the_numbers(self, broken, tmp_path):
        broken(lambda r: {"y": r["y"] + 1e-2})
        with pytest.raises(jax2tf.VerificationError) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite", tolerance=1e-3)
        assert (caught.value.output, caught.value.tolerance) == ("y", 1e-3)
        assert 1e-3 < caught.value.deviation < 1e-1

    def test_it_can_be_left_out_or_loosened(self, broken, tmp_path):
        broken(lambda r: {"y": r["y"] + 1e-2})
        path = tmp_path / "model.tflite"
        result = export(mlp, PARAMS, "b, 4", path, verify=False)
        assert (result.differences, result.verified) == ({}, ())
        assert "not run (verify=False)" in str(result)
        result = export(mlp, PARAMS, "b, 4", path, tolerance=0.1, overwrite=True)
        assert result.differences["serving_default"]["y"] == pytest.approx(1e-2, rel=1e-2)

    def test_a_fault_in_a_larger_size_alone(self, broken, tmp_path):
        broken(lambda r: {"y": r["y"] * (1 if len(r["y"]) == 2 else 2)})
        with pytest.raises(jax2tf.VerificationError, match="b=3"):
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite")

    def test_given_inputs(self, tmp_path):
        def lookup(table, i):
            return table[i]

        table = np.arange(50.0, dtype=np.float32)
        result = export(lookup, table, "n:int32", tmp_path / "model", verify=[np.array([7, 40])])
        assert result.verified == ("serving_default: given input 0",)
        for verify, words in (
            ([np.ones((2, 2))], r"verify should fit i: int32\[n\] for i, got shape \(2, 2\)"),
            ([(np.ones(2), np.ones(2))], "verify for 'serving_default' should have the structure"),
            ([], "verify has no inputs"),
        ):
            with pytest.raises(ValueError, match=words):
                export(lookup, table, "n:int32", tmp_path / "other", verify=verify)
        with pytest.raises(TypeError, match=r"verify should be a list of inputs, .* got ndarray"):
            export(lookup, table, "n:int32", tmp_path / "other", verify=np.array([7, 40]))

    def test_integers_are_equal(self, broken, tmp_path):
        broken(lambda r: {"output": r["output"] + (np.arange(1000) == 3)})
        with pytest.raises(jax2tf.VerificationError, match=r"share of elements .* is 0\.001, and"):
            export(lambda x: x + 1, None, "1000:int32", tmp_path / "model.tflite")

    def test_a_function_that_does_not_run_in_jax_is_not_converted(self, tmp_path, monkeypatch):
        monkeypatch.setattr(formats.litert, "write", None)
        with pytest.raises(TypeError, match="dot_general") as error:
            export(lambda w, x: x @ w["v"], {"v": X}, "b, 3", tmp_path / "model.tflite")
        (note,) = (n for n in error.value.__notes__ if "jax2tf" in n)
        assert "random inputs, b=2: w['v']: float32[5, 4], x: float32[2, 3]. Inputs" in note


class TestMeasures:
    @pytest.mark.parametrize(
        ("dtypes", "expected"),
        [
            ([np.float32], 1e-4),
            ([np.float64], 1e-9),
            ([np.float64, np.float32, np.int32], 1e-4),
            ([np.float32, np.float16], 1e-2),
            ([jnp.bfloat16, np.float16], 5e-2),
            ([np.complex64], 1e-4),
            ([jnp.float8_e4m3fn], 0.3),
        ],
    )
    def test_tolerances(self, dtypes, expected):
        assert measures.tolerance_of(Precision.FULL, dtypes, np.float32) == expected
        assert measures.tolerance_of(Precision.FULL, dtypes, np.int32) == 0
        half = measures.tolerance_of(Precision.FLOAT16_WEIGHTS, dtypes, np.int32)
        assert half == max(expected, 1e-2)
        assert measures.tolerance_of(Precision.INTEGER, dtypes, np.float32) == 0.2
        assert measures.tolerance_of(Precision.INTEGER_WEIGHTS, dtypes, np.float32) == 0.1

    @pytest.mark.parametrize(
        ("actual", "expected", "difference", "full", "quantised"),
        [
            ([1.0, 2.0], [1.0, 2.0], 0, 0, 0),
            ([1.0, 5.0], [1.0, 4.0], 1, 0.25, np.sqrt(0.5 / 8.5)),
            ([1e-9], [0.0], 1e-9, 1e-9, 1e-9),
            ([np.nan, 1], [np.nan, 1], 0, 0, 0),
            ([np.nan, 1], [1, 1], np.inf, np.inf, np.inf),
            ([np.inf, 1], [-np.inf, 1], np.inf, np.inf, np.inf),
            ([np.inf, 1.5], [np.inf, 1], 0.5, 0.5, 0.5),
            ([], [], 0, 0, 0),
        ],
    )
    def test_floats(self, actual, expected, difference, full, quantised):
        a, e = np.array(actual, np.float64), np.array(expected, np.float64)
        assert measures.largest_difference(a, e) == pytest.approx(difference)
        assert measures.deviation(a, e, Precision.FULL) == pytest.approx(full)
        assert measures.deviation(a, e, Precision.INTEGER) == pytest.approx(quantised)

    def test_integers(self):
        a = np.array([2**62, 1, 2, 3])
        assert measures.largest_difference(a + np.eye(4, dtype=int)[0], a) == 1
        assert measures.deviation(a + np.eye(4, dtype=int)[0], a, Precision.FULL) == 0.25
        assert measures.largest_difference(a - [0, 0, 0, 5], a) == 5
        booleans = np.array([True, False])
        assert measures.deviation(booleans, ~booleans, Precision.FULL) == 1

    def test_complex(self):
        a = np.array([1 + 1j, 2])
        assert measures.largest_difference(a, a + 3j) == 3


class TestThePath:
    def test_an_existing_path(self, tmp_path):
        for name in ("model", "model.tflite"):
            path = tmp_path / name
            export(mlp, PARAMS, "b, 4", path, verify=False)
            with pytest.raises(FileExistsError, match="overwrite=True"):
                export(lambda x: x, None, "2", path)
            result = export(lambda x: x * 2, None, "2", path, overwrite=True)
            assert result.signatures["serving_default"] == {"x": "float32[2]"}
        assert left(tmp_path) == ["model", "model.tflite"]

    @pytest.mark.parametrize("name", ["model", "model.tflite"])
    def test_what_stands_there_stays_where_it_fails(self, name, tmp_path, monkeypatch):
        path = tmp_path / name
        export(mlp, PARAMS, "b, 4", path, verify=False)
        before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
        with pytest.raises(jax2tf.VerificationError):
            export(mlp, PARAMS, "b, 4", path, overwrite=True, tolerance=-1)
        rename = os.rename

        def failing(source, target):
            if target == path and source.name == name:
                raise OSError("the disk is full")
            rename(source, target)

        monkeypatch.setattr(os, "rename", failing)
        with pytest.raises(OSError, match="disk is full"):
            export(mlp, PARAMS, "b, 4", path, overwrite=True)
        assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before

    def test_several_files_are_put_together_or_not_at_all(self, tmp_path, monkeypatch):
        written = [tmp_path / "new" / n for n in ("m.bin", "m.xml")]
        targets = [tmp_path / n for n in ("m.bin", "m.xml")]
        (tmp_path / "new").mkdir()
        for file in (*written, *targets):
            file.write_text(str(file.parent.name))
        rename = os.rename

        def failing(source, target):
            if source == written[1]:
                raise OSError("full")
            rename(source, target)

        monkeypatch.setattr(os, "rename", failing)
        with pytest.raises(OSError, match="full"):
            placing.put(written, targets, overwrite=True)
        assert {t.read_text() for t in targets} == {tmp_path.name}

    def test_it_is_whole_from_the_first_moment(self, tmp_path):
        """A reader that looks for the file all the time never sees a part of it."""
        path = tmp_path / "model.tflite"
        sizes, done = set(), threading.Event()

        def watch():
            while not done.is_set():
                if path.exists():
                    sizes.add(path.stat().st_size)

        thread = threading.Thread(target=watch)
        thread.start()
        result = export(mlp, PARAMS, "b, 4", path)
        done.set()
        thread.join()
        assert sizes <= {result.size}

    def test_folders_are_made(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "a/b/model.tflite", verify=False)
        assert left(tmp_path / "a/b") == ["model.tflite"]
        with pytest.raises(jax2tf.ExportError, match=r"model\.tflite should be a folder"):
            export(mlp, PARAMS, "b, 4", tmp_path / "a/b/model.tflite/inner")

    @pytest.mark.parametrize("name", ["model.h5", "model.pb", "model.v2"])
    def test_suffixes_that_say_nothing(self, name, tmp_path):
        with pytest.raises(ValueError, match=r"no format has the suffix .*\.tflite: litert"):
            export(mlp, PARAMS, "b, 4", tmp_path / name)
        result = export(mlp, PARAMS, "b, 4", tmp_path / name, format="savedmodel", verify=False)
        assert result.format == "savedmodel"

    def test_formats_that_do_not_exist(self, tmp_path):
        with pytest.raises(ValueError, match=r"one of savedmodel, litert, .* got 'coreml'"):
            export(mlp, PARAMS, "b, 4", tmp_path / "model", format="coreml")


class TestOptions:
    @pytest.mark.parametrize(
        ("name", "options", "error", "words"),
        [
            (
                "m.tflite",
                {"opset": 17},
                TypeError,
                "no option 'opset'; it is one of onnx",
            ),
            ("m", {"quantise": "int8"}, TypeError, "has no option 'quantise'. Its options are tra"),
            ("m.tflite", {"quantize": "int2"}, ValueError, "one of None, 'dynamic', .*got 'int2'"),
            ("m.tflite", {"quantize": "int8"}, ValueError, "needs representative_data"),
            (
                "m.tflite",
                {"integer_io": True},
                ValueError,
                "'integer_io' belongs to quan",
            ),
            ("m.tflite", {"representative_data": [1]}, ValueError, "belongs to quantize='int8'"),
            ("m.onnx", {"opset": 99}, ValueError, "'opset' of the format 'onnx' should be one"),
            ("m.xml", {"compress_to_fp16": 3}, ValueError, "should be one of False, True, got 3"),
            (
                "m.tfjs",
                {"quantize": "int8"},
                ValueError,
                "'uint16', 'uint8', got 'int8'",
            ),
        ],
    )
    def test_unknown_ones(self, name, options, error, words, tmp_path):
        with pytest.raises(error, match=words):
            export(mlp, PARAMS, "b, 4", tmp_path / name, **options)

    def test_none_is_the_default(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "m.tflite", quantize=None, representative_data=None)

    def test_representative_data_that_does_not_fit(self, tmp_path):
        for data, words in (
            ([], "has no inputs"),
            ([np.ones(3)], "_data should fit x: float32"),
        ):
            with pytest.raises(ValueError, match=words):
                export(
                    *(mlp, PARAMS, "b, 4", tmp_path / "m.tflite"),
                    quantize="int8",
                    representative_data=data,
                )

    @pytest.mark.parametrize(
        ("name", "package", "words"),
        [
            ("m.onnx", "tf2onnx", "'onnx' needs the package tf2onnx.*extra `consumers`"),
            ("m.xml", "openvino", "needs the package openvino.*extra `consumers`"),
            ("m.tfjs", "tensorflowjs", "pip install --no-deps tensorflowjs"),
        ],
    )
    def test_packages_that_are_missing(self, name, package, words, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=words) as caught:
            export("not even a function", PARAMS, "b, 4", tmp_path / name)
        assert isinstance(caught.value, jax2tf.MissingPackageError)
        assert isinstance(caught.value, jax2tf.ConversionError)
        assert caught.value.name == package

    def test_engines_that_are_missing(self, tmp_path, monkeypatch):
        for package in ("tf2onnx", "onnx"):
            monkeypatch.setitem(sys.modules, package, jax2tf)
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(jax2tf.MissingPackageError, match=r"trying .* verify=False"):
            export(mlp, PARAMS, "b, 4", tmp_path / "m.onnx")

    @pytest.mark.parametrize("fun", [None, "f", 3])
    def test_what_is_no_function(self, fun, tmp_path):
        with pytest.raises(TypeError, match=f"fun should be a function, .* {type(fun).__name__}"):
            export(fun, PARAMS, "b, 4", tmp_path / "model")

    def test_large_parameters_and_onnx(self):
        with pytest.raises(jax2tf.ExportError, match=r"have 3\.0 GB, and a file of ONNX"):
            formats.onnx.refuse_large(3 * 2**30)


class TestFunctions:
    def test_methods_jitted_functions_and_callable_objects(self, tmp_path):
        class Model:
            def __call__(self, params, x):
                return mlp(params, x)

            def apply(self, params, x):
                return mlp(params, x)

        for i, fun in enumerate((Model(), Model().apply, jax.jit(mlp))):
            result = export(fun, PARAMS, "b, 4", tmp_path / f"{i}.tflite")
            assert list(result.differences["serving_default"]) == ["y"]

    def test_leaves_that_are_no_arrays(self, tmp_path):
        params = {"w": np.ones((4, 2), np.float32), "activation": jax.nn.relu, "scale": 2.0}
        export(
            lambda p, x: p["activation"](x @ p["w"]) * p["scale"],
            params,
            "b, 4",
            tmp_path / "model",
        )
        assert sorted(tf.saved_model.load(str(tmp_path / "model")).parameters) == ["scale", "w"]

    def test_typed_keys_and_other_dtypes(self, tmp_path):
        params = {"key": jax.random.key(3), "h": jnp.ones(3, jnp.bfloat16), "i": np.arange(3)}

        def fun(p, x):
            noise = jax.random.uniform(p["key"], (3,))
            return {"y": x + noise * p["h"] + p["i"], "key": jax.random.split(p["key"])}

        result = export(fun, params, "3", tmp_path / "model")
        assert set(result.differences["serving_default"]) == {"y", "key"}

    def test_sixty_four_bits(self, tmp_path):
        with jax.enable_x64(True):
            result = export(lambda p, x: x * p, np.float64(2), np.ones(3), tmp_path / "model")
        assert result.signatures["serving_default"] == {"x": "float64[3]"}
        assert result.differences["serving_default"]["output"] == 0

    def test_parameters_are_not_changed(self, tmp_path):
        params = {"w": np.ones((4, 2), np.float32)}
        export(lambda p, x: x @ p["w"], params, "b, 4", tmp_path / "model")
        restored = tf.saved_model.load(str(tmp_path / "model"))
        restored.parameters["w"].assign(tf.zeros([4, 2]))
        assert params["w"].min() == 1


def test_progress(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    jax2tf.export(mlp, PARAMS, "b, 4", tmp_path / "a.tflite")
    said = capsys.readouterr().err
    assert "jax2tf.export a.tflite: converting to litert ..." in said
    assert "jax2tf.export a.tflite: running in litert ..." in said
    jax2tf.export(mlp, PARAMS, "b, 4", tmp_path / "b.tflite", progress=False)
    assert "b.tflite" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_memory(kind, tmp_path):
    """Beside the parameters of the caller, a SavedModel takes at most 1.5 times as much."""
    program = textwrap.dedent("""
        import resource, sys
        import jax, jax.numpy as jnp, numpy as np
        import jax2tf

        def model(params, x):
            for w in params:
                x = jnp.tanh(x @ w)
            return x

        def exported(n, path):
            library = jnp if sys.argv[1] == "jax" else np
            params = [library.full((n, n), i / n, np.float32) for i in range(8)]
            jax.block_until_ready(params)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            jax2tf.export(model, params, f"b, {n}", path, progress=False)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return (after - before) * 1024 / (8 * 4 * n * n)

        exported(16, sys.argv[2] + "/small")
        print(exported(2048, sys.argv[2] + "/large"))
        """)
    done = subprocess.run(
        [sys.executable, "-c", program, kind, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.split()[-1]) < 1.5


@pytest.mark.parametrize("broken", [types.ModuleType("onnx"), None])
def test_what_stands_in_a_package_s_place_is_no_package(broken, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", broken)
    with pytest.raises(jax2tf.MissingPackageError, match="needs the package onnx"):
        packages.require(["onnx"], "writing it")


def test_inputs_of_onnx_get_their_names_in_branches_too():
    def node(*inputs, attributes=()):
        return types.SimpleNamespace(input=list(inputs), attribute=attributes)

    def graph(*nodes, names=()):
        inputs = [types.SimpleNamespace(name=name) for name in names]
        return types.SimpleNamespace(node=nodes, input=inputs)

    branch, case = (graph(node(name, "c")) for name in ("image", "scale"))
    attribute = types.SimpleNamespace(g=branch, graphs=[case])
    whole = graph(node("image", "b", attributes=[attribute]), names=("image", "scale"))
    inputs = [types.SimpleNamespace(name=name) for name in ("Image", "Scale")]
    formats.onnx._rename_inputs(whole, types.SimpleNamespace(inputs=inputs))
    assert [value.name for value in whole.input] == ["Image", "Scale"]
    assert [g.node[0].input for g in (whole, branch, case)] == [
        ["Image", "b"],
        ["Image", "c"],
        ["Scale", "c"],
    ]


def test_what_node_js_is_asked_and_answers(tmp_path, monkeypatch):
    """A program in Node.js's place doubles what it is given, and refuses what has no elements."""
    node = tmp_path / "node"
    node.write_text(
        textwrap.dedent(f"""\
        #!{sys.executable}
        import base64, json, struct, sys
        request = json.load(sys.stdin)
        (x,) = request["inputs"].values()
        content = base64.b64decode(x["content"])
        if not content:
            sys.exit("nothing is there: \u00fc")
        numbers = struct.unpack("<6f", content)
        x["content"] = base64.b64encode(struct.pack("<6f", *(2 * n for n in numbers))).decode()
        print(json.dumps({{name: x for name in request["outputs"]}}))
        """)
    )
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    signature = types.SimpleNamespace(name="serving_default")
    job = types.SimpleNamespace(signatures=[signature], outputs={"serving_default": ["y"]})
    run = formats.tfjs.load(tmp_path, job)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    answer = run("serving_default", {"x": x})
    np.testing.assert_array_equal(answer["y"], 2 * x, strict=True)
    with pytest.raises(jax2tf.ExportError, match=r"TensorFlow\.js: nothing is there: \u00fc$"):
        run("serving_default", {"x": x[:0]})
