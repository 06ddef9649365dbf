"""Parameters of `jax2tf.export` that stand in checkpoints."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint
import pytest
import safetensors.flax
import safetensors.numpy
import tensorflow as tf

import jax2tf
from jax2tf._src.export import checkpoints

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
PARAMS = {"dense": {"w": W, "b": np.ones(3, np.float32)}, "scale": np.float32(2)}
FLAT = {"dense/w": W, "dense/b": PARAMS["dense"]["b"], "scale": np.asarray(PARAMS["scale"])}


def model(params, x):
    dense = params["dense"]
    return (x @ dense["w"] + dense["b"]) * params["scale"]


def orbax_folder(path):
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, jax.tree.map(jnp.asarray, PARAMS))


def step_of_a_manager(path):
    with orbax.checkpoint.CheckpointManager(path.parent / "steps") as manager:
        manager.save(0, args=orbax.checkpoint.args.StandardSave(jax.tree.map(jnp.asarray, PARAMS)))
        manager.wait_until_finished()
    (path.parent / "steps/0").rename(path)


WRITERS = {
    "params.npz": lambda path: np.savez(path, **FLAT),
    "params.safetensors": lambda path: safetensors.numpy.save_file(FLAT, path),
    "orbax": orbax_folder,
    "step": step_of_a_manager,
}


def same(actual, expected):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, actual, expected)
    assert jax.tree.map(lambda a: a.dtype, actual) == jax.tree.map(lambda a: a.dtype, expected)


@pytest.mark.parametrize("name", WRITERS)
def test_each_kind(name, tmp_path):
    WRITERS[name](tmp_path / name)
    same(checkpoints.load(tmp_path / name), PARAMS)
    result = jax2tf.export(model, str(tmp_path / name), "b, 4", tmp_path / "model")
    assert max(result.differences["serving_default"].values()) < 1e-5
    restored = tf.saved_model.load(str(tmp_path / "model"))
    assert sorted(restored.parameters) == ["dense/b", "dense/w", "scale"]


def _of_a_layer(params, x):
    return x @ params["layers"]["0"]["up"]


def test_names_with_dots_are_not_nested(tmp_path):
    with_dots, with_slashes = tmp_path / "dots.npz", tmp_path / "slashes.npz"
    np.savez(with_dots, **{"layers.0.up": W})
    np.savez(with_slashes, **{"layers/0/up": W})
    spec = f"b, {W.shape[0]}"
    for call in (
        lambda path: jax2tf.locate(_of_a_layer, path, spec, "eager"),
        lambda path: jax2tf.export(_of_a_layer, path, spec, tmp_path / "model", progress=False),
    ):
        with pytest.raises(KeyError, match="layers") as error:
            call(with_dots)
        note = next(note for note in error.value.__notes__ if note.startswith("jax2tf: params"))
        assert "'layers.0.up' of the file" in note
        assert "save it as 'layers/0/up', which is params['layers']['0']['up']" in note
        call(with_slashes)


def test_dtypes_that_numpy_lacks(tmp_path):
    params = {"w": jnp.asarray(W, jnp.bfloat16)}
    safetensors.flax.save_file(params, tmp_path / "w.safetensors")
    same(checkpoints.load(tmp_path / "w.safetensors"), params)


def test_names_that_meet(tmp_path):
    np.savez(tmp_path / "w.npz", **{"a": W, "a/b": W})
    with pytest.raises(ValueError, match="'a/b' stands inside of the array 'a'"):
        checkpoints.load(tmp_path / "w.npz")


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*absent\.npz"):
        jax2tf.export(model, tmp_path / "absent.npz", "b, 4", tmp_path / "model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no Orbax checkpoint in .*empty"):
        jax2tf.export(model, tmp_path / "empty", "b, 4", tmp_path / "model")
    (tmp_path / "w.pkl").write_bytes(b"")
    with pytest.raises(ValueError, match=r"suffix \.npz or \.safetensors, got .*w\.pkl"):
        jax2tf.export(model, str(tmp_path / "w.pkl"), "b, 4", tmp_path / "model")


def test_objects_in_npz_are_not_loaded(tmp_path):
    np.savez(tmp_path / "w.npz", a=np.array([object()]))
    with pytest.raises(ValueError, match="pickle"):
        checkpoints.load(tmp_path / "w.npz")


@pytest.mark.parametrize(
    ("name", "package"), [("orbax", "orbax.checkpoint"), ("w.safetensors", "safetensors")]
)
def test_libraries_that_are_missing(name, package, tmp_path, monkeypatch):
    path = tmp_path / name
    if name == "orbax":
        path.mkdir()
    else:
        safetensors.numpy.save_file({"w": W}, path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(jax2tf.MissingPackageError, match=f"{package}, .*extra `checkpoints`"):
        jax2tf.export(model, path, "b, 4", tmp_path / "model")
