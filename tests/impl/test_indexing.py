"""Which TensorFlow ops indexing becomes, and that none of them is XLA's without XLA."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types
from tests.running import MODES, graph_of, of_every_size

OPERAND = np.arange(20, dtype=np.float32).reshape(5, 4)
INDICES = np.array([1, 3, 7], np.int32)
START = np.array(1, np.int32)
UPDATES = np.ones((3, 4), np.float32)


# function, arguments, the op that does it with XLA ops and without
_CHOICES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], str, str]] = {
    "rows": (lambda x, i: jnp.take(x, i, axis=0), (OPERAND, INDICES), "GatherV2", "GatherV2"),
    "columns": (
        lambda x, i: jnp.take(x, i, axis=1, mode="clip"),
        (OPERAND, INDICES),
        "GatherV2",
        "GatherV2",
    ),
    "points": (lambda x, i: x[i, i], (OPERAND, INDICES), "GatherNd", "GatherNd"),
    "along_last_axis": (
        lambda x, i: jnp.take_along_axis(x, i, axis=1),
        (OPERAND, np.zeros((5, 2), np.int32)),
        "GatherV2",
        "GatherV2",
    ),
    "windows": (
        jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2)), (None, 0)),
        (OPERAND, INDICES),
        "XlaGather",
        "GatherNd",
    ),
    "dynamic_slice": (
        lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 4)),
        (OPERAND, START),
        "Slice",
        "Slice",
    ),
    "dynamic_update_slice": (
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
        (OPERAND, UPDATES, START),
        "XlaDynamicUpdateSlice",
        "SelectV2",
    ),
    "set": (
        lambda x, i, u: x.at[i].set(u),
        (OPERAND, INDICES, UPDATES),
        "TensorScatterUpdate",
        "TensorScatterUpdate",
    ),
    "add": (
        lambda x, i, u: x.at[i].add(u),
        (OPERAND, INDICES, UPDATES),
        "TensorScatterAdd",
        "TensorScatterAdd",
    ),
    "max": (
        lambda x, i, u: x.at[i].max(u),
        (OPERAND, INDICES, UPDATES),
        "TensorScatterMax",
        "TensorScatterMax",
    ),
    "mul": (
        lambda x, i, u: x.at[i].mul(u),
        (OPERAND, INDICES, UPDATES),
        "XlaScatter",
        "TensorScatterUpdate",
    ),
    "add_to_columns": (
        lambda x, i: x.at[:, i].add(1),
        (OPERAND, INDICES),
        "XlaScatter",
        "TensorScatterAdd",
    ),
}


@pytest.mark.parametrize("name", _CHOICES)
@pytest.mark.parametrize("target", ["xla", "tensorflow"])
def test_one_op_reads_or_writes(name, target):
    function, args, with_xla, without_xla = _CHOICES[name]
    ops = op_types(graph_of(function, target, *args).graph)
    wanted = with_xla if target == "xla" else without_xla
    movers = {"GatherV2", "GatherNd", "Slice", "XlaGather", "XlaScatter", "XlaDynamicUpdateSlice"}
    movers |= {op for op in ops if op.startswith("TensorScatter")}
    assert wanted in ops
    if target == "xla":
        assert sum(ops[op] for op in movers) == 1
    else:
        assert not [op for op in ops if op.startswith("Xla")]


def _rows(x: jax.Array, i: jax.Array, mode: str) -> jax.Array:
    return x.at[i].get(mode=mode)


def test_a_promise_costs_no_mask():
    fill, promised = (
        op_types(graph_of(partial(_rows, mode=mode), "xla", OPERAND, INDICES).graph)
        for mode in ("fill", "promise_in_bounds")
    )
    assert fill["SelectV2"] == promised["SelectV2"] + 1


def test_combiners_of_one_function_are_made_once():
    def twice(x: jax.Array, i: jax.Array) -> jax.Array:
        for _ in range(2):
            x = x.at[i].multiply(2.0)
        return x

    graph = graph_of(twice, "xla", OPERAND, INDICES).graph
    functions = {
        node.attr["update_computation"].func.name
        for node in graph.as_graph_def().node
        if node.op == "XlaScatter"
    }
    assert len(functions) == 1


@pytest.mark.parametrize("enable_xla", [True, False])
def test_many_updates_of_one_element_are_combined_in_order(enable_xla):
    def powers(x: jax.Array, i: jax.Array) -> jax.Array:
        return x.at[i].apply(lambda v: v * v)

    args = np.full(3, 2.0, np.float32), np.array([1, 1, 1, 5, -9], np.int32)
    converted = jax2tf.convert(powers, enable_xla=enable_xla)
    np.testing.assert_array_equal(converted(*args), [2, 256, 2])


INTO_NOTHING = {
    "set": lambda x: x[1:].at[jnp.arange(3)].set(7, mode="drop"),
    "max": lambda x: x[1:].at[jnp.array([0, 0])].max(3),
    "multiply": lambda x: x[1:].at[jnp.array([0, 0])].multiply(3),
    "rows": lambda x: jnp.zeros((2, x.shape[0] - 1), x.dtype).at[0].add(x[1:]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("name", INTO_NOTHING)
def test_an_operand_may_turn_out_empty(name, enable_xla, mode):
    fun = INTO_NOTHING[name]
    converted = jax2tf.convert(fun, polymorphic_shapes="b", enable_xla=enable_xla)
    function = of_every_size(converted, mode, tf.TensorSpec([None], tf.int32))
    for size in (1, 3):
        x = np.arange(size, dtype=np.int32)
        np.testing.assert_array_equal(function(tf.constant(x)), jax.jit(fun)(x), strict=True)
