"""`python -m reports memory`: what converting, saving, restoring and differentiating take.

The models are transformers of 50 million and of a billion parameters, and what is reported are
multiples of their size. Each step runs in a process of its own: what it takes at its peak
(resident, as Linux counts it) beyond what the process held before. The parameters are
tf.Variables, made before; what a step leaves behind counts too: a gradient for each parameter, the
restored parameters.

The first training step also traces, and has TensorFlow prepare the graph, which takes the same for
small parameters and for large ones: it is reported, and held against no limit.

Seconds of saving and restoring stand beside those in which as many bytes are written to a file and
read from it.
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
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from rich.console import Console

from harnesses.cell.names import DEFAULT_IMPLEMENTATION, LOWERINGS
from harnesses.engine.adapter import Adapter
from reports import rendering
from reports.benchmarks import timing
from reports.benchmarks.files import MEMORY_LIMIT, memory_files
from reports.benchmarks.programs import decoder_args, transformer

_SMALL = {"layers": 12, "width": 512, "vocabulary": 24_000, "batch": 1, "length": 64}
_MODELS = {
    "small": _SMALL,
    "large": _SMALL | {"layers": 20, "width": 2048},
    "quick": _SMALL | {"layers": 1, "width": 64, "vocabulary": 500},
}
_HEADS = 8
# What is freed goes back to the system at once. TensorFlow's allocator for oneDNN takes memory in
# regions, each twice the one before, and gives none back: its size says little about what is used.
_COUNTED = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
}
FIRST_STEP = "first_step"

_Make = Callable[[], tf.Module]
_BLOCK = 2**24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--lowering", default="xla", choices=LOWERINGS)
    parser.add_argument("--quick", action="store_true", help="a very small transformer alone")
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")
    parser.add_argument("--step", choices=STEPS, help="print what one step takes, alone")
    parser.add_argument("--model", choices=_MODELS, default="small", help="the model of --step")
    parser.add_argument("--bytes", type=int, help="how many its parameters have")
    parser.add_argument("--folder", help="where the step finds what an earlier one saved")


def main(options: argparse.Namespace, console: Console) -> int:
    if options.step:
        print(json.dumps(_measure(options)))
        return 0
    names = ["quick"] if options.quick else ["small", "large"]
    data = timing.circumstances(options.impl) | {
        "lowering": options.lowering,
        "quick": options.quick,
        "models": [_measured_model(options, name, console) for name in names],
    }
    for path in rendering.write(memory_files(data), options.into):
        console.print(f"wrote {path}", soft_wrap=True)
    too_much = [
        f"{step} of {model['megabytes']:.0f} MB takes {taken['ratio']:.2f} times the parameters' "
        f"size; {MEMORY_LIMIT} are allowed"
        for model in data["models"]
        for step, taken in model["steps"].items()
        if step != FIRST_STEP and taken["ratio"] >= MEMORY_LIMIT
    ]
    for words in too_much:
        console.print(words, style="red", soft_wrap=True)
    return 1 if too_much and not options.quick else 0


def _measured_model(options: argparse.Namespace, name: str, console: Console) -> dict[str, Any]:
    shapes = jax.eval_shape(lambda: decoder_args(**_MODELS[name])[0])
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    steps = {}
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        for step in STEPS:
            console.print(f"{step} of the {name} model")
            words = ["--model", name, "--bytes", str(size), "--step", step, "--folder", folder]
            taken = _in_a_process(options, words)
            steps[step] = {"ratio": taken["extra"] / size, "seconds": taken["seconds"]}
    return {"megabytes": size / 1e6, "steps": steps}


def _in_a_process(options: argparse.Namespace, words: Sequence[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "reports", "memory", *words]
    command += ["--impl", options.impl, "--lowering", options.lowering]
    environment = os.environ | _COUNTED
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _measure(options: argparse.Namespace) -> dict[str, float]:
    """The bytes that a step takes beyond what is there, and its seconds."""
    adapter, sizes = Adapter(options.impl), _MODELS[options.model]
    step = STEPS[options.step](partial(_module, adapter, options.lowering, sizes), options.bytes)
    start = time.perf_counter()
    extra = _peak(partial(step, options.folder))
    return {"extra": extra, "seconds": time.perf_counter() - start}


# --- Steps: each prepares, and gives what is measured ---------------------------------------


def _write(make: _Make, size: int) -> Callable[[str], Any]:
    """Writes as many bytes as the parameters have into a file."""
    block = bytes(range(256)) * (_BLOCK // 256)

    def write(folder: str) -> None:
        with (Path(folder) / "bytes").open("wb") as file:
            for start in range(0, size, _BLOCK):
                file.write(block[: size - start])

    return write


def _read(make: _Make, size: int) -> Callable[[str], Any]:
    """Reads them into an array."""
    return lambda folder: np.fromfile(Path(folder) / "bytes", np.uint8)


def _convert(make: _Make, size: int) -> Callable[[str], Any]:
    module = make()
    return lambda _: module.call.get_concrete_function()


def _save(make: _Make, size: int) -> Callable[[str], Any]:
    module = make()
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    return lambda folder: tf.saved_model.save(module, folder, options=options)


def _restore(make: _Make, size: int) -> Callable[[str], Any]:
    return tf.saved_model.load


def _first_step(make: _Make, size: int) -> Callable[[str], Any]:
    module = make()
    return lambda _: module.differentiate()


def _differentiate(make: _Make, size: int) -> Callable[[str], Any]:
    module = make()
    module.differentiate()
    return lambda _: module.differentiate()


# The order matters: what is restored was saved before.
STEPS: Mapping[str, Callable[[_Make, int], Callable[[str], Any]]] = {
    "write": _write,
    "read": _read,
    "convert": _convert,
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
