"""`python -m reports engines`: models in engines beside Keras's, into reports/tables/engines.md.

Each architecture of reports/benchmarks/architectures.py is written in JAX and in Keras, with the
same weights.
Both become graphs of any batch, go through the engine's converter and run on the same inputs; both
have to give what jax.jit gives. Their calls take turns in one process, as in `python -m reports
bench`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from rich.console import Console

from harnesses.cell.names import DEFAULT_IMPLEMENTATION
from harnesses.engine import consumers
from harnesses.engine.adapter import Adapter
from harnesses.engine.consumers.graph import Graph, graph_of
from reports import rendering
from reports.benchmarks import timing
from reports.benchmarks.architectures import PAIRS, Pair, gpt_step, gpt_step_inputs
from reports.benchmarks.files import engine_files
from reports.results import ResultsError

ENGINES = {"litert": "LiteRT", "onnx": "ONNX Runtime", "openvino": "OpenVINO"}
# Times are related to the first.
CONTENDERS = ("keras", "jax", "finite")
# The largest difference from jax.jit, relative to its largest element.
AGREEMENT = 1e-4
_ROUNDS, _QUICK_ROUNDS = 15, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--impl", default=DEFAULT_IMPLEMENTATION, help="module with a convert")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this engine")
    parser.add_argument("--model", action="append", choices=PAIRS, help="only this model")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument(
        "--ops", action="store_true", help="count ops alone; the times of the table stay"
    )
    parser.add_argument("--into", type=Path, default=rendering.TABLES, help="the table's folder")


def main(options: argparse.Namespace, console: Console) -> int:
    adapter = Adapter(options.impl)
    if options.ops:
        data = _counted_anew(rendering.read_data("engines", options.into), options, adapter)
        return _write(data, options.into, console)
    rounds = _QUICK_ROUNDS if options.quick else _ROUNDS
    rows = []
    for name in options.model or PAIRS:
        for engine in options.engine or ENGINES:
            console.print(f"{name} in {ENGINES[engine]}")
            rows.append(
                {"model": name, "engine": ENGINES[engine]}
                | measured(PAIRS[name], engine, adapter, rounds)
            )
    decoding = []
    for engine in options.engine or ENGINES:
        console.print(f"a step of decoding in {ENGINES[engine]}")
        decoding.append({"engine": ENGINES[engine]} | measured_decoding(engine, adapter, rounds))
    circumstances = timing.circumstances(options.impl)
    figures = {
        "rounds": rounds,
        "quick": options.quick,
        "rows": rows,
        "of": len(PAIRS) * len(ENGINES),
        "decoding": decoding,
        "times_are_older": False,
    }
    return _write(circumstances | figures, options.into, console)


def _write(data: Mapping[str, Any], into: Path, console: Console) -> int:
    for path in rendering.write(engine_files(data), into):
        console.print(f"wrote {path}", soft_wrap=True)
    return 0


def _counted_anew(
    data: Mapping[str, Any], options: argparse.Namespace, adapter: Adapter
) -> dict[str, Any]:
    """The figures of a table, with the ops of the models and engines that were asked for."""
    names = {engine: ENGINES[engine] for engine in options.engine or ENGINES}
    asked = {(m, names[e]): (m, e) for m in options.model or PAIRS for e in names}
    rows = []
    for row in data["rows"]:
        key = (row["model"], row["engine"])
        if key in asked:
            model, engine = asked[key]
            pair = PAIRS[model]
            row = {**row, "ops": _counted(pair, engine, graphs_of(pair, engine, adapter))}
        rows.append(row)
    return {**data, "rows": rows, "times_are_older": True}


def _counted(pair: Pair, engine: str, graphs: Mapping[str, Graph]) -> dict[str, int | None]:
    """The ops of each contender, None where the converter refuses Keras's model."""
    count = consumers.engine(engine).count_ops
    return {
        name: None if name == "keras" and engine in pair.refused else count(graph)
        for name, graph in graphs.items()
    }


