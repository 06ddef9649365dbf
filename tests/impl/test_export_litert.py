"""Files of LiteRT: weights, integers, bfloat16 in float32, several signatures."""

from __future__ import annotations

import json
import zipfile
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import compat
from jax2tf._src.export import formats
from tests.impl.export_programs import PARAMS, RNG, X, export, interpreter, left, mlp


class TestLiteRt:
    def test_a_batch_that_is_open(self, tmp_path):
        path = tmp_path / "model.tflite"
        result = export(mlp, PARAMS, "b, 4", path)
        assert (result.format, result.size) == ("litert", path.stat().st_size)
        assert 2 <= result.ops <= 10
        (y,) = interpreter(path).get_signature_runner()(x=X).values()
        np.testing.assert_allclose(y, jax.jit(mlp)(PARAMS, X)["y"], rtol=1e-5, atol=1e-6)
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == ["jax2tf.json"]
            said = json.loads(archive.read("jax2tf.json"))
        assert float(said["largest_difference"]) >= result.differences["serving_default"]["y"]

    def test_metadata(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite", verify=False)
        with zipfile.ZipFile(tmp_path / "model.tflite") as archive:
            assert json.loads(archive.read("jax2tf.json"))["source"] == f"{mlp.__module__}:mlp"

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
        model = compat.libraries.litert_schema().Model.GetRootAs(content, 0)
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

    def test_products_inside_are_computed_in_float32(self, tmp_path):
        """No one has to ask for it where the file holds no array of bfloat16.

        Under jit XLA may leave out the rounding to bfloat16: the numbers are not held against it.
        """
        fun = lambda p, x: (x.astype(jnp.bfloat16) @ p.astype(jnp.bfloat16)).astype(x.dtype)  # noqa: E731
        weights = np.asarray(self.PARAMS["w"], np.float32)
        path = tmp_path / "m.tflite"
        export(fun, weights, "b, 16", path, verify=False)
        x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)
        runner = tf.lite.Interpreter(str(path)).get_signature_runner()
        (name,) = runner.get_input_details()
        (actual,) = runner(**{name: x}).values()
        np.testing.assert_allclose(actual, x @ weights, rtol=0.05, atol=0.05)

    def test_who_does_not_ask_for_it_is_told(self):
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

    @pytest.mark.parametrize(
        ("format", "name"), [("onnx", "m.onnx"), ("openvino", "m.xml"), ("tfjs", "m")]
    )
    def test_formats_of_one_function_refuse_them(self, format, name, tmp_path, monkeypatch):
        monkeypatch.setattr(formats, "check_packages", lambda *args, **kwargs: None)
        with pytest.raises(jax2tf.ExportError, match=rf"'{format}' holds one .*\(encode, decode\)"):
            export(self.SIGNATURES, self.SHARED, None, tmp_path / name, format=format)

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
