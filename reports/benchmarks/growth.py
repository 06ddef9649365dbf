"""`python -m reports growth`: how conversion and calls grow with a program, into growth.md.

Conversion against the number of equations and of layers, a call against the length and the batch of
what it gets: each size beside jax.jit, in rounds, as `bench` does. The exponent of the growth is
the slope of the median seconds on logarithmic axes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.progress import track

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine.adapter import Adapter
from reports import rendering
from reports.benchmarks import timing
from reports.benchmarks.files import growth_files
from reports.benchmarks.programs import decoder_args, transformer
from reports.benchmarks.timing import Paired, cold, fresh, paired, repeated

Fun = Callable[..., Any]


@dataclass(frozen=True)
class Axis:
    """What grows, and what is measured of it.

    Attributes:
      name: what there is more and more of.
      sizes: how many, rising.
      make: the function and its arguments, for a size.
      times: what is timed, "conversion" or "call".
    """

    name: str
    sizes: Sequence[int]
    make: Callable[[int], tuple[Fun, tuple[Any, ...]]]
    times: str


def chain(size: int) -> tuple[Fun, tuple[Any, ...]]:
    """A vector through `size` functions in random order: nothing in it repeats."""
    functions = (jnp.sin, jnp.cos, jnp.tanh, jnp.abs, jnp.negative, jnp.floor, jnp.sign, jnp.ceil)
    order = np.random.default_rng(20).integers(len(functions), size=size)

    def fun(x: jax.Array) -> jax.Array:
        for i in order:
            x = functions[i](x)
        return x

    return fun, (np.ones(8, np.float32),)


def decoder(*, layers: int = 2, length: int = 32, batch: int = 1) -> tuple[Fun, tuple[Any, ...]]:
    """A transformer without inner jit, and its arguments."""
    args = decoder_args(layers=layers, width=128, vocabulary=100, batch=batch, length=length)
    return partial(transformer, heads=4, inner_jit=False), args


def axes(*, quick: bool) -> list[Axis]:
    """All that grows."""
    equations = (100, 300) if quick else (1_000, 10_000, 100_000)
    layers = (1, 2) if quick else (6, 12, 24, 48, 96)
    lengths = (8, 16) if quick else (16, 64, 256, 1024)
    batches = (1, 2) if quick else (1, 4, 16, 64)
    return [
        Axis("equations", equations, chain, "conversion"),
        Axis("layers", layers, lambda n: decoder(layers=n), "conversion"),
        Axis("length", lengths, lambda n: decoder(length=n), "call"),
        Axis("batch", batches, lambda n: decoder(batch=n), "call"),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def main(options: argparse.Namespace, console: Console) -> int:
    adapter = Adapter(options.impl)
    measure = {"conversion": _conversion, "call": _call}
    found: list[dict[str, Any]] = []
    for axis in axes(quick=options.quick):
        points = [
            measure[axis.times](adapter, axis, size)
            for size in track(axis.sizes, description=axis.name, console=console)
        ]
        found.append(
            {
                "name": axis.name,
                "times": axis.times,
                "points": points,
                "exponents": exponents(points),
            }
        )
    data = timing.circumstances(options.impl)
    data |= {"quick": options.quick, "axes": found}
    for path in rendering.write(growth_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 0


def exponents(points: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The slope of log seconds over log size, for each contender, by least squares."""
    sizes = [math.log(point["size"]) for point in points]
    return {
        name: float(
            np.polyfit(sizes, [math.log(p["seconds"][name]["median"]) for p in points], 1)[0]
        )
        for name in points[0]["seconds"]
    }


def _conversion(adapter: Adapter, axis: Axis, size: int) -> dict[str, Any]:
    fun, args = axis.make(size)
    specs = jax.tree.map(lambda a: tf.TensorSpec(a.shape, a.dtype), args)

    def to_graph() -> Any:
        converted = adapter.convert(fresh(fun), "xla", with_gradient=True)
        return tf.function(converted, autograph=False).get_concrete_function(*specs)

    def to_stablehlo() -> Any:
        return jax.jit(fresh(fun)).trace(*args).lower()

    contenders = {"jax.jit": to_stablehlo, "graph": to_graph}
    rounds = 3 if size <= 10_000 else 2
    return _point(size, paired(rounds, {name: partial(cold, f) for name, f in contenders.items()}))


def _call(adapter: Adapter, axis: Axis, size: int) -> dict[str, Any]:
    fun, args = axis.make(size)
    jitted, arrays = jax.jit(fun), jax.device_put(args)
    tensors = jax.tree.map(tf.constant, args)
    graph, compiled = (
        tf.function(adapter.convert(fresh(fun), "xla", with_gradient=True), autograph=False, **way)
        for way in ({}, {"jit_compile": True})
    )
    contenders = {
        "jax.jit": lambda: jax.block_until_ready(jitted(*arrays)),
        "graph": lambda: graph(*tensors),
        "compiled": lambda: compiled(*tensors),
    }
    return _point(size, paired(7, {name: repeated(f) for name, f in contenders.items()}))


def _point(size: int, measured: Paired) -> dict[str, Any]:
    return {"size": size} | asdict(measured)
