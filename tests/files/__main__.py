"""Writes the files of this release: `python -m tests.files [FOLDER] [--only SUFFIX ...]`.

Of all kinds it needs TensorFlow, ONNX Runtime, OpenVINO, tensorflowjs, and Node.js with
@tensorflow/tfjs. Write exported.bin by the oldest JAX that the release supports: one that is older
than the writer does not read it.
"""

from __future__ import annotations

import argparse
import pathlib

import jax
import tensorflow as tf
from jax import export as jax_export

import jax2tf
import jax2tf.keras
from tests import files

# What `jax2tf.export` writes.
EXPORTED = ("model", "model.tflite", "model.onnx", "model.xml", "model.tfjs")


def write_native(path: pathlib.Path) -> None:
    """A SavedModel that holds StableHLO."""
    module = jax2tf.Module(
        files.model,
        files.parameters(),
        polymorphic_shapes=["b, 4", ""],
        native_serialization=True,
    )
    x, shift = tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([], tf.int32, name="shift")
    function = tf.function(module, input_signature=[x, shift], autograph=False)
    tf.saved_model.save(module, str(path), {"serving_default": function})


def write_layer(path: pathlib.Path) -> None:
    """A model of Keras with a layer of jax2tf."""
    params = {name: a for name, a in files.parameters().items() if name != "u"}
    inputs = tf.keras.Input([4])
    outputs = jax2tf.keras.Layer(files.layer, params, polymorphic_shapes="b, _")(inputs)
    tf.keras.Model(inputs, outputs).save(path)


def write_exported(path: pathlib.Path) -> None:
    """A file of jax.export, which `jax2tf.load` reads."""
    params = files.parameters()

    def fixed(x, shift):
        return files.model(params, x, shift)

    (b,) = jax_export.symbolic_shape("b")
    specs = (jax.ShapeDtypeStruct((b, 4), "float32"), jax.ShapeDtypeStruct((), "int32"))
    # The file names its source files without the folders of the machine that writes it.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    path.write_bytes(jax_export.export(jax.jit(fixed))(*specs).serialize())


OTHERS = {"native": write_native, "layer.keras": write_layer, "exported.bin": write_exported}


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.files", description=__doc__)
    default = files.FOLDER / jax2tf.__version__
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--only", nargs="*", default=[*EXPORTED, *OTHERS])
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        if name in OTHERS:
            OTHERS[name](folder / name)
        else:
            jax2tf.export(
                files.model, files.parameters(), files.SPECS, folder / name, progress=False
            )
    files.written_values(folder / "values.json")


if __name__ == "__main__":
    main()
