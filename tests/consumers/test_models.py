"""Whole models through each engine, for a batch that is known and for one that is not."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from tests.consumers.engines import target_of
from tests.consumers.models import MODELS
from tests.running import assert_near


def _spec(batch, leaf):
    shape = (batch, *leaf.shape[1:]) if leaf.ndim else ()
    return tf.TensorSpec(shape, leaf.dtype)


def _run(engine, converted, args, batch):
    graph = graph_of(converted, jax.tree.map(partial(_spec, batch), args))
    model = consumers.engine(engine).convert(graph)
    return lambda *arrays: jax.tree.unflatten(graph.tree, model(list(arrays)))


@pytest.mark.parametrize("engine", consumers.NEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_a_known_batch(name, engine):
    function, inputs = MODELS[name]
    converted = jax2tf.convert(function, target=target_of(engine))
    run = _run(engine, converted, inputs(2), 2)
    assert_near(run(*inputs(2)), jax.jit(function)(*inputs(2)), ulps=64)


@pytest.mark.parametrize("engine", consumers.NEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_any_batch(name, engine):
    function, inputs = MODELS[name]
    shapes = ["b, ..." if np.ndim(leaf) else "" for leaf in inputs(1)]
    converted = jax2tf.convert(function, target=target_of(engine), polymorphic_shapes=shapes)
    run = _run(engine, converted, inputs(1), None)
    for batch in (1, 3):
        assert_near(run(*inputs(batch)), jax.jit(function)(*inputs(batch)), ulps=64)
