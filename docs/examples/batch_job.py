"""A batch job: a model of JAX over many files, in TensorFlow.

    python docs/examples/batch_job.py [FOLDER]

It needs the extra `examples` (scikit-learn, which has the images). Handwritten digits stand in
shards of TFRecords. The job reads a shard by tf.data, parses it, runs the SavedModel inside of the
pipeline and writes a file of results for it. It needs no JAX. Machines share the work by their
number, and a job that was stopped goes on with the shards that have no results.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf

STEPS, RATE, SHARDS, BATCH = 150, 1.0, 4, 100


def data():
    """Images [n, 64] of 0 to 16 and their digits: 1,437 to train on, 360 to test."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order].astype(np.float32), labels[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def read(params, image):
    """The digit [b] of images [b, 64], and its probability."""
    probabilities = jax.nn.softmax(image / 16 @ params["w"] + params["b"])
    return {"digit": jnp.argmax(probabilities, 1), "probability": jnp.max(probabilities, 1)}


@jax.jit
def train(images, labels):
    """Trained weights, by gradient descent."""

    def loss(params):
        log_p = jax.nn.log_softmax(images / 16 @ params["w"] + params["b"])
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))

    def step(params, _):
        return jax.tree.map(lambda p, g: p - RATE * g, params, jax.grad(loss)(params)), None

    start = {"w": jnp.zeros((64, 10)), "b": jnp.zeros(10)}
    return jax.lax.scan(step, start, length=STEPS)[0]


def write_shards(folder, images):
    """Writes the images into files of TFRecords; each record has its number and its bytes."""
    for shard in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"images-{shard}.tfrecord")) as writer:
            for number in range(shard, len(images), SHARDS):
                features = {
                    "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                    "image": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[images[number].tobytes()])
                    ),
                }
                record = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(record.SerializeToString())


def parse(records):
    """The numbers [b] and the images [b, 64] of a batch of records."""
    string, number = (tf.io.FixedLenFeature([], dtype) for dtype in (tf.string, tf.int64))
    rows = tf.io.parse_example(records, {"number": number, "image": string})
    return rows["number"], tf.ensure_shape(tf.io.decode_raw(rows["image"], tf.float32), [None, 64])


def job(model, shards, results, worker=0, workers=1):
    """Runs the SavedModel over the shards of a worker; returns how many it computed."""
    restored = tf.saved_model.load(str(model))
    computed = 0
    for shard in sorted(shards.glob("*.tfrecord"))[worker::workers]:
        path = results / f"{shard.stem}.jsonl"
        if path.exists():
            continue
        rows = (
            tf.data.TFRecordDataset(str(shard))
            .batch(BATCH)  # the last batch is smaller: the model takes every size
            .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
            .map(lambda number, image: {"number": number, **restored.serving_default(image)})
            .prefetch(tf.data.AUTOTUNE)
        )
        beside = path.with_suffix(".part")
        with beside.open("w") as file:
            for row in rows.unbatch().as_numpy_iterator():
                file.write(json.dumps({name: value.item() for name, value in row.items()}) + "\n")
        beside.rename(path)  # what has its name is whole
        computed += 1
    return computed


def main(folder=None):
    """Trains, exports, and runs the job as two workers do, one of them twice.

    Returns the share of right digits in JAX and from the files, and the shards that each computed.
    """
    folder = pathlib.Path(folder or tempfile.mkdtemp())
    shards, results = folder / "shards", folder / "results"
    for path in (shards, results):
        path.mkdir(parents=True, exist_ok=True)
    (images, labels), (unseen, digits) = data()
    params = train(images, labels)
    model = jax2tf.export(read, params, "b, 64", folder / "model", overwrite=True).path
    write_shards(shards, unseen)
    computed = [job(model, shards, results, worker, 2) for worker in (0, 1, 0)]
    rows = [
        json.loads(line)
        for path in results.iterdir()
        for line in path.read_text().split("\n")
        if line
    ]
    found = np.array([row["digit"] for row in sorted(rows, key=lambda row: row["number"])])
    in_jax = float(np.mean(np.asarray(read(params, unseen)["digit"]) == digits))
    from_files = float(np.mean(found == digits))
    print(f"JAX: {in_jax:.1%} of {len(digits)} unseen images are right")
    print(f"{len(rows)} results in {SHARDS} files: {from_files:.1%} are right")
    print(f"shards that were computed by worker 0, worker 1, and worker 0 again: {computed}")
    return in_jax, from_files, computed


if __name__ == "__main__":
    main(*sys.argv[1:2])
