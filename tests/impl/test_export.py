"""`jax2tf.export`: SavedModels, the functions that it takes, and what is left at the path."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import compat
from jax2tf._src.export import formats, progress
from tests.impl.export_programs import PARAMS, RNG, X, export, left, mlp
from tf_substrates import swapping


def does_not_load(target, job):
    raise RuntimeError("no such op")


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
        said = json.loads((result.path / "assets.extra/jax2tf.json").read_text())
        assert float(said["largest_difference"]) >= result.differences["serving_default"]["y"]
        fingerprint = (result.path / "fingerprint.pb").read_bytes()
        assert compat.graphs.with_derived_identifier(fingerprint) == fingerprint
        text = str(result)
        for words in ("savedmodel", f"{result.ops} ops", "x: float32[b, 4]", "b=3", "y: largest"):
            assert words in text
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.ops = 0

    def test_metadata(self, tmp_path):
        export(mlp, PARAMS, "b, 4", tmp_path / "model", verify=False)
        text = (tmp_path / "model/assets.extra/jax2tf.json").read_text()
        said = json.loads(text)
        assert said.pop("line").endswith(f"export_programs.py:{mlp.__code__.co_firstlineno}")
        said.pop("commit", None)  # these files may be without their repository
        assert said == {
            "jax2tf": jax2tf.__version__,
            "jax": jax.__version__,
            "tensorflow": tf.__version__,
            "source": f"{mlp.__module__}:mlp",
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

        with pytest.warns(
            UserWarning, match=r"no gradient with respect to argument x: .*while_loop"
        ):
            assert export(halve, None, "3", tmp_path / "model").verified
        assert export(halve, None, "3", tmp_path / "plain", with_gradient=False).verified


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
        with monkeypatch.context() as patch:
            patch.setattr(formats.format_of(path, None).engine, "load", does_not_load)
            with pytest.raises(jax2tf.VerificationError):
                export(mlp, PARAMS, "b, 4", path, overwrite=True)
        put = swapping.put

        def failing(source, target):
            if target == path and source.name == name:
                raise OSError("the disk is full")
            put(source, target)

        monkeypatch.setattr(swapping, "put", failing)
        with pytest.raises(OSError, match="disk is full"):
            export(mlp, PARAMS, "b, 4", path, overwrite=True)
        assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before

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

    def test_folders_are_made(self, tmp_path, monkeypatch):
        export(mlp, PARAMS, "b, 4", tmp_path / "a/b/model.tflite", verify=False)
        assert left(tmp_path / "a/b") == ["model.tflite"]
        with pytest.raises(jax2tf.ExportError, match=r"model\.tflite should be a folder"):
            export(mlp, PARAMS, "b, 4", tmp_path / "a/b/model.tflite/inner")
        monkeypatch.setattr(formats.litert, "load", does_not_load)
        with pytest.raises(jax2tf.VerificationError, match="The path is left as it was"):
            export(mlp, PARAMS, "b, 4", tmp_path / "a/new/folder/model.tflite")
        assert left(tmp_path / "a") == ["b"]

    @pytest.mark.parametrize("name", ["model.h5", "model.pb", "model.v2"])
    def test_suffixes_that_say_nothing(self, name, tmp_path):
        with pytest.raises(ValueError, match=r"no format has the suffix .*\.tflite: litert"):
            export(mlp, PARAMS, "b, 4", tmp_path / name)
        result = export(mlp, PARAMS, "b, 4", tmp_path / name, format="savedmodel", verify=False)
        assert result.format == "savedmodel"

    @pytest.mark.parametrize("name", ["model", "model.bin", "model.v2"])
    def test_a_format_whose_engine_reads_one_suffix(self, name, tmp_path):
        with pytest.raises(ValueError, match=r"'openvino' should end in \.xml.*got .*\.xml'"):
            export(mlp, PARAMS, "b, 4", tmp_path / name, format="openvino")
        assert left(tmp_path) == []

    def test_formats_that_do_not_exist(self, tmp_path):
        with pytest.raises(ValueError, match=r"one of savedmodel, litert, .* got 'coreml'"):
            export(mlp, PARAMS, "b, 4", tmp_path / "model", format="coreml")


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
