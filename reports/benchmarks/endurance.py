"""`python -m reports endurance`: what many conversions leave behind, and many threads at once.

Each kind of work runs in a process of its own, thousands of times, and drops what it makes. What
stays is the resident memory of the process, as Linux counts it, once free memory has gone back to
the system, and the graphs of TensorFlow that are alive. What goes with jax.clear_caches() is not
the converter's, and is counted apart. Beside each kind of work stands what JAX or TensorFlow leave
behind of the same by themselves.

The threads convert a function each, beside the same conversions one after the other.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from rich.console import Console

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine.adapter import Adapter
from reports import rendering
from reports.benchmarks import timing
from reports.benchmarks.files import ENDURANCE_LIMIT, endurance_files
from reports.benchmarks.memory import resident
from reports.benchmarks.programs import Size, programs
from reports.benchmarks.timing import Call, Paired, fresh, paired
from reports.benchmarks.workloads import workloads

# Python's own allocator and glibc's keep what is free where something in use is beside it.
_COUNTED = {"PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
THREADS = 8
# What threads convert, by name.
_CONVERTED = ("mlp", "transformer", "random-heavy", "lstm")

Step = Callable[[int], Any]


@dataclass(frozen=True)
class Work:
    """What is done many times.

    Attributes:
      words: what the table says.
      make: given the implementation, a function that does it for a number.
      times: how often, in a run that is not quick.
      beside: the work of JAX or TensorFlow alone that it is compared with; None for such a work.
    """

    words: str
    make: Callable[[Adapter], Step]
    times: int
    beside: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--work", choices=WORKS, help="print what one kind of work leaves, alone")


def main(options: argparse.Namespace, console: Console) -> int:
    if options.work:
        print(json.dumps(_measure(options)))
        return 0
    left: dict[str, Any] = {}
    for name, work in WORKS.items():
        console.print(f"measuring {name}")
        left[name] = {"words": work.words, "beside": work.beside} | _in_a_process(options, name)
    console.print("measuring threads")
    threads = _measure_threads(Adapter(options.impl), quick=options.quick)
    data = timing.circumstances(options.impl)
    data |= {"quick": options.quick, "works": left, "threads": threads, "n_threads": THREADS}
    for path in rendering.write(endurance_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    too_much = {name: _surplus(left, name) for name, work in WORKS.items() if work.beside}
    too_much = {name: x for name, x in too_much.items() if x > ENDURANCE_LIMIT}
    for name, surplus in too_much.items():
        words = f"leaves {surplus:.0f} MB more than {left[name]['beside']}"
        console.print(f"{name} {words}; {ENDURANCE_LIMIT} are allowed", style="red")
    return 1 if too_much and not options.quick else 0


def _surplus(left: Mapping[str, Any], name: str) -> float:
    return left[name]["cleared"] - left[left[name]["beside"]]["cleared"]


# --- What stays -----------------------------------------------------------------------------


def _in_a_process(options: argparse.Namespace, work: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "reports", "endurance", "--work", work, "--impl", options.impl]
    command += ["--quick"] if options.quick else []
    environment = os.environ | _COUNTED
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    """The megabytes that a kind of work leaves, with what JAX caches and without it."""
    work = WORKS[options.work]
    times = work.times // 100 if options.quick else work.times
    # What the first times bring in: modules, kernels, the small caches of the libraries.
    _do(work, options.impl, max(20, times // 20))
    jax.clear_caches()
    before = _held()
    kept = _do(work, options.impl, times)
    after = _held()
    # The function that met all the shapes goes, with what it keeps of them.
    del kept
    jax.clear_caches()
    cleared = _held()
    return {
        "times": times,
        "left": after["megabytes"] - before["megabytes"],
        "cleared": cleared["megabytes"] - before["megabytes"],
        "graphs": after["graphs"] - before["graphs"],
    }


def _do(work: Work, implementation: str, times: int) -> Step:
    step = work.make(Adapter(implementation))
    for i in range(times):
        step(i)
    return step


def _held() -> dict[str, float]:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return {
        "megabytes": resident("VmRSS") / 1e6,
        "graphs": sum(issubclass(type(o), tf.Graph) for o in gc.get_objects()),
    }


def small_function() -> Callable[[jax.Array, jax.Array], jax.Array]:
    """A function of ten equations, which calls an inner jitted one twice; a new one each time."""

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return jnp.tanh(x) * 2.0 + jnp.sin(x)

    def fun(x: jax.Array, y: jax.Array) -> jax.Array:
        a = inner(x)
        b = inner(a + y)
        return jnp.sum(a * b, axis=0) + jnp.cos(b)

    return fun


_KNOWN, _UNKNOWN = tf.TensorSpec([3, 4], tf.float32), tf.TensorSpec([None, 4], tf.float32)


def _graph(fun: Callable[..., Any], spec: tf.TensorSpec) -> Any:
    return tf.function(fun, autograph=False).get_concrete_function(spec, spec)


def _conversions(adapter: Adapter) -> Step:
    """Of five one has a polymorphic batch, and one a tape in its graph."""

    def step(i: int) -> None:
        shapes = "b, ..." if i % 5 == 1 else None
        fun = adapter.convert(
            small_function(), "xla", with_gradient=True, polymorphic_shapes=shapes
        )

        def differentiated(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(fun(x, y))
            return tape.gradient(loss, x)

        _graph(differentiated if i % 5 == 2 else fun, _UNKNOWN if shapes else _KNOWN)

    return step


def _shapes(adapter: Adapter) -> Step:
    fun = adapter.convert(small_function(), "xla", with_gradient=True)

    def step(i: int) -> None:
        x = tf.zeros([1 + i, 2])
        fun(x, x)

    return step


def _graphs_of_shapes(adapter: Adapter) -> Step:
    fun = adapter.convert(small_function(), "xla", with_gradient=True)
    return lambda i: _graph(fun, tf.TensorSpec([1 + i, 2], tf.float32))


def _calls_of_tensorflow(adapter: Adapter) -> Step:
    def step(i: int) -> None:
        called = adapter.call_tf(tf.function(_called, autograph=False))
        jax.jit(lambda x: called(x) + 1.0)(np.ones(3, np.float32))

    return step


def _called(x: tf.Tensor) -> tf.Tensor:
    return tf.sin(x) * 2.0


def _jitted(adapter: Adapter) -> Step:
    del adapter
    x = jax.ShapeDtypeStruct((3, 4), np.float32)
    return lambda i: jax.jit(small_function()).trace(x, x)


def _jitted_for_shapes(adapter: Adapter) -> Step:
    del adapter
    jitted = jax.jit(small_function())

    def step(i: int) -> None:
        x = jax.ShapeDtypeStruct((1 + i, 2), np.float32)
        jitted.trace(x, x)

    return step


def _empty_graphs(adapter: Adapter) -> Step:
    del adapter
    return lambda i: _graph(lambda x, y: x, _KNOWN)


def _compilations(adapter: Adapter) -> Step:
    del adapter
    spec = tf.TensorSpec([3], tf.float32)

    def step(i: int) -> None:
        inner = tf.function(_called, autograph=False)
        fun = tf.function(lambda x: [inner(x)], autograph=False, jit_compile=True)
        fun.experimental_get_compiler_ir(spec)(stage="hlo_serialized", platform_name="CPU")

    return step


WORKS: Mapping[str, Work] = {
    "conversions": Work(
        "a new function converted to a graph", _conversions, 10_000, "jax.jit of functions"
    ),
    "jax.jit of functions": Work("a new function traced by jax.jit", _jitted, 10_000),
    "empty graphs": Work("a new tf.function that returns its argument", _empty_graphs, 10_000),
    "shapes": Work(
        "one converted function, called eagerly with a new shape",
        _shapes,
        10_000,
        "jax.jit of shapes",
    ),
    "graphs of shapes": Work(
        "a new tf.function of one converted function, for a new shape",
        _graphs_of_shapes,
        10_000,
        "jax.jit of shapes",
    ),
    "jax.jit of shapes": Work("one jax.jit traced for a new shape", _jitted_for_shapes, 10_000),
    "call_tf": Work(
        "a new TensorFlow function called in a new jax.jit",
        _calls_of_tensorflow,
        1_000,
        "compilations",
    ),
    "compilations": Work("a new tf.function compiled to HLO", _compilations, 1_000),
}


# --- Threads --------------------------------------------------------------------------------


def _measure_threads(adapter: Adapter, *, quick: bool) -> list[dict[str, Any]]:
    size: Size = "small" if quick else "full"
    chosen = [p for p in programs(size) + workloads(size) if p.name in _CONVERTED]
    rounds = 2 if quick else 5
    rows = []
    for program in chosen:
        args = program.make_args()
        specs = jax.tree.map(lambda a: tf.TensorSpec(a.shape, a.dtype), args)

        def convert(fun: Callable[..., Any], specs: Any = specs) -> Any:
            converted = adapter.convert(fun, "xla", with_gradient=True)
            return tf.function(converted, autograph=False).get_concrete_function(*specs)

        times = _in_turn_and_in_threads(rounds, convert, program.fun)
        _check_threads(convert, program.fun, args)
        rows.append({"program": program.name, "rounds": rounds, **asdict(times)})
    return rows


def _in_turn_and_in_threads(
    rounds: int, convert: Callable[[Callable[..., Any]], Any], fun: Callable[..., Any]
) -> Paired:
    """Seconds for THREADS conversions, one after the other and in as many threads."""

    def in_turn() -> None:
        for _ in range(THREADS):
            convert(fresh(fun))

    with ThreadPoolExecutor(THREADS) as pool:
        contenders: dict[str, Call] = {
            "in turn": in_turn,
            "in threads": partial(_in_threads, pool, convert, fun),
        }
        return paired(rounds, {name: partial(timing.cold, f) for name, f in contenders.items()})


def _in_threads(
    pool: ThreadPoolExecutor, convert: Callable[[Callable[..., Any]], Any], fun: Callable[..., Any]
) -> Sequence[Any]:
    return list(pool.map(convert, [fresh(fun) for _ in range(THREADS)]))


def _check_threads(
    convert: Callable[[Callable[..., Any]], Any], fun: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    """Raises AssertionError unless each thread's graph gives what the function in JAX gives.

    Each thread converts a function of its own, that adds the number of the thread.
    """
    jax.clear_caches()
    functions = [lambda *args, n=n: fun(*args) + n for n in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        graphs = list(pool.map(convert, functions))
    expected = np.asarray(jax.jit(fun)(*args))
    for n, graph in enumerate(graphs):
        np.testing.assert_allclose(
            graph(*jax.tree.map(tf.constant, args)).numpy(), expected + n, 1e-3, 1e-3
        )
