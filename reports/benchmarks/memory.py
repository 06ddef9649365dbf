"""`python -m reports memory`: what saving, restoring and differentiating a transformer take.

The transformer has 50 million parameters, and what is reported are multiples of their size. Each
step runs in a process of its own: what it takes at its peak (resident, as Linux counts it) beyond
what the process held before. The parameters are tf.Variables, made before; what a step leaves
behind counts too: a gradient for each parameter, the restored parameters.

The first training step also traces, and has TensorFlow prepare the graph, which takes the same for
small parameters and for large ones: it is reported, and held against no limit.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import tensorflow as tf
from rich.console import Console

from harnesses.cell.names import DEFAULT_IMPLEMENTATION, LOWERINGS
from harnesses.engine.adapter import Adapter
from harnesses.engine.versions import versions as engine_versions
from reports import rendering
from reports.benchmarks.files import MEMORY_LIMIT, memory_files
from reports.benchmarks.programs import decoder_args, transformer

_FULL = {"layers": 12, "width": 512, "vocabulary": 24_000, "batch": 1, "length": 64}
_QUICK = _FULL | {"layers": 1, "width": 64, "vocabulary": 500}
_HEADS = 8
# What is freed goes back to the system at once. TensorFlow's allocator for oneDNN takes memory in
# regions, each twice the one before, and gives none back: its size says little about what is used.
_COUNTED = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
}
FIRST_STEP = "first_step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--lowering", default="xla", choices=LOWERINGS)
    parser.add_argument("--quick", action="store_true", help="a small transformer")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--step", choices=STEPS, help="print the bytes of one step alone")
    parser.add_argument("--folder", help="where the step finds what an earlier one saved")


def main(options: argparse.Namespace, console: Console) -> int:
    if options.step:
        print(json.dumps(_measure(options)))
        return 0
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        measured = [_in_a_process(options, step, folder) for step in STEPS]
    ratios = [m["extra"] / m["parameters"] for m in measured]
    data = engine_versions(options.impl) | {
        "lowering": options.lowering,
        "quick": options.quick,
        "megabytes": measured[0]["parameters"] / 1e6,
        "steps": dict(zip(STEPS, ratios, strict=True)),
    }
    for path in rendering.write(memory_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    limited = {step: ratio for step, ratio in data["steps"].items() if step != FIRST_STEP}
    too_much = [step for step, ratio in limited.items() if ratio >= MEMORY_LIMIT]
    for step in too_much:
        words = f"takes {data['steps'][step]:.2f} times the parameters' size"
        console.print(f"{step} {words}; {MEMORY_LIMIT} are allowed", style="red")
    return 1 if too_much and not options.quick else 0


def _in_a_process(options: argparse.Namespace, step: str, folder: str) -> dict[str, int]:
    command = [sys.executable, "-m", "reports", "memory", "--step", step, "--folder", folder]
    command += ["--impl", options.impl, "--lowering", options.lowering]
    command += ["--quick"] if options.quick else []
    environment = os.environ | _COUNTED
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _measure(options: argparse.Namespace) -> dict[str, int]:
    """The bytes of the parameters, and those that the step takes beyond them."""
    sizes = _QUICK if options.quick else _FULL
    shapes = jax.eval_shape(lambda: decoder_args(**sizes)[0])
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    make = partial(_module, Adapter(options.impl), options.lowering, sizes)
    step = STEPS[options.step](make)
    return {"parameters": size, "extra": _peak(partial(step, options.folder))}


# --- Steps: each prepares, and gives what is measured ---------------------------------------


def _save(make: Callable[[], tf.Module]) -> Callable[[str], Any]:
    module = make()
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    return lambda folder: tf.saved_model.save(module, folder, options=options)


def _restore(make: Callable[[], tf.Module]) -> Callable[[str], Any]:
    return tf.saved_model.load


def _first_step(make: Callable[[], tf.Module]) -> Callable[[str], Any]:
    module = make()
    return lambda _: module.differentiate()


def _differentiate(make: Callable[[], tf.Module]) -> Callable[[str], Any]:
    module = make()
    module.differentiate()
    return lambda _: module.differentiate()


# The order matters: what is restored was saved before.
STEPS: Mapping[str, Callable[[Callable[[], tf.Module]], Callable[[str], Any]]] = {
    "save": _save,
    "restore": _restore,
    FIRST_STEP: _first_step,
    "differentiate": _differentiate,
}


def _module(adapter: Adapter, lowering: str, sizes: Mapping[str, int]) -> tf.Module:
    """The transformer as a module that owns its parameters."""
    params, tokens = decoder_args(**sizes)
    leaves, tree = jax.tree.flatten(params)
    del params
    module = tf.Module()
    # One after the other, so that no parameter is there twice.
    module.weights = [tf.Variable(leaves.pop(0)) for _ in range(len(leaves))]
    module.tokens = tf.constant(tokens)
    converted = adapter.convert(partial(transformer, heads=_HEADS), lowering, with_gradient=True)

    def call(tokens: tf.Tensor) -> tf.Tensor:
        return converted(jax.tree.unflatten(tree, module.weights), tokens)

    def differentiate() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(call(module.tokens)))
        return tape.gradient(loss, module.weights)

    spec = tf.TensorSpec(tokens.shape, tf.int32)
    module.call = tf.function(call, autograph=False, input_signature=[spec])
    module.differentiate = tf.function(differentiate, autograph=False, input_signature=[])
    return module


def _peak(step: Callable[[], Any]) -> int:
    """The bytes that a call takes at its peak beyond what is held before it."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    kept = step()
    del kept
    return resident("VmHWM") - before


def resident(field: str) -> int:
    """The bytes that Linux counts for this process: "VmRSS" now, "VmHWM" at the peak."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])
