"""One model of JAX for TensorFlow, phones and servers, each file run and held against JAX.

    python docs/examples/tour.py [FOLDER]

It needs the extra `consumers`. `tox run -e tour` installs that, and shows a sample of the matrix.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import jax2tf

CHANNELS, CLASSES = 16, 10
# Who runs each file, by the name that says its format.
FILES = {
    "classifier": "TensorFlow",
    "classifier.tflite": "LiteRT",
    "classifier.onnx": "ONNX Runtime",
}


def init(key):
    """Random weights of a convolution, an attention block and a linear layer."""
    keys = iter(jax.random.split(key, 6))

    def weights(*shape):
        return jax.random.normal(next(keys), shape) / np.sqrt(np.prod(shape[:-1]))

    return {
        "stem": weights(4, 4, 3, CHANNELS),
        "qkv": weights(CHANNELS, 3 * CHANNELS),
        "out": weights(CHANNELS, CHANNELS),
        "up": weights(CHANNELS, 4 * CHANNELS),
        "down": weights(4 * CHANNELS, CHANNELS),
        "head": weights(CHANNELS, CLASSES),
    }


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def classify(params, images):
    """Probabilities [b, CLASSES] of images [b, 32, 32, 3]: a vision transformer of one block."""
    patches = jax.lax.conv_general_dilated(
        images, params["stem"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = patches.reshape(images.shape[0], -1, CHANNELS)
    q, k, v = jnp.split(norm(x) @ params["qkv"], 3, axis=-1)
    attention = jax.nn.softmax(jnp.einsum("bic,bjc->bij", q, k) / np.sqrt(CHANNELS), axis=-1)
    x = x + attention @ v @ params["out"]
    x = x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]
    return jax.nn.softmax(norm(x).mean(axis=1) @ params["head"], axis=-1)


def export(params, folder):
    """Writes a file of each kind; each is run with two batches before it gets its name."""
    return [
        jax2tf.export(classify, params, "b, 32, 32, 3", folder / name, overwrite=True)
        for name in FILES
    ]


def shown(results):
    """What came of the exports, as a table."""
    table = Table(box=box.SIMPLE)
    for heading in ("file", "run in", "ops", "kB", "largest difference to JAX"):
        table.add_column(heading, justify="left" if heading in ("file", "run in") else "right")
    for result in results:
        differences = [d for outputs in result.differences.values() for d in outputs.values()]
        table.add_row(
            result.path.name,
            FILES[result.path.name],
            str(result.ops),
            f"{result.size / 1000:.0f}",
            f"{max(differences):.0e}",
        )
    return table


def main(folder=None):
    """Exports, and writes a page that says where the ops of each graph come from."""
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    params = init(jax.random.key(0))
    results = export(params, folder)
    console = Console()
    console.print(shown(results))

    images = jax.ShapeDtypeStruct((8, 32, 32, 3), jnp.float32)
    model = functools.partial(classify, params)
    found = jax2tf.explain(model, images, polymorphic_shapes="b, ...")
    page = folder / "model.html"
    page.write_text(found.html(), encoding="utf-8")
    console.print(f"Every target, and the lines that the ops come from: {page}", soft_wrap=True)
    return results


if __name__ == "__main__":
    main(*sys.argv[1:])
