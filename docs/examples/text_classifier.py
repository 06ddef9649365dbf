"""A text classifier: TensorFlow takes the strings apart, JAX computes, one SavedModel holds both.

    python docs/examples/text_classifier.py [FOLDER]

The texts are real: sentences of the documentation of NumPy, TensorFlow and Python's own library,
as they are installed. The classifier says which of them a sentence comes from. JAX knows no
strings, so the words and their numbers stay in TensorFlow, in training as in the SavedModel.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

import jax2tf

LABELS = ("numpy", "python", "tensorflow")
WORDS, WIDTH, LONGEST = 2000, 16, 40
STEPS, BATCH, RATE = 400, 128, 0.02


def sentences():
    """Sentences, and the number of the library of each; names of the libraries are taken out."""
    import argparse
    import collections
    import datetime
    import logging
    import random
    import threading

    modules = {
        "numpy": (np, np.linalg, np.random, np.fft),
        "python": (argparse, collections, datetime, logging, random, re, threading, inspect),
        "tensorflow": (tf, tf.math, tf.nn, tf.image, tf.data.Dataset, tf.strings),
    }
    rows = set()
    for label, name in enumerate(LABELS):
        for module in modules[name]:
            for member in vars(module):
                documented = getattr(module, member, None)
                if not member.startswith("_") and callable(documented):
                    text = inspect.getdoc(documented) or ""
                    text = re.sub(r"`?\b(np|numpy|tf|tensorflow|python)\b\.?", "", text, flags=re.I)
                    parts = re.split(r"\.\s|\n\n", text)
                    rows |= {(" ".join(part.split()), label) for part in parts[:4]}
    rows = sorted(row for row in rows if len(row[0].split()) > 4)
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[i][0] for i in order], np.array([rows[i][1] for i in order])


def words_of(texts):
    """The words of each text, a ragged tensor of strings."""
    plain = tf.strings.regex_replace(tf.strings.lower(texts), "[^a-z ]", " ")
    return tf.strings.split(plain)


def vocabulary(texts):
    """A table from words to numbers: the most frequent ones have their own; 0 stands for none."""
    flat = words_of(tf.constant(texts)).flat_values.numpy()
    found, counts = np.unique(flat, return_counts=True)
    words = found[np.argsort(-counts, kind="stable")][: WORDS - 1]
    keys = tf.constant(words, tf.string)
    numbers = tf.range(1, len(words) + 1, dtype=tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, numbers), 0)


def ids_of(table, texts):
    """The numbers of the words, [b, t] int32, with 0 behind the last one and for unknown words."""
    ids = tf.ragged.map_flat_values(table.lookup, words_of(texts))
    return ids[:, :LONGEST].to_tensor()


def core(params, ids):
    """The logits [b, labels] of numbers of words [b, t]: the mean of what each word says."""
    known = (ids > 0)[..., None]
    total = jnp.sum(jnp.where(known, params["embedding"][ids], 0.0), axis=1)
    mean = total / jnp.maximum(jnp.sum(known, axis=1), 1)
    return jnp.tanh(mean) @ params["head"] + params["bias"]


@jax.jit
def step(params, ids, labels):
    """A step of gradient descent, with steps of one size for each number (sign of the gradient)."""

    def loss(params):
        log_p = jax.nn.log_softmax(core(params, ids))
        return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))

    gradients = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - RATE * jnp.sign(g), params, gradients)


def train(ids, labels):
    """Trained weights."""
    keys = jax.random.split(jax.random.key(0), 2)
    params = {
        "embedding": 0.1 * jax.random.normal(keys[0], (WORDS, WIDTH)),
        "head": jax.random.normal(keys[1], (WIDTH, len(LABELS))) / WIDTH**0.5,
        "bias": jnp.zeros(len(LABELS)),
    }
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        rows = rng.integers(len(ids), size=BATCH)
        params = step(params, ids[rows], labels[rows])
    return params


class Classifier(tf.Module):
    """From texts to labels. What is an attribute is saved: the table, the variables."""

    def __init__(self, params, table):
        super().__init__()
        self.table = table
        self.core = jax2tf.Module(core, params, polymorphic_shapes="b, t")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False)
    def __call__(self, text):
        probabilities = tf.nn.softmax(self.core(ids_of(self.table, text)))
        label = tf.gather(tf.constant(LABELS), tf.argmax(probabilities, axis=1))
        return {"label": label, "probability": tf.reduce_max(probabilities, axis=1)}


def main(folder=None):
    """Trains, saves and loads; gives the share of right answers in JAX and from the SavedModel."""
    folder = pathlib.Path(folder or tempfile.mkdtemp()) / "classifier"
    texts, labels = sentences()
    n = len(texts) // 5
    table = vocabulary(texts[n:])
    ids = ids_of(table, tf.constant(texts)).numpy()
    params = train(ids[n:], labels[n:])
    in_jax = np.asarray(jax.jit(core)(params, ids[:n])).argmax(-1)
    classifier = Classifier(params, table)
    tf.saved_model.save(classifier, str(folder), classifier.__call__.get_concrete_function())
    restored = tf.saved_model.load(str(folder))
    found = restored.signatures["serving_default"](text=tf.constant(texts[:n]))["label"].numpy()
    shares = [
        float(np.mean(in_jax == labels[:n])),
        float(np.mean(found == np.array(LABELS, object)[labels[:n]].astype("S"))),
    ]
    print(f"{len(texts) - n} sentences to train on, {n} to test: JAX {shares[0]:.1%} right,")
    print(f"the SavedModel {shares[1]:.1%}")
    for text in ("Returns a tensor with the gradient of the loss", "Return the day of the week"):
        answer = restored(tf.constant([text]))
        label, probability = answer["label"][0].numpy().decode(), float(answer["probability"][0])
        print(f"    {text!r}: {label}, {probability:.0%}")
    return shares


if __name__ == "__main__":
    main(*sys.argv[1:])
