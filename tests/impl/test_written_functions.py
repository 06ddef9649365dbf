"""Functions that graphs call, written without tf.function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src import compat, ops
from jax2tf._src.ops import writing
from jax2tf._src.ops.written_functions import WrittenFunction

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
F32 = tf.TensorSpec([3, 4], tf.float32)


@jax.jit
def layer(x):
    return jnp.tanh(x) * 2.0 + jnp.sin(x) - x**2


def twice(x):
    return layer(layer(x))


def concrete_of(fun, *specs, writes=True, **options):
    function = tf.function(jax2tf.convert(fun, **options), autograph=False)
    with writing.switched(writes):
        return function.get_concrete_function(*specs)


def functions_of(concrete):
    """The functions that a graph holds."""
    return list(concrete.graph.as_graph_def().library.function)


def is_written(function):
    """tf.function keeps the names of Python's arguments; here there are none."""
    return not any("_user_specified_name" in arg.attr for arg in function.arg_attr.values())


@pytest.mark.parametrize("writes", [True, False])
def test_a_layer_is_one_function(writes):
    concrete = concrete_of(twice, F32, writes=writes, with_gradient=False)
    (function,) = functions_of(concrete)
    assert is_written(function) == writes
    calls = [n for n in concrete.graph.as_graph_def().node if n.op == "PartitionedCall"]
    assert len(calls) == 2
    np.testing.assert_allclose(concrete(tf.constant(X))[0], twice(X)[0], rtol=2e-6)


def test_graphs_are_no_larger():
    def nodes(writes):
        graph = concrete_of(twice, F32, writes=writes).graph.as_graph_def()
        inner = [len(f.node_def) for f in graph.library.function]
        return len(graph.node), sum(inner)

    assert all(one <= other for one, other in zip(nodes(True), nodes(False), strict=True))


def test_attributes_are_those_of_tf_function():
    def program(key):
        return jax.random.normal(key, (4,)), jax.random.bits(key, (4,), jnp.uint32)

    def attributes(writes):
        concrete = concrete_of(program, tf.TensorSpec([2], tf.uint32), writes=writes)
        found = functions_of(concrete)
        assert all(is_written(f) == writes for f in found)
        # TensorFlow numbers functions as it makes them.
        return sorted((f.signature.name.rpartition("_")[0], str(sorted(f.attr))) for f in found)

    written = attributes(True)
    assert written == attributes(False)
    assert any("_XlaMustCompile" in attributes for _, attributes in written)


def test_results_of_calls_have_shapes():
    """In the graph that is made, and in one that TensorFlow makes of its GraphDef."""

    def calls_in(graph):
        return [op for op in graph.get_operations() if op.type == "PartitionedCall"]

    graph = concrete_of(twice, F32, with_gradient=False).graph
    imported = tf.Graph()
    with imported.as_default():
        tf.graph_util.import_graph_def(graph.as_graph_def(), name="")
    for calls in (calls_in(graph), calls_in(imported)):
        assert [call.outputs[0].shape.as_list() for call in calls] == [[3, 4]] * 2


def test_draws_are_compiled_in_them():
    def program(key):
        return jax.random.bits(key, (1000,))

    key = np.asarray(jax.random.key_data(jax.random.key(7)))
    concrete = concrete_of(program, tf.TensorSpec([2], tf.uint32))
    assert any("_XlaMustCompile" in f.attr for f in functions_of(concrete))
    (result,) = jax.tree.leaves(concrete(tf.constant(key)))
    np.testing.assert_array_equal(result, program(key))


@pytest.mark.parametrize("sizes", [(1, 4), (5, 4)])
def test_sizes_of_an_open_batch_are_arguments(sizes):
    def program(x):
        one = jax.jit(lambda x: jnp.broadcast_to(jnp.sum(x) / x.shape[0], x.shape) + x * x.shape[0])
        return one(one(x))

    concrete = concrete_of(
        program, tf.TensorSpec([None, 4], tf.float32), polymorphic_shapes=["b, _"]
    )
    assert all(map(is_written, functions_of(concrete)))
    x = np.ones(sizes, np.float32)
    np.testing.assert_allclose(jax.tree.leaves(concrete(tf.constant(x)))[0], program(x), rtol=1e-6)


def test_gradients_go_through():
    function = tf.function(jax2tf.convert(twice), autograph=False)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(function(x))
            first = tape.gradient(y, x)
        return first, outer.gradient(first, x)

    def in_jax(x):
        return jnp.sum(twice(x))

    first, second = gradients(tf.constant(X))
    np.testing.assert_allclose(first, jax.grad(in_jax)(X), rtol=1e-4, atol=1e-5)
    expected = jax.grad(lambda x: jnp.sum(jax.grad(in_jax)(x)))(X)
    np.testing.assert_allclose(second, expected, rtol=1e-3, atol=1e-4)


def test_they_are_saved(tmp_path):
    module = tf.Module()
    module.f = tf.function(jax2tf.convert(twice), input_signature=[F32], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    restored = tf.saved_model.load(str(tmp_path))
    x = tf.constant(X)
    np.testing.assert_array_equal(restored.f(x), module.f(x))


def test_effects_are_left_to_tf_function():
    variable = tf.Variable(0.0)

    def count(x):
        variable.assign_add(1.0)
        return x

    counted = jax2tf.call_tf(count, has_side_effects=True)

    def program(x):
        one = jax.jit(lambda x: jnp.sin(counted(x)) * 2.0 + jnp.cos(x))
        return one(one(x))

    concrete = concrete_of(program, F32, with_gradient=False)
    assert not any(map(is_written, functions_of(concrete)))
    concrete(tf.constant(X))
    assert variable.numpy() == 2


def test_what_the_graph_around_holds_is_left_to_tf_function():
    @tf.function
    def outer(x):
        with writing.switched(True):
            assert WrittenFunction.of(lambda y: [ops.raw.Mul(x=x, y=y)], [F32], "f") is None
        return x

    outer.get_concrete_function(F32)


def test_a_result_may_be_an_argument_or_be_given_twice():
    @tf.function
    def outer(x):
        with writing.switched(True):
            function = WrittenFunction.of(lambda y, z: [z, ops.raw.Neg(x=y), z, y], [F32, F32], "f")
            return function(x, ops.raw.Sin(x=x))

    sine, negative, again, same = outer(tf.constant(X))
    np.testing.assert_array_equal(sine, again)
    np.testing.assert_array_equal(negative, -X)
    np.testing.assert_array_equal(same, X)


def test_an_operation_says_where_the_converted_function_is_called():
    concrete = concrete_of(twice, F32, with_gradient=False)
    sine = next(op for op in concrete.graph.get_operations() if op.type == "PartitionedCall")
    lines = [frame.filename for frame in sine.traceback]
    assert __file__ in lines
    assert sum("interpreter" in line for line in lines) == 1


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_for_xla_says_so_inside(jit_compile):
    with compat.functions.function_graph("f", jit_compile) as graph:
        assert compat.functions.in_compiled_function() == jit_compile
        assert tf.compat.v1.get_default_graph() is graph
    assert not compat.functions.in_compiled_function()
