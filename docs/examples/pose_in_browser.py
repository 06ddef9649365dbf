"""A pose model of JAX in TensorFlow.js, with the web page that runs it.

    python docs/examples/pose_in_browser.py [FOLDER]
    python -m http.server --directory FOLDER

The folder holds the model, the page and TensorFlow.js itself, so the page needs no other server. It
finds the spots in a picture that it draws; click to move one. To write it, the program needs
tensorflowjs (pip install --no-deps tensorflowjs) and Node.js with @tensorflow/tfjs.
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

SIZE, JOINTS, WIDTH = 32, 3, 7
PAGE = pathlib.Path(__file__).with_name("pose_in_browser.html")


def init():
    """A bank of filters, one a joint: its color, under a bell; as a trained model might have it."""
    at = np.arange(WIDTH) - WIDTH // 2
    bell = np.exp(-(at[:, None] ** 2 + at**2) / 4)[..., None, None]
    colors = np.eye(JOINTS) - 0.5 * (1 - np.eye(JOINTS))
    return {"filters": (bell * colors).astype(np.float32), "sharpness": np.float32(4)}


def pose(params, image):
    """Where each joint is, [b, JOINTS, 2] (row and column), in images [b, SIZE, SIZE, JOINTS]."""
    heat = jax.lax.conv_general_dilated(
        image, params["filters"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    weights = jax.nn.softmax(params["sharpness"] * heat.reshape(-1, SIZE * SIZE, JOINTS), axis=1)
    weights = weights.reshape(-1, SIZE, SIZE, JOINTS)
    at = jnp.arange(SIZE, dtype=jnp.float32)
    rows = jnp.einsum("bhwj,h->bj", weights, at)
    columns = jnp.einsum("bhwj,w->bj", weights, at)
    return jnp.stack([rows, columns], axis=-1)


def picture(places):
    """An image with a spot of a color at each place, as the page draws it, [1, SIZE, SIZE, 3]."""
    at = np.arange(SIZE)
    spots = [np.exp(-((at[:, None] - r) ** 2 + (at - c) ** 2) / 4) for r, c in places]
    return np.stack(spots, axis=-1)[None].astype(np.float32)


def library():
    """The file of TensorFlow.js for browsers, which npm has installed."""
    find = "console.log(require.resolve('@tensorflow/tfjs/dist/tf.min.js', {paths: ['.']}))"
    done = subprocess.run(["node", "--eval", find], capture_output=True, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def main(folder=None):
    """Writes model and page; gives the places that JAX finds in the picture of the page."""
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    places = [(6, 8), (16, 22), (25, 10)]
    params, image = init(), picture(places)
    result = jax2tf.export(
        pose, params, f"b, {SIZE}, {SIZE}, {JOINTS}", folder / "pose.tfjs", verify=[image]
    )
    print(result)
    shutil.copy(library(), folder / "tf.min.js")
    shutil.copy(PAGE, folder / "index.html")
    found = np.asarray(jax.jit(pose)(params, image))[0]
    print(f"JAX finds {np.round(found, 1).tolist()}; look at {folder / 'index.html'} with")
    print(f"    python -m http.server --directory {folder}")
    return places, found


if __name__ == "__main__":
    main(*sys.argv[1:])
