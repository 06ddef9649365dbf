"""What `jax2tf.export` verifies, and how a difference to JAX is measured."""

from __future__ import annotations

import time
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jax2tf
from jax2tf._src.export import formats, progress, tolerances, verification
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.export.tolerances import Precision
from tests.impl.export_programs import PARAMS, X, export, left, mlp


@pytest.fixture(scope="module")
def file_of_mlp(tmp_path_factory):
    """The model as a LiteRT file, and the number of its ops."""
    path = tmp_path_factory.mktemp("written") / "model.tflite"
    result = export(mlp, PARAMS, "b, 4", path, verify=False)
    return path.read_bytes(), result.ops


@pytest.fixture
def is_written(file_of_mlp, monkeypatch):
    """The writer of LiteRT files has the model's bytes at hand: its converter takes seconds.

    The cut programs by which an export looks for the line of a fault are converted as ever.
    """
    content, ops = file_of_mlp
    converting = formats.litert.write

    def write(job):
        if not job.metadata:
            return converting(job)
        # It notes the names of the outputs, which `load` needs.
        job.program()
        job.target.write_bytes(content)
        return ops

    monkeypatch.setattr(formats.litert, "write", write)


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
    @pytest.mark.usefixtures("is_written")
    def test_faults(self, fault, words, broken, tmp_path):
        broken(fault)
        with pytest.raises(jax2tf.VerificationError, match=words) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite")
        text = str(caught.value)
        assert "signature 'serving_default', random inputs, b=2" in text
        assert "What to do" in text
        assert caught.value.signature == "serving_default"
        assert left(tmp_path) == []

    @pytest.mark.usefixtures("is_written")
    def test_a_file_that_does_not_load(self, monkeypatch, tmp_path):
        def load(target, job):
            raise RuntimeError("no such op")

        monkeypatch.setattr(formats.litert, "load", load)
        words = "'litert' does not load: RuntimeError: no such op. .* What to do: .* verify=False"
        with pytest.raises(jax2tf.VerificationError, match=words) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite")
        assert caught.value.signature is None
        assert left(tmp_path) == []

    @pytest.mark.usefixtures("is_written")
    def test_the_error_has_the_numbers(self, broken, tmp_path):
        broken(lambda r: {"y": r["y"] + 1e-2})
        with pytest.raises(jax2tf.VerificationError) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / "model.tflite", tolerance=1e-3)
        assert (caught.value.output, caught.value.tolerance) == ("y", 1e-3)
        assert 1e-3 < caught.value.deviation < 1e-1

    @pytest.mark.usefixtures("is_written")
    def test_it_can_be_left_out_or_loosened(self, broken, tmp_path):
        broken(lambda r: {"y": r["y"] + 1e-2})
        path = tmp_path / "model.tflite"
        result = export(mlp, PARAMS, "b, 4", path, verify=False)
        assert (result.differences, result.verified) == ({}, ())
        assert "not run (verify=False)" in str(result)
        result = export(mlp, PARAMS, "b, 4", path, tolerance=0.1, overwrite=True)
        assert result.differences["serving_default"]["y"] == pytest.approx(1e-2, rel=1e-2)

    @pytest.mark.usefixtures("is_written")
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
            (
                [(np.ones(2), np.ones(2))],
                r"verify has 2 values, the function takes 'i'.*give a tuple, \(i,\)",
            ),
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

    def test_a_function_that_the_device_does_not_run(self, tmp_path):
        def product(x):
            return lax.dot(x, x, precision=lax.DotAlgorithmPreset.F16_F16_F32)

        path = tmp_path / "model.onnx"
        with pytest.raises(ValueError, match="F16_F16_F32") as error:
            export(product, None, "3, 3:float16", path)
        (note,) = (n for n in error.value.__notes__ if "jax2tf" in n)
        assert "verify=False writes the file without running JAX" in note
        export(product, None, "3, 3:float16", path, verify=False)
        assert path.exists()


