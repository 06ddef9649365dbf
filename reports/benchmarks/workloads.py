"""Programs of more kinds for the benchmark: networks, decoding, solvers, sorts, linear algebra.

Conversion is measured by the five of programs.py; these say whether other users' programs run as
fast as jax.jit. Each has two sizes: "full" for measurements, "small" for tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from reports.benchmarks import by_hand
from reports.benchmarks.programs import (
    Maker,
    Program,
    Size,
    batch_norm,
    conv,
    decoder_args,
    dense,
    layer_norm,
    resnet,
    transformer,
)


def workloads(size: Size = "full") -> list[Program]:
    """Every workload, at a size."""
    full = size == "full"
    deep = partial(
        decoder_args,
        layers=48 if full else 3,
        width=128 if full else 16,
        vocabulary=1000 if full else 50,
        batch=2,
        length=32 if full else 8,
    )
    sizes = ((10**3, "1e3"), (10**5, "1e5"), (10**7, "1e7")) if full else ((10**3, "1e3"),)
    orders = (64, 256, 1024) if full else (16,)
    # XLA's loops take 16 seconds for the eigenvalues of 1024.
    matrices: list[tuple[str, Callable[[jax.Array], jax.Array], tuple[int, ...]]] = [
        ("solve", solve, orders),
        ("cholesky", jnp.linalg.cholesky, orders),
        ("eigh", modes, orders[:2]),
    ]
    return [
        Program("lstm", lstm, partial(lstm_args, width=256 if full else 8), by_hand=by_hand.lstm),
        Program("resnet50", resnet50, partial(resnet50_args, width=64 if full else 8)),
        Program(
            "transformer, 48 layers",
            partial(transformer, heads=4, inner_jit=False),
            deep,
            by_hand=partial(by_hand.transformer, heads=4),
        ),
        Program("decoding", decoding, partial(decoding_args, width=256 if full else 16)),
        Program(
            "mixture of experts",
            experts,
            partial(experts_args, width=256 if full else 8),
            has_batch=False,
        ),
        Program(
            "ODE solve", ode_solve, partial(ode_args, bodies=64 if full else 4), has_batch=False
        ),
        Program("embedding bags", embedding_bags, partial(bags_args, rows=10**5 if full else 50)),
        Program(
            "shallow water",
            shallow_water,
            partial(water_args, side=256 if full else 16),
            has_batch=False,
        ),
        *(
            Program(f"{name}, {words}", fun, partial(numbers_args, count), has_batch=False)
            for name, fun in (("sort", jnp.sort), ("cumsum", jnp.cumsum), ("top_k", largest))
            for count, words in sizes
            if (name, words) != ("sort", "1e7")  # three seconds a call, whoever makes it
        ),
        *(
            Program(
                f"{name}, {order}",
                fun,
                partial(matrix_args, order),
                has_batch=False,
                has_custom_calls=True,
            )
            for name, fun, orders in matrices
            for order in orders
        ),
    ]


# --- Networks -------------------------------------------------------------------------------


def lstm(params: dict[str, Any], sequences: jax.Array) -> jax.Array:
    """Scores `[batch, 10]` of the last state of an LSTM over `sequences` `[batch, time, width]`.

    Hochreiter, Schmidhuber: Long Short-Term Memory, 1997, with a forget gate.
    """
    width = params["recurrent"].shape[0]

    def step(state: Any, x: jax.Array) -> Any:
        hidden, cell = state
        gates = dense(params["input"], x) + hidden @ params["recurrent"]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), None

    begin = jnp.zeros((sequences.shape[0], width))
    (hidden, _), _ = lax.scan(step, (begin, begin), sequences.swapaxes(0, 1))
    return dense(params["head"], hidden)


def lstm_args(*, width: int, batch: int = 16, length: int = 64) -> tuple[Any, ...]:
    make = Maker(seed=10)
    params = {
        "input": make.dense(width, 4 * width),
        "recurrent": make.normal(width, 4 * width, scale=1 / math.sqrt(width)),
        "head": make.dense(width, 10),
    }
    return params, make.normal(batch, length, width)


_DEPTHS = ((3, 1), (4, 2), (6, 2), (3, 2))  # blocks of a stage, stride of the first


def resnet50(params: dict[str, Any], images: jax.Array) -> jax.Array:
    """Logits `[batch, 10]` of images `[batch, height, width, 3]`: bottleneck blocks.

    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015 (table 1).
    """
    return resnet(params, images, _bottleneck, [stride for _, stride in _DEPTHS])


def _bottleneck(block: dict[str, Any], x: jax.Array, *, stride: int) -> jax.Array:
    y = jax.nn.relu(batch_norm(block["norm1"], conv(x, block["conv1"], stride=1)))
    y = jax.nn.relu(batch_norm(block["norm2"], conv(y, block["conv2"], stride=stride)))
    y = batch_norm(block["norm3"], conv(y, block["conv3"], stride=1))
    if "shortcut" in block:
        x = batch_norm(block["shortcut_norm"], conv(x, block["shortcut"], stride=stride))
    return jax.nn.relu(x + y)


def resnet50_args(*, width: int, batch: int = 2, image: int = 64) -> tuple[Any, ...]:
    make = Maker(seed=11)
    stages: list[list[dict[str, Any]]] = []
    channels = width
    for level, (depth, _) in enumerate(_DEPTHS):
        inner, out = width * 2**level, 4 * width * 2**level
        stages.append([])
        for i in range(depth):
            block = {
                "conv1": make.conv(1, channels, inner),
                "norm1": make.batch_norm(inner),
                "conv2": make.conv(3, inner, inner),
                "norm2": make.batch_norm(inner),
                "conv3": make.conv(1, inner, out),
                "norm3": make.batch_norm(out),
            }
            if i == 0:
                block["shortcut"] = make.conv(1, channels, out)
                block["shortcut_norm"] = make.batch_norm(out)
            stages[-1].append(block)
            channels = out
    stem = {"stem": make.conv(7, 3, width), "stem_norm": make.batch_norm(width)}
    params = stem | {"stages": stages, "head": make.dense(channels, 10)}
    return params, make.normal(batch, image, image, 3)


def decoding(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """Logits `[batch, vocabulary]` after 16 greedy steps from `tokens` `[batch]`.

    A step computes one token; keys and values of those before are in a cache, which it writes.
    """
    steps = 16
    layers, heads, wide = len(params["layers"]), 8, params["embedding"].shape[1]
    batch = tokens.shape[0]
    cache = jnp.zeros((layers, 2, batch, steps, heads, wide // heads))

    def step(i: jax.Array, state: Any) -> Any:
        token, cache, _ = state
        x = params["embedding"][token] + params["positions"][i]
        for n, layer in enumerate(params["layers"]):
            mixed, kept = _cached_attention(
                layer["attention"], layer_norm(layer["norm1"], x), cache[n], i, heads
            )
            cache = cache.at[n].set(kept)
            x = x + mixed
            x = x + dense(
                layer["down"], jax.nn.gelu(dense(layer["up"], layer_norm(layer["norm2"], x)))
            )
        logits = layer_norm(params["norm"], x) @ params["embedding"].T
        return logits.argmax(-1).astype(token.dtype), cache, logits

    logits = jnp.zeros((batch, params["embedding"].shape[0]))
    return lax.fori_loop(0, steps, step, (tokens, cache, logits))[2]


def _cached_attention(
    params: dict[str, Any], x: jax.Array, cache: jax.Array, place: jax.Array, heads: int
) -> tuple[jax.Array, jax.Array]:
    """Attention of `x` `[batch, width]` over the cache `[2, batch, steps, heads, size]`."""
    batch, wide = x.shape
    q, k, v = (
        dense(params[name], x).reshape(batch, heads, wide // heads)
        for name in ("query", "key", "value")
    )
    cache = lax.dynamic_update_slice(cache, jnp.stack([k, v])[:, :, None], (0, 0, place, 0, 0))
    keys, values = cache
    scores = jnp.einsum("bhd,bshd->bhs", q, keys) / math.sqrt(wide // heads)
    scores = jnp.where(jnp.arange(keys.shape[1]) <= place, scores, -jnp.inf)
    mixed = jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), values)
    return dense(params["out"], mixed.reshape(batch, wide)), cache


def decoding_args(*, width: int, batch: int = 4) -> tuple[Any, ...]:
    params, tokens = decoder_args(layers=4, width=width, vocabulary=1000, batch=batch, length=16)
    return params, tokens[:, 0]


def experts(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """`tokens` `[count, width]` through two of eight experts each, as the router chooses.

    Shazeer et al.: Outrageously Large Neural Networks, 2017; an expert takes a bounded number.
    """
    count = params["up"].shape[0]
    capacity = 2 * tokens.shape[0] // count
    weights, chosen = lax.top_k(jax.nn.softmax(tokens @ params["router"]), 2)
    wanted = jax.nn.one_hot(chosen, count)  # [token, choice, expert]
    place = jnp.cumsum(wanted.reshape(-1, count), axis=0).reshape(wanted.shape) - 1
    taken = jax.nn.one_hot(place.astype(jnp.int32), capacity) * wanted[..., None]
    inputs = jnp.einsum("tkec,td->ecd", taken, tokens)
    hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", inputs, params["up"]))
    outputs = jnp.einsum("ecf,efd->ecd", hidden, params["down"])
    return jnp.einsum("tkec,tk,ecd->td", taken, weights, outputs)


def experts_args(*, width: int, count: int = 8, tokens: int = 256) -> tuple[Any, ...]:
    make = Maker(seed=12)
    params = {
        "router": make.normal(width, count),
        "up": make.normal(count, width, 2 * width, scale=1 / math.sqrt(width)),
        "down": make.normal(count, 2 * width, width, scale=1 / math.sqrt(2 * width)),
    }
    return params, make.normal(tokens, width)


def embedding_bags(table: np.ndarray, rows: jax.Array) -> jax.Array:
    """The mean row `[bags, width]` of each bag of `rows` `[bags, size]` of a table."""
    return table[rows].mean(axis=1)


def bags_args(*, rows: int, width: int = 64, bags: int = 512, size: int = 32) -> tuple[Any, ...]:
    make = Maker(seed=13)
    return make.normal(rows, width), make.integers(rows, bags, size)


# --- Science --------------------------------------------------------------------------------


def ode_solve(masses: jax.Array, bodies: jax.Array) -> jax.Array:
    """Places and speeds `[bodies, 6]` under gravity at time 1, by steps whose error is bounded.

    Bogacki, Shampine: A 3(2) pair of Runge-Kutta formulas, 1989.
    """

    def slope(state: jax.Array) -> jax.Array:
        place, speed = jnp.split(state, 2, axis=-1)
        apart = place[None] - place[:, None]
        pull = masses[None, :, None] * apart
        pull = pull / (jnp.square(apart).sum(-1, keepdims=True) + 0.1) ** 1.5
        return jnp.concatenate([speed, pull.sum(1)], axis=-1)

    def step(carry: Any) -> Any:
        time, size, y = carry
        k1 = slope(y)
        k2 = slope(y + size / 2 * k1)
        k3 = slope(y + 0.75 * size * k2)
        after = y + size / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        k4 = slope(after)
        error = size * jnp.abs(-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8).max()
        good = error < 1e-4
        factor = jnp.clip(0.9 * (1e-4 / (error + 1e-12)) ** (1 / 3), 0.3, 3.0)
        time = jnp.where(good, time + size, time)
        return time, jnp.minimum(size * factor, 1.0001 - time), jnp.where(good, after, y)

    begin = (jnp.float32(0), jnp.float32(0.05), bodies)
    return lax.while_loop(lambda carry: carry[0] < 1, step, begin)[2]


def ode_args(*, bodies: int) -> tuple[Any, ...]:
    make = Maker(seed=14)
    return np.abs(make.normal(bodies)) / bodies, make.normal(bodies, 6)


def shallow_water(height: jax.Array, speeds: jax.Array) -> jax.Array:
    """Height, then speeds `[3, side, side]` of shallow water on a torus, after 20 steps.

    Lax and Friedrichs' scheme: Lax, Weak solutions of nonlinear hyperbolic equations, 1954.
    """

    def shift(x: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
        return jnp.roll(x, -1, axis), jnp.roll(x, 1, axis)

    def around(x: jax.Array) -> jax.Array:
        return sum((*shift(x, 0), *shift(x, 1)), jnp.zeros_like(x)) / 4

    def slope(x: jax.Array, axis: int) -> jax.Array:
        after, before = shift(x, axis)
        return (after - before) / 2

    def step(_: Any, state: jax.Array) -> jax.Array:
        h, hu, hv = state
        u, v = hu / h, hv / h
        pressure = 0.5 * h * h
        flows = [
            slope(hu, 0) + slope(hv, 1),
            slope(hu * u + pressure, 0) + slope(hu * v, 1),
            slope(hv * u, 0) + slope(hv * v + pressure, 1),
        ]
        return jnp.stack(
            [around(x) - 0.1 * flow for x, flow in zip((h, hu, hv), flows, strict=True)]
        )

    return lax.fori_loop(0, 20, step, jnp.concatenate([height[None], speeds]))


def water_args(*, side: int) -> tuple[Any, ...]:
    make = Maker(seed=15)
    return 2 + make.normal(side, side, scale=0.1), make.normal(2, side, side, scale=0.1)


# --- Orders and matrices --------------------------------------------------------------------


def largest(x: jax.Array) -> jax.Array:
    """The 64 largest numbers of a vector."""
    return lax.top_k(x, 64)[0]


def numbers_args(count: int) -> tuple[Any, ...]:
    return (Maker(seed=16).normal(count),)


def solve(x: jax.Array) -> jax.Array:
    """The solution of a linear system whose right side are ones."""
    return jnp.linalg.solve(x, jnp.ones(x.shape[0]))


def modes(x: jax.Array) -> jax.Array:
    """The eigenvalues of a symmetric matrix, those of its eigenvectors' squares beside."""
    values, vectors = jnp.linalg.eigh(x)
    return jnp.stack([values, jnp.square(vectors).sum(0)])


def matrix_args(order: int) -> tuple[Any, ...]:
    """A positive definite matrix whose eigenvalues lie between 1 and about 5."""
    x = Maker(seed=17).normal(order, order, scale=1 / math.sqrt(order))
    return (x @ x.T + np.eye(order, dtype=np.float32),)
