"""Programs of which the wheels write files, and what no environment of these may have."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def perceptron(params, x):
    for weights, bias in params:
        x = jax.nn.gelu(x @ weights + bias)
    return x


def convolutions(params, x):
    x = lax.conv_general_dilated(
        x, params, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.mean((1, 2))


def recurrent(params, xs):
    """A scan over time; sequences are of any length."""

    def step(h, x):
        h = jnp.tanh(x @ params["x"] + h @ params["h"])
        return h, h.sum(-1)

    return lax.scan(step, jnp.zeros((xs.shape[1], 6)), xs)


def until_large(x):
    return lax.while_loop(lambda c: abs(c[1]).sum() < 1e3, lambda c: (c[0] + 1, c[1] * 2), (0, x))


# A function, its parameters, the shape of its input, and a shape to try.
Case = tuple[Callable, object, str, tuple[int, ...]]
PROGRAMS: dict[str, Case] = {
    "perceptron": (
        perceptron,
        [(normal(8, 4), normal(4)), (normal(4, 3), normal(3))],
        "b, 8",
        (5, 8),
    ),
    "convolutions": (convolutions, normal(3, 3, 3, 8), "b, 16, 16, 3", (2, 16, 16, 3)),
    "recurrent": (recurrent, {"x": normal(4, 6), "h": normal(6, 6)}, "t, b, 4", (9, 2, 4)),
    "until large": (until_large, None, "b, 3", (4, 3)),
    "spectrum": (lambda x: jnp.abs(jnp.fft.rfft(x)), None, "b, 16", (3, 16)),
}


def assert_that_tensorflow_is_not_installed() -> set[str]:
    """The names of the installed distributions, of which none is TensorFlow's or Keras's."""
    assert importlib.util.find_spec("tensorflow") is None
    names = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    assert not any("tensorflow" in name or "keras" in name for name in names)
    return names