class TestImpureFunctions:
    """Functions with other values at each trace are told from wrong files."""

    @pytest.mark.parametrize("widen_bfloat16", [False, True])
    def test_other_numbers_at_each_trace(self, widen_bfloat16, tmp_path):
        rng = np.random.default_rng(0)

        def layer(scale, x):
            return {"y": scale * x @ rng.normal(size=(4, 3)).astype(np.float32)}

        words = r"two traces differ in output 'y' \(result\['y'\]\), .* parameters or inputs;"
        with pytest.raises(jax2tf.VerificationError, match=words) as caught:
            export(
                *(layer, np.float32(2), "b, 4", tmp_path / "model.onnx"),
                widen_bfloat16=widen_bfloat16,
            )
        assert (caught.value.signature, caught.value.output) == ("serving_default", "y")
        assert "otherwise than JAX" in str(caught.value.__cause__)
        assert left(tmp_path) == []

    def test_the_remedy(self, tmp_path):
        def layer(weights, x):
            return x @ weights

        weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        assert export(layer, weights, "b, 4", tmp_path / "model.onnx").verified


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
        assert tolerances.tolerance_of(Precision.FULL, dtypes, np.float32) == expected
        assert tolerances.tolerance_of(Precision.FULL, dtypes, np.int32) == 0
        half = tolerances.tolerance_of(Precision.FLOAT16_WEIGHTS, dtypes, np.int32)
        assert half == max(expected, 1e-2)
        assert tolerances.tolerance_of(Precision.INTEGER, dtypes, np.float32) == 0.2
        assert tolerances.tolerance_of(Precision.INTEGER_WEIGHTS, dtypes, np.float32) == 0.1

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
        assert tolerances.largest_difference(a, e) == pytest.approx(difference)
        assert tolerances.deviation(a, e, Precision.FULL) == pytest.approx(full)
        assert tolerances.deviation(a, e, Precision.INTEGER) == pytest.approx(quantised)

    def test_integers(self):
        a = np.array([2**62, 1, 2, 3])
        assert tolerances.largest_difference(a + np.eye(4, dtype=int)[0], a) == 1
        assert tolerances.deviation(a + np.eye(4, dtype=int)[0], a, Precision.FULL) == 0.25
        assert tolerances.largest_difference(a - [0, 0, 0, 5], a) == 5
        booleans = np.array([True, False])
        assert tolerances.deviation(booleans, ~booleans, Precision.FULL) == 1

    def test_complex(self):
        a = np.array([1 + 1j, 2])
        assert tolerances.largest_difference(a, a + 3j) == 3


def test_large_inputs_are_drawn_in_part_and_told_of(tmp_path, capsys, monkeypatch):
    def slow_sum(x):
        time.sleep(0.2)  # The trace of JAX takes longer than a step that is not told of.
        return x.sum(axis=1)

    monkeypatch.setattr(progress, "_SECONDS", 0.05)
    monkeypatch.setattr(verification, "_MAX_DRAWN", 101)
    monkeypatch.setattr(verification, "_LARGE_BYTES", 1_000_000)
    result = export(slow_sum, None, "500, 600", tmp_path / "m", tolerance=1e-3, progress=True)
    told = capsys.readouterr().err
    assert "running JAX with 0.0 GB of random inputs (verify=False leaves this out)" in told
    assert result.verified == ("serving_default: random inputs",)
    (signature,) = signatures_of(slow_sum, None, "500, 600")
    shapes = verification.random_shapes(signature)
    ((_, (array,)),) = verification.random_inputs(signature, shapes)
    assert array.shape == (500, 600)
    assert array.dtype == np.float32
    # Its rows are parts of the same numbers, and no two that follow each other are alike.
    np.testing.assert_array_equal(array.ravel()[:101], array.ravel()[101:202])
    assert not (array[1:] == array[:-1]).all(axis=1).any()
    export(slow_sum, None, "5, 6", tmp_path / "small", progress=True)
    assert "GB" not in capsys.readouterr().err


class TestSeveralSignatures:
    """Each signature has inputs, and a tolerance, of its own."""

    SIGNATURES: ClassVar = {"double": (lambda x: 2 * x, "3"), "triple": (lambda x: 3 * x, "3")}

    @pytest.mark.parametrize(
        ("verify", "run"),
        [
            ({"double": [np.ones(3)], "triple": False}, ["double: given input 0"]),
            ({"double": True, "triple": False}, ["double: random inputs"]),
            (
                {"double": [np.ones(3)], "triple": True},
                ["double: given input 0", "triple: random inputs"],
            ),
            ({"double": False, "triple": False}, []),
        ],
    )
    def test_what_runs(self, verify, run, tmp_path):
        result = export(self.SIGNATURES, None, None, tmp_path / "model", verify=verify)
        assert [*result.verified] == run

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"verify": {"double": True}}, "no inputs for 'triple'.*False for a signature that"),
            ({"verify": {"double": True, "tripel": False}}, "verify has an entry for 'tripel'"),
            ({"tolerance": {"tripel": 0.1}}, "tolerance has an entry for 'tripel'"),
            ({"tolerance": {"triple": -1.0}}, r"tolerance\['triple'\] should be a number that"),
        ],
    )
    def test_what_is_refused(self, options, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            export(self.SIGNATURES, None, None, tmp_path / "model", **options)
        assert not (tmp_path / "model").exists()

    def test_a_tolerance_is_of_its_signature(self, tmp_path):
        w = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
        signatures = {name: (lambda w, x: x @ w, "3, 64") for name in ("one", "other")}
        options = {"tolerance": {"one": 1.0, "other": 0.0}, "locate": False, "quantize": "float16"}
        with pytest.raises(jax2tf.VerificationError, match="signature 'other'"):
            export(signatures, w, None, tmp_path / "model.tflite", **options)
