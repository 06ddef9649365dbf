"""Whole programs convert and give what jax.jit gives, in every mode, with their gradients."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine.graphs import nodes, op_types
from reports.benchmarks.programs import Program, decoder_layer, decoder_layer_args, programs
from tests.running import MODES, assert_near, each_mode

DECODER_LAYER = Program(
    "decoder layer",
    partial(decoder_layer, heads=2),
    partial(decoder_layer_args, width=16, batch=2, length=8),
)
PROGRAMS = {program.name: program for program in [*programs("small"), DECODER_LAYER]}

each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def assert_near_in_tree(actual, expected):
    """Equal to rounding, relative to the largest element of the tree: sums may cancel.

    (The gradient of a bias of the keys is such a sum: softmax does not see it.)
    """
    actual, expected = jax.tree.leaves(actual), jax.tree.leaves(expected)
    assert_near(actual, expected, least=max(float(np.abs(leaf).max()) for leaf in expected))


@each_mode
@each_program
def test_a_program_gives_what_jax_gives(program, mode):
    args = program.make_args()
    converted = MODES[mode](jax2tf.convert(program.fun))
    assert_near_in_tree(converted(*jax.tree.map(tf.constant, args)), jax.jit(program.fun)(*args))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *((name, mode) for name in ("mlp", "decoder layer") for mode in MODES),
        ("resnet18", "graph"),  # one mode alone: its gradient takes XLA seconds to compile
    ],
)
def test_a_program_differentiates_as_in_jax(name, mode):
    program = PROGRAMS[name]
    params, x = program.make_args()

    def loss(params, x):
        return jnp.square(program.fun(params, x)).mean()

    variables = jax.tree.map(tf.Variable, params)
    leaves = jax.tree.leaves(variables)

    def gradient():
        with tf.GradientTape() as tape:
            value = jax2tf.convert(loss)(variables, tf.constant(x))
        return tape.gradient(value, leaves)

    assert_near_in_tree(MODES[mode](gradient)(), jax.jit(jax.grad(loss))(params, x))


@pytest.mark.parametrize("name", ["mlp", "resnet18", "transformer", "transformer, no inner jit"])
def test_a_network_has_no_op_more_without_xla_ops(name):
    # What holds whatever the machine: the benchmark measures that it is no slower.
    program = PROGRAMS[name]
    args = program.make_args()
    tensors = jax.tree.map(tf.constant, args)
    # That one has a MatMul between two Reshapes for a BatchMatMulV2.
    with_xla = jax2tf.TARGETS["xla"].without_optimizations("rows_of_one_matrix")
    ops = {}
    for target in (with_xla, "tensorflow"):
        converted = jax2tf.convert(program.fun, target=target)
        graph = tf.function(converted, autograph=False)
        ops[target] = op_types(graph.get_concrete_function(*tensors).graph)
    assert not ops["tensorflow"] - ops[with_xla]
    assert_near_in_tree(graph(*tensors), jax.jit(program.fun)(*args))


def test_a_layer_that_is_called_twelve_times_is_lowered_once():
    def count_nodes(name, target):
        program = PROGRAMS[name]
        args = jax.tree.map(tf.constant, program.make_args())
        converted = tf.function(jax2tf.convert(program.fun, target=target), autograph=False)
        return len(nodes(converted.get_concrete_function(*args).graph))

    xla = jax2tf.TARGETS["xla"]
    alone = dataclasses.replace(xla, shares_repeats=False)
    shared = count_nodes("transformer", alone)
    assert shared < count_nodes("transformer, no inner jit", alone) / 2
    # Without an inner jit, the equations of the layers are seen to repeat.
    assert count_nodes("transformer, no inner jit", xla) <= shared


def test_a_function_inside_a_shared_one_is_shared():
    @jax.jit
    def inner(x):
        return jnp.sin(jnp.cos(jnp.tanh(jnp.exp(-x))))

    @jax.jit
    def outer(x):
        return inner(jnp.log(jnp.abs(inner(x)) + 3)) + 1

    function = tf.function(jax2tf.convert(lambda x: outer(outer(x))), autograph=False)
    graph = function.get_concrete_function(tf.TensorSpec([3])).graph
    assert op_types(graph)["Tanh"] == 1


def test_autograph_reads_none_of_it(capsys):
    @jax.jit
    def inner(x):
        return jnp.sin(jnp.cos(jnp.tanh(jnp.exp(-x))))

    function = tf.function(jax2tf.convert(lambda x: inner(inner(x))), autograph=False)
    tf.autograph.set_verbosity(3, alsologtostdout=True)
    try:
        function.get_concrete_function(tf.TensorSpec([3]))
    finally:
        tf.autograph.set_verbosity(0)
    assert capsys.readouterr().out == ""


def test_a_small_constant_stands_once_in_a_graph():
    function = tf.function(
        jax2tf.convert(lambda x: (x * 2, jnp.sin(x) * 2, x + 2)), autograph=False
    )
    graph = function.get_concrete_function(tf.TensorSpec([3])).graph
    assert op_types(graph)["Const"] == 1


def test_a_program_is_saved_and_loaded(tmp_path):
    program = PROGRAMS["transformer"]
    params, tokens = program.make_args()
    module = tf.Module()
    module.params = jax.tree.map(tf.Variable, params)
    spec = tf.TensorSpec(tokens.shape, tokens.dtype)
    converted = jax2tf.convert(program.fun)
    module.logits = tf.function(
        lambda tokens: converted(module.params, tokens), autograph=False, input_signature=[spec]
    )
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert_near_in_tree(loaded.logits(tokens), jax.jit(program.fun)(params, tokens))


@pytest.mark.parametrize(
    "fun",
    [
        jax.lax.erf_inv,
        lambda x: jnp.where(x > 0, x, -jnp.inf),
        lambda x: jnp.where(x > 0, 1.0, 2.0),
        lambda x: jnp.where(x[0] > 0, x, 2.0),
    ],
)
def test_a_graph_repeats_no_scalar_that_nothing_reads(fun):
    # SelectV2 repeats the scalars that JAX repeats for it.
    x = np.linspace(-0.9, 0.9, 12, dtype=np.float32).reshape(3, 4)
    graph = tf.function(jax2tf.convert(lambda x: fun(x)), autograph=False)
    concrete = graph.get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
    for part in _parts(concrete.graph.as_graph_def()):
        read = {name.split(":")[0] for node in part for name in node.input}
        assert not [n.name for n in part if n.op == "BroadcastTo" and n.name not in read]
    np.testing.assert_allclose(graph(x), jax.jit(fun)(x), rtol=1e-6)


def _parts(definition):
    """The nodes of a graph, and those of each function in it; a result is read by an Identity."""
    return [definition.node, *(f.node_def for f in definition.library.function)]


@each_program
def test_a_graph_holds_each_small_axis_once(program):
    args = jax.tree.map(lambda x: tf.TensorSpec(x.shape, x.dtype), program.make_args())
    graph = tf.function(jax2tf.convert(program.fun), autograph=False).get_concrete_function(*args)
    for part in _parts(graph.graph.as_graph_def()):
        constants = {node.name: node.attr["value"].tensor for node in part if node.op == "Const"}
        axes = [
            constants[node.input[-1].split(":")[0]].SerializeToString()
            for node in part
            if node.op in ("ExpandDims", "Sum", "Max", "Any", "ConcatV2")
            and node.input[-1].split(":")[0] in constants
        ]
        names = {
            node.input[-1].split(":")[0]
            for node in part
            if node.op in ("ExpandDims", "Sum", "Max", "Any", "ConcatV2")
        }
        assert len(names) == len(set(axes))
