"""The programs into which `python -m reports located` plants faults."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src import ops
from jax2tf._src.lowering import registry


@dataclasses.dataclass(frozen=True)
class Model:
    """A function with its parameters, the specs of its inputs, and engines for its files."""

    function: Callable[..., Any]
    params: Any
    specs: Any
    engines: tuple[str, ...] = ("onnx", "litert", "openvino", "tfjs")


def _arrays(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
        for name, shape in shapes.items()
    }


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * (1 + scale)


def _attention(layer: Any, x: jax.Array) -> jax.Array:
    q, k, v = (x @ layer[name] for name in ("q", "k", "v"))
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 4)
    return (weights @ v) @ layer["o"]


def _transformer(params: Any, x: jax.Array) -> dict[str, jax.Array]:
    for layer in params:
        x = x + _attention(layer, _norm(x, layer["s"]))
        x = x + jax.nn.gelu(_norm(x, layer["t"]) @ layer["up"]) @ layer["down"]
    return {"y": x}


def _layer(seed: int) -> dict[str, np.ndarray]:
    square = dict.fromkeys(("q", "k", "v", "o"), (16, 16))
    return _arrays(seed, s=(16,), t=(16,), up=(16, 32), down=(32, 16), **square)


def _network(params: Any, x: jax.Array) -> dict[str, jax.Array]:
    for i in range(4):
        x = jnp.tanh(x @ params[f"w{i}"] + params[f"b{i}"])
    return {"y": jax.nn.softmax(x), "norm": jnp.sqrt((x**2).sum(-1))}


def _images(params: Any, x: jax.Array) -> dict[str, jax.Array]:
    for name in ("a", "b", "c"):
        x = lax.conv_general_dilated(
            x, params[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x * (1 + params[f"s{name}"]) + params[f"t{name}"])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return {"y": jax.nn.log_softmax(x.mean((1, 2)) @ params["out"])}


_UNARY = (jnp.sin, jnp.cos, jnp.tanh, jax.nn.sigmoid, jnp.abs, jnp.square, jax.nn.relu, jnp.exp)
_BINARY = (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum)


def _random(seed: int) -> Model:
    """A program of random ops over arrays of one shape."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 4, 24)
    which = rng.integers(0, 1000, (24, 3))
    weights = _arrays(seed, **{f"w{i}": (6, 6) for i in range(24)})

    def function(params: Any, x: jax.Array) -> dict[str, jax.Array]:
        values = [x]
        for i, (kind, (a, b, c)) in enumerate(zip(chosen, which, strict=True)):
            y = values[-1 - int(a) % min(3, len(values))]
            if kind == 0:
                y = _UNARY[int(b) % len(_UNARY)](y)
            elif kind == 1:
                y = _BINARY[int(b) % len(_BINARY)](y, values[int(c) % len(values)])
            elif kind == 2:
                y = y @ params[f"w{i}"]
            else:
                y = y - y.sum(-1, keepdims=True) / 6
            values.append(jnp.clip(y, -10, 10))
        return {"y": sum(values[-3:], jnp.zeros(()))}

    return Model(function, weights, "b, 6")


_SQUARES = {f"w{i}": (12, 12) for i in range(4)} | {f"b{i}": (12,) for i in range(4)}
_FILTERS = {"a": (3, 3, 3, 8), "b": (3, 3, 8, 8), "c": (3, 3, 8, 8), "out": (8, 5)}
_CHANNELS = {f"{kind}{name}": (8,) for kind in "st" for name in "abc"}

MODELS = {
    "network": Model(_network, _arrays(0, **_SQUARES), "b, 12"),
    **{f"random program {i}": _random(i) for i in range(5)},
    "transformer of 12 layers": Model(
        _transformer, [_layer(i) for i in range(12)], "b, 5, 16", ("onnx",)
    ),
    "convolutions": Model(_images, _arrays(1, **_FILTERS, **_CHANNELS), "b, 8, 8, 3"),
}


_WRONG: dict[Any, Callable[..., Any]] = {
    lax.tanh_p: lambda ctx, x: ops.raw.Sin(x=x),
    lax.sin_p: lambda ctx, x: ops.raw.Cos(x=x),
    lax.cos_p: lambda ctx, x: ops.raw.Sin(x=x),
    lax.exp_p: lambda ctx, x: ops.raw.Tanh(x=x),
    lax.rsqrt_p: lambda ctx, x: ops.raw.Sqrt(x=x),
    lax.sqrt_p: lambda ctx, x: ops.raw.Square(x=x),
    lax.square_p: lambda ctx, x: ops.raw.Abs(x=x),
    lax.abs_p: lambda ctx, x: ops.raw.Neg(x=x),
    lax.max_p: lambda ctx, x, y: ops.raw.Minimum(x=x, y=y),
    lax.min_p: lambda ctx, x, y: ops.raw.Maximum(x=x, y=y),
    lax.sub_p: lambda ctx, x, y: ops.raw.AddV2(x=x, y=y),
    lax.logistic_p: lambda ctx, x: ops.raw.Tanh(x=x),
}


def wrong_rules(model: Model, most: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Contexts in which the rule of a primitive of the model makes another op."""
    shape = [2 if size == "b" else int(size) for size in model.specs.split(", ")]
    jaxpr = jax.make_jaxpr(model.function)(model.params, np.zeros(shape, np.float32))
    names = str(jaxpr)
    used = [p for p in _WRONG if f" {p.name} " in names or f" {p.name}[" in names]
    for primitive in used[:most]:
        yield primitive.name, functools.partial(_planted, primitive)


@contextlib.contextmanager
def _planted(primitive: Any) -> Iterator[None]:
    rules = registry._RULES[primitive]
    kept = dict(rules)
    rules.update(dict.fromkeys(rules, registry.Rule(_WRONG[primitive], frozenset(), False, False)))
    try:
        yield
    finally:
        rules.update(kept)
