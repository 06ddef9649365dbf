"""Handwritten digits on a phone: trained in JAX on real data, written for LiteRT, run by LiteRT.

    python docs/examples/digits_on_phone.py [FOLDER]

It needs the extras `litert` and `examples` (scikit-learn, which has the images).
docs/guides/phone.md shows the app's side, for Android and iOS.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import jax2tf

EPOCHS, BATCH, RATE, MOMENTUM = 15, 32, 0.05, 0.9


def data():
    """Images [n, 8, 8] of 0 to 16 and their digits: 1,437 to train on, 360 to test."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[360:], order[:360]
    return (images[train], digits.target[train]), (images[test], digits.target[test])


def init(key):
    """Random weights of two convolutions and a linear layer."""
    keys = jax.random.split(key, 3)

    def weights(key, *shape):
        return jax.random.normal(key, shape) * np.sqrt(2 / np.prod(shape[:-1]))

    return {
        "conv1": weights(keys[0], 3, 3, 1, 16),
        "conv2": weights(keys[1], 3, 3, 16, 32),
        "head": {"w": weights(keys[2], 4 * 4 * 32, 10), "b": jnp.zeros(10)},
    }


def logits(params, images):
    """The logits [b, 10] of images [b, 8, 8]."""
    x = images[..., None] / 16
    for kernel, stride in ((params["conv1"], 1), (params["conv2"], 2)):
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return x.reshape(x.shape[0], -1) @ params["head"]["w"] + params["head"]["b"]


def read(params, image):
    """The probabilities [1, 10] of the digits for an image [1, 8, 8]."""
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
    """Trained weights."""
    params = init(jax.random.key(0))
    velocity = jax.tree.map(jnp.zeros_like, params)
    rng = np.random.default_rng(1)
    for _ in range(EPOCHS):
        for rows in rng.permutation(len(images))[: len(images) // BATCH * BATCH].reshape(-1, BATCH):
            params, velocity = step(params, velocity, images[rows], labels[rows])
    return params


def run(path, images):
    """The probabilities [n, 10] that LiteRT gives, an image a call, as the app does it."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    (into,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    results = []
    for image in images:
        interpreter.set_tensor(into["index"], image[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(out["index"])[0])
    return np.array(results)


def picture(image):
    """An image as text."""
    return "\n".join("".join(" .:-=+*#@"[int(v) // 2] * 2 for v in row) for row in image)


def main(folder=None):
    """Trains, exports and runs; gives the share of right answers in JAX and from each file."""
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    (images, labels), (unseen, answers) = data()
    params = train(images, labels)
    in_jax = np.asarray(jax.jit(logits)(params, unseen)).argmax(-1)
    shares = {"JAX": float(np.mean(in_jax == answers))}
    options = {"quantize": "int8", "representative_data": [image[None] for image in images[:200]]}
    for name, more in (("digits.tflite", {}), ("digits_int8.tflite", options)):
        result = jax2tf.export(read, params, "1, 8, 8", folder / name, overwrite=True, **more)
        print(result)
        probabilities = run(result.path, unseen)
        shares[name] = float(np.mean(probabilities.argmax(-1) == answers))
    print(picture(unseen[0]))
    print(f"LiteRT reads {probabilities[0].argmax()}, with {probabilities[0].max():.0%}")
    for name, share in shares.items():
        print(f"{name}: {share:.1%} of {len(unseen)} unseen images are right")
    return shares


if __name__ == "__main__":
    main(*sys.argv[1:])
