"""What `jax2tf.export` is asked: specs of the inputs, and the options of each format."""

from __future__ import annotations

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.impl.export_programs import PARAMS, export, mlp


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

    def test_an_open_size_needs_a_name(self, tmp_path):
        with pytest.raises(ValueError, match=r"'\?' shows an open size .*give it a name"):
            self.inputs(lambda x: x, "?, 4", tmp_path)

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
        assert result.verified[0].endswith("b=8, s=3")
        assert result.verified[1].endswith("b=12, s=4")

    def test_a_constraint_of_one_of_two_signatures(self, tmp_path):
        result = export(
            {
                "prefill": (lambda params, x: x[:, -4:].sum() + params, "b, s"),
                "decode": (lambda params, x: x * params, "b, 1"),
                "known": (lambda params, x: x - params, "3"),
            },
            np.float32(2),
            None,
            tmp_path / "model",
            polymorphic_constraints=["s >= 4", "s <= 512", "b <= 8"],
        )
        assert result.verified == (
            "prefill: random inputs, b=2, s=5",
            "prefill: random inputs, b=3, s=6",
            "decode: random inputs, b=2",
            "decode: random inputs, b=3",
            "known: random inputs",
        )
        restored = tf.saved_model.load(str(tmp_path / "model"))
        with pytest.raises(tf.errors.InvalidArgumentError, match="constraint s >= 4 does not hold"):
            restored.prefill(tf.ones([2, 3]))
        assert restored.decode(tf.ones([2, 1]))["output"].shape == (2, 1)

    def test_a_constraint_of_the_scope_of_one_of_two_signatures(self, tmp_path):
        b, s = jax.export.symbolic_shape("b, s", constraints=["s >= 4"])
        result = export(
            {
                "prefill": (
                    lambda _, x: x[:, :4],
                    jax.ShapeDtypeStruct((b, s), np.float32),
                ),
                "decode": (lambda _, x: x, jax.ShapeDtypeStruct((b, 1), np.float32)),
            },
            np.float32(0),
            None,
            tmp_path / "model",
            polymorphic_constraints=["b >= 5"],
        )
        assert result.verified[0].endswith("b=5, s=6")
        assert result.verified[2].endswith("b=5")

    def test_a_dimension_that_stands_for_another(self, tmp_path):
        result = export(
            lambda x, y: x.reshape(2, -1) + y,
            None,
            ("a", "b"),
            tmp_path / "model",
            polymorphic_constraints=["a == 2*b", "mod(b, 3) == 0"],
        )
        assert result.verified[0].endswith("a=6, b=3")
        result = export(
            lambda x: x.reshape(2, -1),
            None,
            "a",
            tmp_path / "other",
            polymorphic_constraints=["a == 2*b"],
        )
        assert result.verified[1].endswith("a=6, b=3")

    @pytest.mark.parametrize("verify", [True, [np.ones(3)], False])
    def test_a_constraint_of_no_signature(self, verify, tmp_path):
        words = "has 's <= 4', and the specs of no signature .* dimensions s: 'serving_default' has"
        with pytest.raises(ValueError, match=words):
            export(
                lambda x: x,
                None,
                "b",
                tmp_path / "model",
                polymorphic_constraints=["s <= 4"],
                verify=verify,
            )
        assert not list(tmp_path.iterdir())

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

    @pytest.mark.parametrize(
        ("constraints", "sizes"),
        [
            (["n >= 1600"], ["b=2, n=1601", "b=3, n=1602"]),
            (["n >= 1600", "mod(n, 256) == 0"], ["b=2, n=2048", "b=3, n=2304"]),
            (["b + n >= 5000"], ["b=1024, n=4999", "b=4999, n=5000"]),
            (["n == 3*b", "b >= 2000"], ["b=2000, n=6000", "b=2001, n=6003"]),
            (["n == 1600"], ["b=2, n=1600", "b=3, n=1600"]),
        ],
    )
    def test_sizes_beside_the_numbers_of_constraints(self, constraints, sizes, tmp_path):
        result = export(
            lambda x: x,
            None,
            "b, n",
            tmp_path / "model",
            polymorphic_constraints=constraints,
        )
        assert [text.partition("inputs, ")[2] for text in result.verified] == sizes

    def test_no_two_sizes(self, tmp_path):
        with pytest.raises(
            jax2tf.ExportError, match=r"no two sizes .* a \+ b <= 77777.* allow.*verify="
        ):
            export(
                lambda x, y: (x, y),
                None,
                ("a", "b"),
                tmp_path / "model",
                polymorphic_constraints=[
                    "a + b <= 77777",
                    "a + b >= 77777",
                    "a >= 9000",
                    "a <= 60000",
                ],
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
            ("m.onnx", "onnx_ir", "'onnx' needs the package onnx_ir.*extra `onnx`"),
            ("m.xml", "openvino", "needs the package openvino.*extra `openvino`"),
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
        for package in ("onnx_ir", "onnx"):
            monkeypatch.setitem(sys.modules, package, jax2tf)
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(jax2tf.MissingPackageError, match=r"trying .* verify=False"):
            export(mlp, PARAMS, "b, 4", tmp_path / "m.onnx")

    @pytest.mark.parametrize("fun", [None, "f", 3])
    def test_what_is_no_function(self, fun, tmp_path):
        with pytest.raises(TypeError, match=f"fun should be a function, .* {type(fun).__name__}"):
            export(fun, PARAMS, "b, 4", tmp_path / "model")
