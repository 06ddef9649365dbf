"""`python -m reports overhead`: what a call of a TensorFlow function from JAX costs.

Beside another implementation of `call_tf` and beside the bare call of the TensorFlow function, in
one process, round after round in rotating order (as in `bench`): op by op, under jax.jit,
and the gradient under jax.jit; of a scalar, of an array of four megabytes, and of a small network
with captured variables. The table holds ratios to the other implementation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from rich.console import Console

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine.adapter import Adapter, ImplementationError, check_exists
from reports import rendering
from reports.benchmarks.files import overhead_files
from reports.benchmarks.timing import Call, circumstances, paired, repeated

UPSTREAM = "jax.experimental.jax2tf"
_ROUNDS = 15
_WAYS = ("op by op", "jit", "jit of grad")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a call_tf")
    parser.add_argument("--beside", default=UPSTREAM, help="the module to compare it with")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def main(options: argparse.Namespace, console: Console) -> int:
    try:
        check_exists(options.impl)
        check_exists(options.beside, "--beside")
    except ImplementationError as problem:
        console.print(str(problem), style="red", soft_wrap=True)
        return 2
    rounds = 2 if options.quick else _ROUNDS
    adapters = {"other": Adapter(options.beside), "this": Adapter(options.impl)}
    rows = []
    for name, make in _FUNCTIONS.items():
        for way in _WAYS:
            console.print(f"measuring {name}, {way}")
            calls = contenders(make, way, adapters)
            times = paired(rounds, {who: repeated(call) for who, call in calls.items()})
            rows.append({"function": name, "way": way, **asdict(times)})
    data = circumstances(options.impl)
    data |= {
        "beside": options.beside,
        "rounds": rounds,
        "quick": options.quick,
        "rows": rows,
    }
    for path in rendering.write(overhead_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 0


def contenders(
    make: Callable[[], tuple[Callable[..., Any], np.ndarray]],
    way: str,
    adapters: Mapping[str, Adapter],
) -> dict[str, Call]:
    """Calls of the same function: through each implementation, and of TensorFlow alone.

    Raises:
      AssertionError: if two of them do not agree.
    """
    fun, argument = make()
    x = jnp.asarray(argument)
    calls = {who: _call(adapter.call_tf(fun), way, x) for who, adapter in adapters.items()}
    expected = np.asarray(calls["other"]())
    np.testing.assert_allclose(np.asarray(calls["this"]()), expected, 1e-5, 1e-5)
    if way == "op by op":
        tensor = tf.constant(argument)
        calls["tensorflow"] = partial(fun, tensor)
    return calls


def _call(called: Callable[..., Any], way: str, x: jax.Array) -> Call:
    if way == "op by op":
        return lambda: jax.block_until_ready(called(x))
    if way == "jit of grad":
        jitted = jax.jit(jax.grad(lambda x: called(x).sum()))
    else:
        jitted = jax.jit(called)
    return lambda: jax.block_until_ready(jitted(x))


# What is called: a TensorFlow function and its argument.


def _scalar() -> tuple[Callable[..., Any], np.ndarray]:
    return tf.function(lambda x: x + 1.0, autograph=False), np.array(1.0, np.float32)


def _array() -> tuple[Callable[..., Any], np.ndarray]:
    return tf.function(lambda x: x + 1.0, autograph=False), np.ones((1024, 1024), np.float32)


def _network() -> tuple[Callable[..., Any], np.ndarray]:
    rng = np.random.default_rng(0)
    weights = [tf.Variable(rng.standard_normal((64, 64)).astype(np.float32)) for _ in range(3)]

    @partial(tf.function, autograph=False)
    def network(x: tf.Tensor) -> tf.Tensor:
        for weight in weights:
            x = tf.tanh(x @ weight)
        return x

    return network, rng.standard_normal((16, 64)).astype(np.float32)


_FUNCTIONS = {
    "x + 1 of a scalar": _scalar,
    "x + 1 of 4 MB": _array,
    "three layers with variables": _network,
}