def measured(pair: Pair, engine: str, adapter: Adapter, rounds: int) -> dict[str, Any]:
    """The ops of each contender, None where the converter refuses Keras's, and the times."""
    module = consumers.engine(engine)
    graphs = graphs_of(pair, engine, adapter)
    inputs = pair.inputs(1)
    expected = np.asarray(jax.jit(pair.in_jax)(*inputs))
    ops = _counted(pair, engine, graphs)
    calls: dict[str, Callable[[], Any]] = {}
    for name, graph in graphs.items():
        if ops[name] is None:
            _check_refusal(module, graph, pair, engine)
            continue
        calls[name] = partial(module.convert(graph), inputs)
        _check(calls[name]()[0], expected, f"{name} in {engine}")
    times = timing.paired(rounds, {n: timing.repeated(call) for n, call in calls.items()})
    return {"ops": ops, **dataclasses.asdict(times)}


def measured_decoding(engine: str, adapter: Adapter, rounds: int) -> dict[str, Any]:
    """The ops of a step of a decoder, and its time beside that of jax.jit."""
    module = consumers.engine(engine)
    inputs = gpt_step_inputs()
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
    graph = graph_of(adapter.convert_for(gpt_step, engine, with_gradient=False), specs)
    step = partial(module.convert(graph), inputs)
    jitted = jax.jit(gpt_step)
    arrays = jax.device_put(inputs)
    for given, expected in zip(step(), jitted(*arrays), strict=True):
        _check(given, np.asarray(expected), f"a step of decoding in {engine}")
    # An engine takes numpy arrays and gives numpy arrays: so does jax.jit here.
    calls: dict[str, timing.Call] = {
        "jax": lambda: list(map(np.asarray, jitted(*inputs))),
        "engine": step,
    }
    times = timing.paired(rounds, {name: timing.repeated(call) for name, call in calls.items()})
    return {"ops": module.count_ops(graph), **dataclasses.asdict(times)}


def graphs_of(pair: Pair, engine: str, adapter: Adapter | None = None) -> dict[str, Graph]:
    """The graph of each contender, for batches of any size."""
    adapter = adapter or Adapter(DEFAULT_IMPLEMENTATION)
    specs = [tf.TensorSpec([None, *shape], dtype) for shape, dtype in pair.specs]
    return {"keras": _of_keras(pair, specs)} | {
        name: _of_jax(pair, specs, engine, adapter, name == "finite") for name in CONTENDERS[1:]
    }


def _of_jax(
    pair: Pair, specs: list[tf.TensorSpec], engine: str, adapter: Adapter, is_finite: bool
) -> Graph:
    # `export` to ONNX has a target of its own, with an op for a whole LSTM.
    target = {"target": adapter.onnx.TARGET} if engine == "onnx" else {}
    converted = adapter.convert_for(
        pair.in_jax,
        engine,
        **target,
        polymorphic_shapes="b, ...",
        polymorphic_checks=False,
        assume_finite=is_finite,
        with_gradient=False,
    )
    return graph_of(converted, specs)


def _of_keras(pair: Pair, specs: list[tf.TensorSpec]) -> Graph:
    model = pair.in_keras()

    def call(*inputs: tf.Tensor) -> tf.Tensor:
        return model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)

    graph = graph_of(call, specs)
    # A SavedModel has constants of what it can see, and ops that read the rest.
    graph.module.weights = [variable.value for variable in model.weights]
    return graph


def _check_refusal(module: Any, graph: Graph, pair: Pair, engine: str) -> None:
    try:
        module.convert(graph)
    # An engine and its converter raise anything.
    except Exception as error:
        if pair.refused[engine] in str(error):
            return
        raise
    raise ResultsError(f"{engine} takes a model of Keras that it should refuse: name it no more")


def _check(actual: np.ndarray, expected: np.ndarray, what: str) -> None:
    difference = float(np.abs(actual - expected).max() / np.abs(expected).max())
    if not difference <= AGREEMENT:
        raise ResultsError(
            f"{what} differs from jax.jit by {difference:.1e} of the largest element"
        )
