"""Graphs are inlined, folded and pruned."""

import numpy as np
import tensorflow as tf

from jax2tf._src.graph.graph import graphs_in
from jax2tf._src.graph.inlining import inlined
from jax2tf._src.graph.simplifying import simplify
from tests.impl.onnx.running import program_of_function

X = tf.TensorSpec([2, 3], tf.float32)
N = tf.TensorSpec([], tf.int32)


def simplified(function, *specs, **options):
    graph = inlined(program_of_function(function, *specs, **options))
    simplify(graph)
    return graph


def ops(graph):
    inner = [op for node in graph.nodes for each in graphs_in(node) for op in ops(each)]
    return [node.op for node in graph.nodes if node.op != "Const"] + inner


def test_calls_are_inlined():
    called = tf.function(lambda x: tf.sin(x), autograph=False)
    assert ops(simplified(lambda x: called(called(x)), X)) == ["Sin", "Sin"]


def test_the_program_stays_as_it_is():
    program = program_of_function(lambda x: tf.reshape(x, [tf.size(x)]), X)
    before = [node.op for node in program.main.nodes]
    simplify(inlined(program))
    assert [node.op for node in program.main.nodes] == before


def test_shapes_that_are_known_are_numbers():
    graph = simplified(lambda x: tf.reshape(x, [tf.shape(x)[0] * tf.size(x) // 2, 1]), X)
    assert ops(graph) == ["Reshape"]
    graph = simplified(lambda x: tf.reshape(x, [tf.shape(x)[1], tf.shape(x)[0]]), X)
    (node,) = [node for node in graph.nodes if node.op != "Const"]
    np.testing.assert_array_equal(node.inputs[1].value, [3, 2])


def test_large_results_are_not_stored():
    graph = simplified(lambda x: x + tf.reduce_sum(tf.zeros([10**6])), X)
    assert "Fill" in ops(graph)


def test_a_cast_out_of_range_is_left_to_the_engine():
    def function(x):
        number = tf.raw_ops.Cast(x=tf.constant(1e20), DstT=tf.int32)
        return x + tf.cast(number, tf.float32)

    assert ops(simplified(function, X)) == ["Cast", "Cast", "AddV2"]


def test_what_no_result_needs_goes():
    def function(n, x):
        def step(i, x, y, z):
            return i + 1, tf.sin(x), tf.cos(y), z

        return tf.while_loop(lambda i, *_: i < n, step, (0, x, x, x))[1]

    graph = simplified(function, N, X)
    (loop,) = [node for node in graph.nodes if node.op == "While"]
    assert len(loop.inputs) == 2
    assert "Cos" not in ops(graph)


def test_what_a_needed_value_needs_stays():
    def function(n, x):
        def step(i, x, y):
            return i + 1, y, tf.cos(x)

        return tf.while_loop(lambda i, *_: i < n, step, (0, x, -x))[1]

    graph = simplified(function, N, X)
    (loop,) = [node for node in graph.nodes if node.op == "While"]
    assert len(loop.inputs) == 3


def test_shapes_that_tensorflow_left_out_are_found():
    def function(x, y):
        return tf.concat([tf.sin(x), x[:, :1]], 1) @ y

    program = program_of_function(function, X, tf.TensorSpec([4, 5]))
    graph = inlined(program)
    for node in graph.nodes:
        for result in node.outputs:
            result.shape = None if node.op != "Const" else result.shape
    simplify(graph)
    assert graph.outputs[0].shape == (2, 5)


def test_the_bits_of_a_constant_are_a_constant():
    bits = tf.constant([1.5, -0.0], tf.float16)
    graph = simplified(lambda n: n + tf.cast(tf.bitcast(bits, tf.uint16), tf.int32), N)
    assert ops(graph) == ["AddV2"]
    (node,) = [node for node in graph.nodes if node.op != "Const"]
    np.testing.assert_array_equal(node.inputs[1].value, [0x3E00, 0x8000])
