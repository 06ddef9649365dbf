"""What the matrix does not show of control flow: which graphs it becomes."""

import jax
import pytest
import tensorflow as tf
from jax import lax

import jax2tf
from harnesses.engine.graphs import op_types


def _step(total: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return total + y, total * y


@pytest.mark.parametrize(("length", "loops"), [(0, 0), (1, 0), (2, 1)])
def test_a_scan_is_a_loop_if_it_takes_two_steps(length, loops):
    # A loop costs an eager caller a graph, and some readers of graphs take none.
    fun = tf.function(jax2tf.convert(lambda x, y: lax.scan(_step, x, y)), autograph=False)
    graph = fun.get_concrete_function(tf.zeros([3]), tf.zeros([length, 3])).graph
    ops = op_types(graph)
    assert ops["While"] + ops["StatelessWhile"] == loops
