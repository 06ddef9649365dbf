"""Exports models to ONNX in a process in which `import tensorflow` raises.

    python models_without_tensorflow.py FOLDER

`export` compares the results of ONNX Runtime with those of JAX for two sizes of each open
dimension. The program prints a line of JSON for each model.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable, Iterator

if __name__ == "__main__":
    sys.modules["tensorflow"] = None  # type: ignore[assignment]

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jax2tf

# The functions of parameters and inputs, with the seed's shapes of parameters, and the specs.
MODELS: dict[str, tuple[Callable, dict[str, tuple[int, ...]] | None, object]] = {}


def model(params: dict[str, tuple[int, ...]] | None, *specs: object) -> Callable:
    """Enters a model with the shapes of its parameters and the specs of its inputs."""

    def enter(function: Callable) -> Callable:
        MODELS[function.__name__] = (function, params, specs)
        return function

    return enter


@model({"a": (8, 16), "b": (16,), "c": (16, 4)}, "b, 8")
def mlp(p, x):
    return {"probabilities": jax.nn.softmax(jax.nn.gelu(x @ p["a"] + p["b"]) @ p["c"])}


@model({"kernel": (3, 3, 3, 8), "out": (8, 5)}, "b, 16, 16, 3")
def cnn_with_pools(p, x):
    dimensions = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=dimensions)
    window = (1, 2, 2, 1)
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, window, window, "VALID")
    x = lax.reduce_window(x, 0.0, lax.add, window, window, "SAME") / 4
    return x.mean((1, 2)) @ p["out"]


def _layer_norm(x, scale, bias):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


WIDTH = 8


@model(
    {
        **dict.fromkeys(("query", "key", "value", "project"), (WIDTH, WIDTH)),
        **{"scale": (WIDTH,), "bias": (WIDTH,)},
        **{"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)},
    },
    "b, n, 8",
)
def transformer_block(p, x):
    batch, length, _ = x.shape
    h = _layer_norm(x, p["scale"], p["bias"])

    def heads(name):
        return (h @ p[name]).reshape(batch, length, 2, WIDTH // 2).transpose(0, 2, 1, 3)

    scores = heads("query") @ heads("key").swapaxes(2, 3) / np.sqrt(WIDTH // 2)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = (jax.nn.softmax(scores) @ heads("value")).swapaxes(1, 2).reshape(x.shape)
    x = x + mixed @ p["project"]
    return x + jax.nn.gelu(_layer_norm(x, p["scale"], p["bias"]) @ p["up"]) @ p["down"]


@model({"x": (3, 8), "h": (4, 8), "xn": (3, 4), "hn": (4, 4)}, "b, t, 3")
def gru_by_scan(p, x):
    def step(h, x):
        z, r = jnp.split(jax.nn.sigmoid(x @ p["x"] + h @ p["h"]), 2, -1)
        h = (1 - z) * jnp.tanh(x @ p["xn"] + (r * h) @ p["hn"]) + z * h
        return h, h

    last, states = lax.scan(step, jnp.zeros((x.shape[0], 4)), x.swapaxes(0, 1))
    return last, states.swapaxes(0, 1)


@model(None, "b")
def square_root_by_while_loop(x):
    x = jnp.abs(x) + 1

    def is_far(state):
        return jnp.any(jnp.abs(state[0] ** 2 - x) > 1e-4)

    def newton(state):
        y, n = state
        return (y + x / y) / 2, n + 1

    return lax.while_loop(is_far, newton, (jnp.ones_like(x), 0))


@model(None, "2:uint32")
def normal_by_key(key):
    return jax.random.normal(jax.random.wrap_key_data(key), (4, 3))


@model(None, "b, 7")
def sort_and_top_k(x):
    return jnp.sort(x), jnp.argsort(x, -1), lax.top_k(x, 3)


@model(None, "9, b", "5:int32")
def gather_and_scatter(x, i):
    taken = jnp.take_along_axis(x, i[:, None] + jnp.zeros_like(x[:1], jnp.int32), 0)
    return x[i], x.at[i].add(1.0), x.at[i].max(2.0), taken


@model(None, ":int32", "b, 2")
def branches(i, x):
    y = lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)
    return lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: -y, y)


@model(None, "2*b + 1, n")
def sizes_by_name(x):
    rows, columns = x.shape
    return x[: rows // 2].reshape(-1) * rows, jnp.arange(columns) % 3, x.cumsum(0)


@model(None, "3, 3", "b, 6")
def decompositions(x, y):
    return jnp.linalg.svd(x)[1], jnp.linalg.qr(x.T @ x)[1], jnp.fft.rfft(y).real


def lines(folder: pathlib.Path) -> Iterator[str]:
    """Exports each model; gives its name with the sizes of its outputs, or its error."""
    random = np.random.default_rng(0)
    for name, (function, shapes, specs) in MODELS.items():
        params = None
        if shapes is not None:
            params = {key: random.normal(size=s).astype(np.float32) for key, s in shapes.items()}
        try:
            path = folder / f"{name}.onnx"
            result = jax2tf.export(function, params, specs, path, progress=False)
        except Exception as error:
            yield json.dumps([name, f"{type(error).__name__}: {error}", []])
            continue
        yield json.dumps([name, "", sorted(result.differences["serving_default"])])


if __name__ == "__main__":
    for line in lines(pathlib.Path(sys.argv[1])):
        print(line, flush=True)
