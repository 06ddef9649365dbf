"""Digits that you draw, recognised in a browser: by ONNX Runtime Web and by TensorFlow.js.

    python docs/examples/draw_digits.py [FOLDER]
    python -m http.server --directory FOLDER

The model is trained here, in some seconds, on the images of scikit-learn. The folder holds the
page, the model in both formats and both engines, so the page needs no other server. To write it,
the program needs the extras `onnx` and `examples`, tensorflowjs (pip install --no-deps
tensorflowjs), and Node.js with onnxruntime-web and @tensorflow/tfjs.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import jax2tf

STEPS, BATCH, RATE, MOMENTUM = 600, 64, 0.05, 0.9
PAGE = pathlib.Path(__file__).with_name("draw_digits.html")
# What the page loads of each engine.
FILES = {
    "@tensorflow/tfjs": ("tf.min.js",),
    "onnxruntime-web": (
        "ort.wasm.min.js",
        "ort-wasm-simd-threaded.mjs",
        "ort-wasm-simd-threaded.wasm",
    ),
}


def data():
    """Images [n, 8, 8] of 0 to 16 and their digits: 1,437 to train on, 360 to test.

    Each number counts the black pixels of a square of 4 x 4, of a bitmap of 32 x 32. The page does
    the same with what you draw.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[360:], order[:360]
    return (images[train], digits.target[train]), (images[test], digits.target[test])


def init(key):
    """Random weights of two convolutions and a linear layer."""
    keys = jax.random.split(key, 3)
    shapes = {"conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 32), "head": (4 * 4 * 32, 10)}
    return {
        name: jax.random.normal(key, shape) * np.sqrt(2 / np.prod(shape[:-1]))
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def logits(params, images):
    """The logits [b, 10] of images [b, 8, 8]."""
    x = images[..., None] / 16
    for kernel, stride in ((params["conv1"], 1), (params["conv2"], 2)):
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return x.reshape(-1, 4 * 4 * 32) @ params["head"]


def read(params, image):
    """The probabilities [b, 10] of the digits for images [b, 8, 8]."""
    return {"probabilities": jax.nn.softmax(logits(params, image))}


@jax.jit
def step(params, velocity, images, labels):
    """A step of gradient descent with momentum."""

    def loss(params):
        log_p = jax.nn.log_softmax(logits(params, images))
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))

    gradients = jax.grad(loss)(params)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradients)
    return jax.tree.map(jnp.add, params, velocity), velocity


def train(images, labels):
    """Trained weights. Images are moved by up to a pixel, since people draw beside the middle."""
    params = init(jax.random.key(0))
    velocity = jax.tree.map(jnp.zeros_like, params)
    rng = np.random.default_rng(1)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    for _ in range(STEPS):
        rows = rng.integers(len(images), size=BATCH)
        y, x = rng.integers(3, size=2)
        moved = padded[rows, y : y + 8, x : x + 8]
        params, velocity = step(params, velocity, moved, labels[rows])
    return params


def copy_engines(folder):
    """Copies the engines that npm has installed."""
    for package, names in FILES.items():
        # What Node.js itself would load stands beside the files for browsers.
        command = ["node", "--print", f"require.resolve('{package}', {{paths: ['.']}})"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name in names:
            shutil.copy(pathlib.Path(done.stdout.strip()).with_name(name), folder / name)


def main(folder=None):
    """Trains, exports and writes the page; gives the parameters and the share of right answers."""
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    (images, labels), (unseen, answers) = data()
    params = train(images, labels)
    found = np.asarray(jax.jit(logits)(params, unseen)).argmax(-1)
    share = float(np.mean(found == answers))
    for name in ("digits.onnx", "digits.tfjs"):
        result = jax2tf.export(
            read, params, "b, 8, 8", folder / name, verify=[unseen[:2]], overwrite=True
        )
        print(result)
    copy_engines(folder)
    shutil.copy(PAGE, folder / "index.html")
    print(
        f"{share:.1%} of {len(unseen)} unseen images are right; draw in {folder / 'index.html'} by"
    )
    print(f"    python -m http.server --directory {folder}")
    return params, share


if __name__ == "__main__":
    main(*sys.argv[1:])
