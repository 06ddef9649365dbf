"""What `jax2tf.export` refuses: paths, options, specs, checkpoints, disks; and what it leaves."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import signal
import struct
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from tests.impl.export_programs import FILES, export
from tests.naming import shown

SUFFIXES = [pathlib.Path(file).suffix for file in FILES.values()]
W = {"w": np.ones([4, 3], np.float32)}


def model(params, x):
    return jnp.tanh(x @ params["w"])


def refused(call, *kinds):
    with pytest.raises(kinds or (TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, in which nothing may be left."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "here"
    left = [p for p in (tmp_path / "here").rglob("*") if p.name.startswith(".")]
    assert not left, "a folder beside the path is left"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *((path, TypeError) for path in (b"m.tflite", 3, None, 1.5, ["m"], object(), tf.ones(3))),
        *((path, ValueError) for path in ("", "a\0.tflite", pathlib.Path("a\0"), "a\udc80\ud800")),
    ],
    ids=shown,
)
def test_paths(path, kind, folder):
    text = refused(lambda: jax2tf.export(model, W, "b, 4", path, progress=False), kind)
    assert text.startswith("jax2tf.export: path should be")
    assert "'model.tflite'" in text
    assert not list(folder.iterdir())


def test_the_path_of_bytes_as_the_message_says(folder):
    text = refused(lambda: export(model, W, "b, 4", b"m"))
    assert "decode it with os.fsdecode" in text
    assert export(model, W, "b, 4", os.fsdecode(b"m")).format == "savedmodel"


@pytest.mark.parametrize(
    "value", [3, [1], {}, np.ones(3), tf.ones(3), b"litert", "LiteRT"], ids=shown
)
def test_formats(value, folder):
    text = refused(lambda: export(model, W, "b, 4", "m.tflite", format=value), ValueError)
    assert text.startswith("jax2tf.export: format should be one of savedmodel, litert, onnx")


@pytest.mark.parametrize("name", ["overwrite", "progress", "widen_bfloat16"])
@pytest.mark.parametrize("value", [1, "no", None, [True], np.ones(2), tf.ones(2)], ids=shown)
def test_switches(name, value, folder):
    options = {"progress": False, name: value}
    call = lambda: jax2tf.export(model, W, "b, 4", "m.tflite", **options)  # noqa: E731
    assert refused(call, TypeError).startswith(f"jax2tf.export: {name} should be True or False")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((v, TypeError) for v in ("1e-3", [1e-3], {}, np.ones(3), tf.ones([]), 1j, True, b"1")),
        *((v, ValueError) for v in (-1, -1e-9, float("nan"), np.float32("nan"), -np.inf)),
    ],
    ids=shown,
)
def test_tolerances(value, kind, folder):
    text = refused(lambda: export(model, W, "b, 4", "m.tflite", tolerance=value), kind)
    assert text.startswith("jax2tf.export: tolerance should be a number")
    assert "1e-3" in text
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "value", [1e-3, np.float32(1e-3), jnp.float32(1e-3), np.array(1e-3), 1, np.inf, None], ids=shown
)
def test_tolerances_that_are_taken(value, folder):
    assert export(model, W, "b, 4", "m", tolerance=value).differences


@pytest.mark.parametrize("value", [3, None, np.ones(3), tf.ones(3), object(), "b >= 1"], ids=shown)
def test_constraints(value, folder):
    text = refused(lambda: export(model, W, "b, 4", "m", polymorphic_constraints=value))
    assert text.startswith("jax2tf.export: polymorphic_constraints should be a sequence of texts")


@pytest.mark.parametrize(
    ("suffix", "name"),
    [
        *((".tflite", n) for n in ("quantize", "integer_io", "assume_finite")),
        *((".onnx", n) for n in ("opset", "quantize")),
        *((".xml", n) for n in ("compress_to_fp16", "quantize")),
        *(("", n) for n in ("with_gradient", "enable_xla", "saved_gradient_order", "trainable")),
    ],
)
@pytest.mark.parametrize("value", [-1, 1.0, "x", [1], {"a": 1}, np.ones(3), tf.ones(3)], ids=shown)
def test_options(suffix, name, value, folder):
    text = refused(lambda: export(model, W, "b, 4", f"m{suffix}", verify=False, **{name: value}))
    assert text.startswith("jax2tf.")
    assert name in text


@pytest.mark.parametrize(("name", "value"), [("integer_io", 0), ("assume_finite", 1)])
def test_a_number_in_the_place_of_a_bool(name, value, folder):
    text = refused(lambda: export(model, W, "b, 4", "m.tflite", **{name: value}), ValueError)
    assert f"{name!r} of the format 'litert' should be one of False, True" in text
    assert "opset" in refused(lambda: export(model, W, "b, 4", "m.onnx", opset=True))


# Specs that are none, with the exception and a piece of the message.
SPECS = {
    "variant": (tf.TensorSpec([], tf.variant), TypeError, "dtype variant"),
    "texts": (tf.TensorSpec([], tf.string), TypeError, "dtype string"),
    "resource": (tf.TensorSpec([], tf.resource), TypeError, "dtype resource"),
    "quantized": (tf.TensorSpec([2], tf.qint8), TypeError, "dtype qint8"),
    "ragged": (tf.RaggedTensorSpec([None, None]), TypeError, "row_lengths()"),
    "sparse": (tf.SparseTensorSpec([2, 4]), TypeError, "indices and values"),
    "a ragged tensor": (tf.ragged.constant([[1.0]]), TypeError, "row_lengths()"),
    "a sparse tensor": (tf.sparse.from_dense([[1.0]]), TypeError, "indices and values"),
    "a tensor of texts": (tf.constant("a"), TypeError, "no dtype string"),
    "array of texts": (np.array(["a"]), TypeError, "no dtype <U1"),
    "objects": (np.array([object()]), TypeError, "no dtype object"),
    "mask": (np.ma.array(np.ones(2)), TypeError, "mask"),
    "large": (10**40, OverflowError, "does not fit"),
    "optional": (tf.OptionalSpec(tf.TensorSpec([])), TypeError, "a text such as"),
    "bytes": (b"b, 4", TypeError, "a text such as"),
    "none": (object(), TypeError, "a text such as"),
    "no rank": (tf.TensorSpec(None), ValueError, "has no rank"),
    "float0": (jax.ShapeDtypeStruct((2,), jax.dtypes.float0), TypeError, "float0"),
    "negative shape": (jax.ShapeDtypeStruct((-2, 4), np.float32), ValueError, "-2"),
    "negative text": ("-1, 4", ValueError, "got the size -1"),
    "large text": ("99999999999999999999, 4", ValueError, "sizes from 0 to 2**63 - 1"),
    "placeholder": ("None, 4", ValueError, "name the dimensions that are open"),
    "float": ("b, 4:float", ValueError, "'float' is float64 in NumPy"),
    "int": ("b, 4:int", ValueError, "'int' is int64"),
    "double": ("b, 4:double", ValueError, "'double' is float64"),
    "complex": ("b, 4:complex", ValueError, "'complex' is complex128"),
    "order of bytes": ("b, 4:>f4", ValueError, "'>f4' is"),
    "text of texts": ("b, 4:str", ValueError, "a dtype by its own name"),
    "text of objects": ("b, 4:object", ValueError, "a dtype by its own name"),
    "no dtype": ("b, 4:", ValueError, "a dtype by its own name"),
    "two": ("b, 4:int8:float32", ValueError, "a dtype by its own name"),
    "zero byte": ("b\0, 4", ValueError, "b\\x00"),
    "parenthesis": ("((b, 4)", ValueError, "should be a shape"),
}


@pytest.mark.parametrize("kind", SPECS)
def test_specs(kind, folder):
    spec, error, words = SPECS[kind]
    specs = ({"a": [spec]},)
    call = lambda: export(lambda p, x: x, W, specs, "m", verify=False)  # noqa: E731
    text = refused(call, error)
    assert text.startswith("jax2tf.export: the ")
    assert "x['a'][0]" in text
    assert words in text
    assert not list(folder.iterdir())


def test_a_dtype_as_the_message_says(folder):
    text = refused(lambda: export(model, W, "b, 4:float", "m"), ValueError)
    assert "'b, 224, 224, 3:float32'" in text
    result = export(model, W, "b, 4:float32", "m")
    assert result.signatures == {"serving_default": {"x": "float32[b, 4]"}}


@pytest.mark.parametrize("params", [3, float("nan"), [1], {"a": 1}, {"w": 10**40}, True], ids=shown)
def test_the_error_of_a_function_that_got_a_number(params, folder):
    # The function's own, with a note on what it was called with.
    with pytest.raises((TypeError, KeyError, OverflowError)) as caught:
        export(model, params, "b, 4", "m")
    assert any("jax2tf.export(model) called it in JAX" in n for n in caught.value.__notes__)


def test_parameters_that_are_variables_of_tensorflow(tmp_path):
    """As those of a model of Keras whose backend is TensorFlow."""
    params = {"w": tf.Variable(np.ones((4, 3), np.float32))}
    with pytest.raises(TypeError) as caught:
        export(lambda params, x: x @ params["w"], params, "b, 4", tmp_path / "m.tflite")
    (note,) = (n for n in caught.value.__notes__ if "called it in JAX" in n)
    assert "params['w'] is a value of TensorFlow, and JAX takes arrays" in note
    assert "start the program with KERAS_BACKEND=jax" in note


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_of_parameters(suffix, folder):
    # All in one file, whose names for them have to differ too.
    names = ["", "/", "a//b", "a/_/b", "a b", "a\nb", "\0", "日本", "\ud800", "x" * 300]
    params = {name: np.full([4, 3], n, np.float32) for n, name in enumerate(names)}

    def each(params, x):
        return [x @ params[name] for name in names]

    result = export(each, params, "b, 4", f"m{suffix}")
    assert len(result.differences["serving_default"]) == len(names)


def checkpoint(name: str, content: bytes) -> str:
    pathlib.Path(name).write_bytes(content)
    return name


def broken_checkpoints() -> dict[str, str]:
    """Files of each kind that are broken, with a piece of what is said of them."""
    from safetensors.numpy import save

    np.savez("good.npz", **W)
    npz, tensors = pathlib.Path("good.npz").read_bytes(), save(W)
    np.savez("objects.npz", w=np.array([object()], dtype=object))
    np.savez("texts.npz", w=np.array(["a"]))
    np.savez("nested.npz", **{"a/b": np.ones(3), "a": np.ones(3)})
    with zipfile.ZipFile("archive.npz", "w") as archive:
        archive.writestr("a.txt", "hi")
    np.save("one.npy", np.ones(3))
    os.rename("one.npy", "one.npz")
    os.mkdir("folder")
    os.symlink("loop.npz", "loop.npz")
    return {
        checkpoint("text.npz", b"hello"): "an .npz file, and is none",
        checkpoint("empty.npz", b""): "an .npz file, and is none",
        checkpoint("cut.npz", npz[: len(npz) // 2]): "an .npz file, and is none",
        checkpoint("flipped.npz", npz[:120] + b"\xff" * 40 + npz[160:]): "whole and hold numbers",
        "objects.npz": "has Python objects (pickle), which are not loaded",
        "texts.npz": "hold arrays of numbers: 'w' is <U1",
        "nested.npz": "'a/b' stands inside of the array 'a'",
        "archive.npz": "'a.txt' is no array",
        "one.npz": "an .npz file, and is none",
        "folder": "there is no Orbax checkpoint",
        "loop.npz": "there is no checkpoint",
        "nothing.npz": "there is no checkpoint",
        "n" * 300 + ".npz": "there is no checkpoint",
        checkpoint("w.npy", npz): "the suffix .npz or .safetensors",
        checkpoint("text.safetensors", b"hello" * 100): "a .safetensors file, and is none",
        checkpoint("empty.safetensors", b""): "a .safetensors file, and is none",
        checkpoint("cut.safetensors", tensors[:-10]): "a .safetensors file, and is none",
        checkpoint("header.safetensors", struct.pack("<Q", 2**40) + tensors[8:]): "and is none",
    }


def test_broken_checkpoints(folder):
    for name, words in broken_checkpoints().items():
        call = lambda: export(model, name, "b, 4", "m", verify=False)  # noqa: B023, E731
        text = refused(call, ValueError, FileNotFoundError)
        assert text.startswith("jax2tf.export: "), name
        assert words in text, (name, text)
        assert name[:20] in text, text
        assert "allow_pickle" not in text, text
        assert "unsafe" not in text, text
        assert not os.path.exists("m")


def test_a_checkpoint_that_is_written_anew_as_the_message_says(folder):
    text = refused(lambda: export(model, checkpoint("w.npz", b"hello"), "b, 4", "m"), ValueError)
    assert "write it anew; numpy.savez(path, **arrays) makes one" in text
    np.savez("w.npz", **W)
    assert export(model, "w.npz", "b, 4", "m").differences


@contextlib.contextmanager
def files_of_at_most(size: int):
    """A context in which no file may be larger: the same that a full disk does to a writer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


