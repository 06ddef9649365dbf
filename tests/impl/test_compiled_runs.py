"""Runs of small equations that XLA compiles inside of a graph: which ones, and their results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

import jax2tf
from jax2tf._src.lowering import interpreter
from jax2tf._src.lowering.passes import compiled_runs
from reports.benchmarks.small_ops import small_ops

X = np.linspace(0.1, 1, 4, dtype=np.float32)
PROGRAMS = {program.name: program for program in small_ops("small")}


def loop(x, length=200):
    return lax.scan(lambda c, _: (jnp.sin(c) * 0.9 + 0.1, c.max()), x, None, length=length)


def calls(jaxpr):
    """The names of the calls in a jaxpr, and in the jaxprs that it calls."""
    for eqn in jaxpr.eqns:
        if "jaxpr" in eqn.params and eqn.primitive.name == "jit":
            yield eqn.params["name"]
            yield from calls(eqn.params["jaxpr"].jaxpr)


def is_compiled(fun, *args):
    assert interpreter.Lowering, "the rules are registered"
    made = compiled_runs.with_compiled_runs(jax.make_jaxpr(fun)(*args))
    return "compiled_run" in calls(made.jaxpr)


def with_large_product(x):
    return lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=200)[0]


def with_callback(x):
    def step(c, _):
        return jax.pure_callback(np.sin, c, c), None

    return lax.scan(step, x, None, length=200)[0]


def unrolled(x):
    for _ in range(600):
        x = jnp.sin(x) * 0.9
    return x


def _primitive(implementation):
    primitive = jex_core.Primitive(implementation.__name__)
    primitive.def_impl(implementation)
    primitive.def_abstract_eval(lambda x: x)
    return primitive


def halved(x):
    return jnp.sin(x) / 2


def halved_by_numpy(x):
    return np.sin(x) / 2


HALVED, HALVED_BY_NUMPY = map(_primitive, (halved, halved_by_numpy))


@pytest.mark.parametrize(
    ("fun", "x", "expected"),
    [
        (loop, X, True),
        (jax.jit(loop), X, True),
        (lambda x: lax.sort(loop(x)[0]) + loop(x)[1].sum(), X, True),
        (lambda x: lax.fori_loop(0, x[0].astype(int), lambda i, c: jnp.sort(c) * 2, x), X, False),
        (lambda x: loop(x, 8), X, False),
        (lambda x: jnp.linalg.eigh(loop(jnp.outer(x, x))[0])[0], X, True),
        (lambda x: lax.map(jnp.linalg.eigvalsh, jnp.outer(x, x) * jnp.ones((200, 1, 1))), X, False),
        (loop, np.ones(20_000, np.float32), False),
        (loop, X.astype(np.float16), False),
        (with_large_product, np.ones((100, 100), np.float32), False),
        (with_large_product, np.ones((4, 4), np.float32), True),
        (with_callback, X, False),
        (lambda x: lax.fori_loop(0, 300, lambda _, x: HALVED.bind(x) + 1, x), X, True),
        (lambda x: lax.fori_loop(0, 300, lambda _, x: jax2tf.call_tf(tf.sin)(x), x), X, False),
        (lambda x: lax.fori_loop(0, 300, lambda _, x: HALVED_BY_NUMPY.bind(x), x), X, False),
        (unrolled, X, False),
        (lambda x: lax.fori_loop(0, 5, lambda _, x: unrolled(x), x), X, False),
    ],
)
def test_which_runs_are_compiled(fun, x, expected):
    assert is_compiled(fun, x) == expected


def test_an_open_dimension_is_not_compiled():
    shape = jax.export.symbolic_shape("b, 4")
    assert not is_compiled(loop, jax.ShapeDtypeStruct(shape, np.float32))


def test_equations_around_a_loop_are_compiled_with_it():
    def modes(x):
        return lax.linalg.eigh(jnp.outer(loop(jnp.exp(x) - 1)[0] * 2, x), symmetrize_input=False)

    made = compiled_runs.with_compiled_runs(jax.make_jaxpr(modes)(X))
    assert [eqn.primitive.name for eqn in made.jaxpr.eqns][:2] == ["jit", "eigh"]


def _op_types(function):
    return [op.type for op in function.get_concrete_function(X).graph.get_operations()]


def test_the_graph_calls_one_compiled_function():
    function = tf.function(jax2tf.convert(loop, with_gradient=False), autograph=False)
    graph = function.get_concrete_function(X).graph
    (call,) = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
    assert call.get_attr("_XlaMustCompile")
    assert "StatelessWhile" not in _op_types(function)


@pytest.mark.parametrize(
    ("target", "jit_compile"),
    [
        (jax2tf.TARGETS["xla"].without_optimizations("compiled_runs"), None),
        ("tensorflow", None),
        ("xla", True),
    ],
    ids=["without", "tensorflow", "compiled"],
)
def test_a_graph_has_the_loop_itself(target, jit_compile):
    converted = jax2tf.convert(loop, target=target, with_gradient=False)
    types = _op_types(tf.function(converted, autograph=False, jit_compile=jit_compile))
    assert "StatelessWhile" in types
    assert "PartitionedCall" not in types


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_gives_what_jax_gives(name, monkeypatch):
    monkeypatch.setattr(compiled_runs, "MIN_WEIGHT", 1)
    monkeypatch.setattr(compiled_runs, "MIN_REPEATS", 0.1)
    program = PROGRAMS[name]
    args = program.make_args()
    function = tf.function(jax2tf.convert(program.fun), autograph=False)
    concrete = function.get_concrete_function(*jax.tree.map(tf.constant, args))
    assert "PartitionedCall" in [op.type for op in concrete.graph.get_operations()]
    actual = tf.nest.flatten(function(*jax.tree.map(tf.constant, args)))
    expected = jax.tree.leaves(jax.jit(program.fun)(*args))
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_derivatives_are_those_of_jax():
    def total(x):
        last, rows = loop(x)
        return (last * rows.mean()).sum()

    x = tf.constant(X)

    @tf.function(autograph=False)
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = jax2tf.convert(total)(x)
            gradient = tape.gradient(y, x)
        return gradient, outer.jacobian(gradient, x)

    actual = second(x)
    expected = jax.grad(total)(X), jax.jacobian(jax.grad(total))(X)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_loop_is_mapped_and_saved(tmp_path):
    rows = np.stack([X, X + 1])
    last = jax2tf.convert(lambda x: loop(x)[0])
    expected = jax.vmap(lambda x: loop(x)[0])(rows)
    np.testing.assert_allclose(tf.vectorized_map(last, tf.constant(rows)), expected, rtol=1e-5)
    np.testing.assert_allclose(tf.map_fn(last, tf.constant(rows)), expected, rtol=1e-5)
    module = tf.Module()
    module.f = tf.function(last, input_signature=[tf.TensorSpec([4])], autograph=False)
    tf.saved_model.save(module, tmp_path)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).f(X), loop(X)[0], rtol=1e-5)
