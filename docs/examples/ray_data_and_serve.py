"""Ray: a model of JAX over many rows by Ray Data, and behind an address by Ray Serve.

    python docs/examples/ray_data_and_serve.py

It needs the extras `fleet` (Ray) and `examples` (scikit-learn, which has the images), and starts a
cluster of this machine. Without `num_cpus` it joins the cluster that RAY_ADDRESS names; the folder
of the SavedModel has to be one that all machines read. Workers load the SavedModel: they need
TensorFlow, and neither JAX nor jax2tf.
"""

from __future__ import annotations

import json
import os
import tempfile
import urllib.request

import numpy as np

STEPS, RATE = 150, 1.0


def data():
    """Images [n, 64] of 0 to 16 and their digits: 1,437 to train on, 360 to test."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order].astype(np.float32), labels[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def write_model(images, labels, folder):
    """Trains in JAX and writes a SavedModel; returns the function and its weights."""
    import jax
    import jax.numpy as jnp

    import jax2tf

    def read(params, image):
        probabilities = jax.nn.softmax(image / 16 @ params["w"] + params["b"])
        return {"digit": jnp.argmax(probabilities, 1), "probability": jnp.max(probabilities, 1)}

    def loss(params):
        log_p = jax.nn.log_softmax(images / 16 @ params["w"] + params["b"])
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))

    @jax.jit
    def step(params):
        return jax.tree.map(lambda p, g: p - RATE * g, params, jax.grad(loss)(params))

    params = {"w": jnp.zeros((64, 10)), "b": jnp.zeros(10)}
    for _ in range(STEPS):
        params = step(params)
    jax2tf.export(read, params, "b, 64", folder, overwrite=True)
    return read, params


class Model:
    """The SavedModel in a process of a worker, which loads it once."""

    def __init__(self, folder):
        import tensorflow as tf

        self.restored = tf.saved_model.load(folder)

    def __call__(self, batch):
        """Columns of a batch, and those of the results."""
        results = self.restored.serving_default(batch["image"])
        return {"number": batch["number"], **{name: r.numpy() for name, r in results.items()}}


def batch(folder, images):
    """The digits of all images, by two workers of Ray Data."""
    import ray

    rows = [{"number": number, "image": image} for number, image in enumerate(images)]
    # A worker takes whole blocks: one block would leave the other worker without work.
    results = ray.data.from_items(rows, override_num_blocks=4).map_batches(
        Model,
        fn_constructor_args=[folder],
        batch_size=100,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    found = results.take_all()
    return np.array([row["digit"] for row in sorted(found, key=lambda row: row["number"])])


def deployment(folder):
    """The model behind an address: requests that come together are one batch of the model."""
    from ray import serve

    @serve.deployment(num_replicas=1, max_ongoing_requests=100)
    class Digits:
        def __init__(self, folder):
            self.model = Model(folder)

        @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.01)
        async def read(self, images):
            results = self.model({"image": np.stack(images), "number": np.arange(len(images))})
            return [int(digit) for digit in results["digit"]]

        async def __call__(self, request):
            image = np.array((await request.json())["image"], np.float32)
            return {"digit": await self.read(image)}

    return Digits.bind(folder)


def ask(image, port):
    """The digit of an image, by a request to the server."""
    body = json.dumps({"image": image.tolist()}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body, timeout=60) as answer:
        return json.load(answer)["digit"]


def main(folder=None, port=8123, count=5):
    """The digits that JAX, Ray Data and Ray Serve read; Ray Serve gets the first `count` images."""
    import ray
    from ray import serve

    folder = os.path.join(folder or tempfile.mkdtemp(), "model")
    (images, labels), (unseen, digits) = data()
    read, params = write_model(images, labels, folder)
    in_jax = np.asarray(read(params, unseen)["digit"])
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:
        by_data = batch(folder, unseen)
        serve.start(http_options={"port": port})
        serve.run(deployment(folder))
        handle = serve.get_app_handle("default")
        together = [handle.read.remote(image) for image in unseen[:count]]
        by_handle = [answer.result() for answer in together]
        by_serve = [ask(image, port) for image in unseen[:count]]
    finally:
        serve.shutdown()
        ray.shutdown()
    print(f"Ray Data: {np.mean(by_data == digits):.1%} of {len(digits)} unseen images are right")
    print(
        f"Ray Serve: {by_serve} by HTTP, {by_handle} by its handle; JAX: {in_jax[:count].tolist()}"
    )
    return in_jax, by_data, by_serve, by_handle


if __name__ == "__main__":
    main()