LARGE = {"w": np.random.default_rng(0).normal(size=(4, 100_000)).astype(np.float32)}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("verify", [True, False])
def test_a_disk_that_is_full(suffix, verify, folder):
    with files_of_at_most(200_000):
        text = refused(
            lambda: export(model, LARGE, "b, 4", f"m{suffix}", verify=verify), jax2tf.ExportError
        )
    assert text.startswith(f"jax2tf.export: m{suffix} cannot be written: File too large.")
    assert "raise the limit" in text
    assert not list(folder.iterdir())
    assert export(model, LARGE, "b, 4", f"m{suffix}", verify=verify).size > 1_000_000


def test_a_library_that_cannot_save_its_file(folder, monkeypatch):
    openvino = pytest.importorskip("openvino")

    def save_model(model, path, **options):
        pathlib.Path(path).write_bytes(b"half")
        raise RuntimeError("basic_ios::clear: iostream error")

    monkeypatch.setattr(openvino, "save_model", save_model)
    text = refused(lambda: export(model, W, "b, 4", "m.xml"), jax2tf.ExportError)
    assert text.startswith("jax2tf.export: m.xml cannot be written: OpenVINO says basic_ios")
    assert "free some space there" in text
    assert not list(folder.iterdir())


def test_an_error_of_the_function_is_none_of_the_disk(folder):
    def reading(params, x):
        raise FileNotFoundError(2, "No such file", "table.csv")

    with pytest.raises(FileNotFoundError, match=r"table\.csv"):
        export(reading, W, "b, 4", "m", verify=False)


@pytest.mark.parametrize("target", ["/proc/m.tflite", "/proc/folder/m.tflite"])
def test_a_folder_that_cannot_be_written(target, folder):
    text = refused(lambda: export(model, W, "b, 4", target), jax2tf.ExportError)
    assert text.startswith(f"jax2tf.export: {target} cannot be written: ")
