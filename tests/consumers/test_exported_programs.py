"""Programs of several fields, exported for an open batch and held against JAX in each engine."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jax2tf

RNG = np.random.default_rng(0)
FEATURES = jnp.array([[0, 1, 2, 3, 4, 5, 6], [7, 6, 5, 4, 3, 2, 1]])
THRESHOLDS, LEAVES = (jnp.asarray(RNG.normal(size=(2, n)), jnp.float32) for n in (7, 8))
GATES = jnp.asarray(RNG.normal(size=(8, 4)), jnp.float32)
EXPERTS = jnp.asarray(RNG.normal(size=(4, 8, 5)), jnp.float32)
DECAY = jnp.array([-0.1 + 1j, -0.2 - 0.5j, -0.3], jnp.complex64)
CODES = jnp.asarray(RNG.normal(size=(16, 4)), jnp.float32)


def boosted_trees(x):
    """Each row goes down two trees of depth 3."""

    def tree(features, thresholds, leaves):
        node = jnp.zeros(x.shape[0], jnp.int32)
        for _ in range(3):
            value = jnp.take_along_axis(x, features[node][:, None], 1)[:, 0]
            node = 2 * node + 1 + (value > thresholds[node])
        return leaves[node - 7]

    return jax.vmap(tree)(FEATURES, THRESHOLDS, LEAVES).sum(0)


def planner(x):
    """Actions by gradient descent through a simulated pendulum."""

    def cost(actions, start):
        def step(state, action):
            change = jnp.array([state[1], action - jnp.sin(state[0])])
            state = state + 0.1 * change
            return state, (state**2).sum() + 0.01 * action**2

        return lax.scan(step, start, actions)[1].sum()

    def plan(start):
        return lax.fori_loop(0, 3, lambda _, u: u - 0.05 * jax.grad(cost)(u, start), jnp.zeros(5))

    return jax.vmap(plan)(x)


def neighbours(a, b):
    """The nearest three of a cloud of points."""
    distances = jnp.sqrt(((a[:, :, None] - b[:, None]) ** 2).sum(-1))
    near, which = lax.top_k(-distances, 3)
    return -near, which, jnp.argmin(distances, -1)


def experts(x):
    """Two of four experts for each token."""
    shares, which = lax.top_k(jax.nn.softmax(x @ GATES), 2)
    of_all = jnp.einsum("bld,edf->blef", x, EXPERTS)
    chosen = jnp.take_along_axis(of_all, which[..., None], 2)
    return (chosen * (shares / shares.sum(-1, keepdims=True))[..., None]).sum(2)


def quantised_vectors(x):
    """The nearest code of each vector, and how often each code is."""
    distances = (x**2).sum(-1, keepdims=True) - 2 * x @ CODES.T + (CODES**2).sum(-1)
    which = jnp.argmin(distances, -1)
    return CODES[which], jnp.bincount(which.reshape(-1), length=16)


def beams(x):
    """The likeliest sequences of tokens."""
    steps = jax.nn.log_softmax(x)
    scores = steps[:, 0]
    for i in range(1, 3):
        every = scores[:, :, None] + steps[:, i, None, :]
        scores, which = lax.top_k(every.reshape(every.shape[0], -1), 8)
    return scores, which // 8, which % 8


def alignment(x):
    """Sums over alignments, in logarithms."""

    def step(scores, row):
        moved = jnp.concatenate([jnp.full((1,), -1e30), scores[:-1]])
        scores = jnp.logaddexp(scores, moved) + row
        return scores, scores[-1]

    first = jnp.full((3,), -1e30).at[0].set(0.0)
    return jax.vmap(lambda rows: lax.scan(step, first, rows)[1])(jax.nn.log_softmax(x))


def linear_systems(a, b):
    """Factors of each matrix, whose rows are read in another order."""
    a = a + 4 * jnp.eye(4)
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)


def masked_twice(x):
    """Scores without all but the largest three, masked again: what is left of the rest is -inf."""
    kept = jnp.where(x < lax.top_k(x, 3)[0][:, -1:], -jnp.inf, x)
    return jax.nn.softmax(jnp.where(kept < 0, -1e10, kept)), jnp.where(x < 0, -1e10, kept)


def transposed_rows(x, i):
    """Rows of a transposed array by the indices of each batch."""
    return jax.vmap(lambda rows, i: rows[i])(x.swapaxes(1, 2) * 2, i % 4)


def attention(q, k, v):
    """As jax.nn writes it, with a mask and with a bias."""
    bias = jnp.linspace(-1, 1, 6)
    return (
        jax.nn.dot_product_attention(q, k, v, is_causal=True),
        jax.nn.dot_product_attention(q, k, v, bias=bias),
    )


def state_space(x):
    """A recurrence in complex numbers, whose parameters are arrays of JAX."""
    inputs = jax.lax.complex(x, 0 * x)

    def combined(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    factors = jnp.broadcast_to(jnp.exp(DECAY), inputs.shape)
    return lax.associative_scan(combined, (factors, inputs), axis=1)[1].real


def volumes(x):
    """Pooling along three dimensions."""
    size, strides = (1, 2, 3, 2, 1), (1, 2, 2, 1, 1)
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, size, strides, "VALID"),
        lax.reduce_window(x, jnp.inf, lax.min, size, strides, "SAME"),
        lax.reduce_window(x, 0.0, lax.add, size, strides, "SAME"),
    )


def image_in_bytes(x):
    """What is an image again: bytes of floats."""
    return (jax.nn.sigmoid(x) * 300 - 20).round().astype(jnp.uint8)


def half_precision(x, i):
    """Choices between numbers of float16, one of them not finite."""
    return (
        jax.nn.softmax(x),
        x.max(1),
        jnp.where(x > 0, x, 0),
        jax.nn.gelu(x),
        x**-2,
        jnp.take(x, i + 3, axis=1),
    )


def nothing(x, none):
    """Arrays without elements on the way."""
    return jnp.concatenate([none, x], 1) * 2, none @ jnp.ones((0, 2))


def filters_of_each(x, filters, y, z):
    """Each image has its own filters, and each signal is correlated with another."""

    def convolved(image, filters):
        return lax.conv_general_dilated(
            image[None], filters, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )[0]

    def correlated(y, z):
        return jnp.correlate(y, z, "full")

    return jax.vmap(convolved)(x, filters), jax.vmap(correlated)(y, z)


def regions(x, boxes):
    """The largest of each part of the pixels in boxes whose corners are put in order."""

    def one(x, box):
        y = box[0] + (box[2] - box[0]) * jnp.arange(4) / 4
        rows = jnp.clip(jnp.floor(y), 0, 9).astype(int)
        return (x[rows] * (1 - y)[:, None, None]).reshape(2, 2, 2, 2, 2).max((1, 3))

    boxes = jnp.sort(boxes.reshape(-1, 3, 2, 2), 2).reshape(-1, 3, 4)
    return jax.vmap(lambda x, boxes: jax.vmap(lambda box: one(x, box))(boxes))(x, boxes)


def counts(x):
    """Reductions of integers, each with a number after it, along every axis of three."""
    return [
        reduced
        for axis in range(3)
        for reduced in (x.sum(axis) * 2, 3 - x.max(axis), (x > 0).sum(axis) + 4)
    ]


def in_order(x):
    return [jnp.sort(x, axis).reshape(x.shape[0], -1) * 2 for axis in (1, 2)]


PROGRAMS = {
    filters_of_each: ("b, 6, 7, 2", "b, 3, 3, 2, 4", "b, 9", "b, 5"),
    state_space: ("b, 9, 3",),
    volumes: ("b, 4, 5, 6, 2",),
    image_in_bytes: ("b, 6, 7",),
    half_precision: ("b, 6:float16", "4:int32"),
    nothing: ("b, 3", "b, 0"),
    boosted_trees: ("b, 8",),
    planner: ("b, 2",),
    neighbours: ("b, 10, 2", "b, 12, 2"),
    experts: ("b, 6, 8",),
    quantised_vectors: ("b, 5, 4",),
    beams: ("b, 5, 8",),
    alignment: ("b, 4, 3",),
    attention: ("b, 6, 2, 4",) * 3,
    linear_systems: ("b, 4, 4", "b, 4, 2"),
    masked_twice: ("b, 8",),
    transposed_rows: ("b, 3, 4", "b, 5:int32"),
    regions: ("b, 10, 4, 2", "b, 3, 4"),
    counts: ("b, 4, 3:int32",),
    in_order: ("b, 4, 3",),
}


@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".xml"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program(program, suffix, tmp_path):
    path = tmp_path / f"program{suffix}"
    result = jax2tf.export(program, None, PROGRAMS[program], path, progress=False)
    assert [trial[-4:] for trial in result.verified] == [" b=2", " b=3"]


def contrastive(a, b):
    """The score of each row with its own column: indices of batches in a transposed product."""
    scores = (a @ b.T) / 0.07
    return jnp.take_along_axis(scores, jnp.arange(3)[:, None], 1), jax.nn.log_softmax(scores)


def alignments(x, labels):
    """Sums over alignments, in a loop that reads by the indices of each batch."""

    def one(rows, labels):
        places = jnp.zeros(7, jnp.int32).at[1::2].set(labels)

        def step(scores, row):
            moved = jnp.concatenate([jnp.full(1, -1e30), scores[:-1]])
            return jnp.logaddexp(scores, moved) + row[places], None

        first = jnp.full(7, -1e30).at[:2].set(rows[0][places[:2]])
        return lax.scan(step, first, rows[1:])[0]

    return jax.vmap(one)(jax.nn.log_softmax(x), labels)


KNOWN_SIZES = {
    contrastive: ("3, 4", "3, 4"),
    alignments: ("3, 9, 6", "3, 3:int32"),
    state_space: ("3, 9, 3",),
}


@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".xml"])
@pytest.mark.parametrize("program", KNOWN_SIZES, ids=lambda program: program.__name__)
def test_a_program_of_known_sizes(program, suffix, tmp_path):
    path = tmp_path / f"program{suffix}"
    jax2tf.export(program, None, KNOWN_SIZES[program], path, progress=False)


def test_pooling_of_three_dimensions_is_two_ops(tmp_path):
    def pooled(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), "VALID")

    result = jax2tf.export(pooled, None, "3, 4, 5, 6, 2", tmp_path / "m.tflite", progress=False)
    assert result.ops == 5  # and a Reshape before, between and behind them
