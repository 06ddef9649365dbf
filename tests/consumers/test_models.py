"""Whole models through each engine: with sizes that are known, any batch, and any length.

What an engine cannot run is in `REFUSED` (models/report.py); a model that is there and converts is
an error.
"""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import jax
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from tests.consumers.engines import target_of
from tests.consumers.models import MODELS, Model
from tests.consumers.models.report import ENDS_THE_PROCESS, REFUSED, table
from tests.running import assert_near

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/engines.md"
BATCHES = (1, 3)
ENGINES = list(consumers.NEEDS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_known_sizes(name, engine):
    if (engine, name) in ENDS_THE_PROCESS:
        call = f"from {__name__} import judge_of_known_sizes as judge; judge({name!r}, {engine!r})"
        process = subprocess.run([sys.executable, "-c", call], check=False, capture_output=True)
        assert process.returncode < 0, f"{engine} runs it now, or refuses it: {process.stderr}"
    else:
        judge_of_known_sizes(name, engine)


def judge_of_known_sizes(name: str, engine: str) -> None:
    model = MODELS[name]
    _judge(name, engine, model.shapes_with(b=2, l=model.length), [(2, model.length)])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_any_batch(name, engine):
    length = MODELS[name].length
    sizes = [(batch, length) for batch in BATCHES]
    _judge(name, engine, MODELS[name].shapes_with(l=length), sizes)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.has_length])
def test_a_model_with_any_length(name, engine):
    model = MODELS[name]
    sizes = [*itertools.product(BATCHES, (model.length - 2, model.length + 3))]
    _judge(name, engine, model.shapes, sizes, model.constraints)


def _judge(
    name: str,
    engine: str,
    shapes: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    constraints: Sequence[str] = (),
) -> None:
    """Holds a model in an engine against JAX for each (batch, length), or its refusal."""
    model = MODELS[name]
    refused = REFUSED.get((engine, name))
    if refused is not None:
        with pytest.raises(jax2tf.ConversionError, match=refused):
            _graph(model, engine, shapes, constraints)
        return
    graph = _graph(model, engine, shapes, constraints)
    run = consumers.engine(engine).convert(graph)
    for batch, length in sizes:
        inputs = model.inputs(batch, length)
        actual = jax.tree.unflatten(graph.tree, run(list(inputs)))
        assert_near(actual, jax.jit(model.function)(*inputs), ulps=64, least=model.least)


def _graph(model: Model, engine: str, shapes: Sequence[str], constraints: Sequence[str]):
    converted = jax2tf.convert(
        model.function,
        target=target_of(engine),
        polymorphic_shapes=list(shapes),
        polymorphic_constraints=constraints,
    )
    examples = model.inputs(2, model.length)
    specs = [_spec(shape, x.dtype) for shape, x in zip(shapes, examples, strict=True)]
    return graph_of(converted, specs)


def _spec(shape: str, dtype: np.dtype) -> tf.TensorSpec:
    sizes = [size.strip() for size in shape.split(",") if size]
    return tf.TensorSpec([int(size) if size.isdigit() else None for size in sizes], dtype)


def test_the_guide_says_what_runs():
    assert table() in GUIDE.read_text(), f"docs/guides/engines.md should have\n{table()}"
