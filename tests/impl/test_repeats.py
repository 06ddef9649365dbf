"""Equations that repeat become calls of one function, and nothing else changes."""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend import core as jex_core

import jax2tf
from harnesses.engine.graphs import nodes
from jax2tf._src.lowering.passes.repeats import MIN_PERIOD, MIN_SAVED, with_shared_repeats
from jax2tf._src.targets.by_name import TARGETS
from tests.running import assert_near, each_mode, of_every_size

LAYERS = 8
X = np.linspace(-1, 2, 24, dtype=np.float32).reshape(3, 8)
KEY = np.array([7, 11], np.uint32)


def _weights(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / 3


_W, _V = _weights(LAYERS, 8, 16), _weights(LAYERS, 16, 8)


def _layer(x, w, v):
    h = jax.nn.gelu(x @ w) @ v
    h = h - h.mean(-1, keepdims=True)
    return x + h * jax.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-6)


def _layers(x, params):
    for w, v in params:
        x = _layer(x, w, v)
    return x


def captured(x):
    return _layers(x, zip(_W, _V, strict=True))


def stacked(x, w, v):
    return _layers(x, ((w[i], v[i]) for i in range(LAYERS)))


def dropped(x, w, v, key):
    for i in range(LAYERS):
        keep = jax.random.bernoulli(jax.random.fold_in(key, i), 0.5, x.shape)
        x = jnp.where(keep, _layer(x, w[i], v[i]), x)
    return x


def residuals(x):
    """Each layer's input is read again at the end."""
    seen = []
    for w, v in zip(_W, _V, strict=True):
        seen.append(x)
        x = _layer(x, w, v)
    return x, sum(seen)


def within_scan(x):
    return jax.lax.scan(lambda c, _: (captured(c), c.sum()), x, None, length=2)


def within_cond(x):
    return jax.lax.cond(x.sum() > 0, captured, jnp.sin, x)


def within_checkpoint(x):
    return jax.checkpoint(captured)(x)


def gradient(x, w, v):
    return jax.grad(lambda *args: (stacked(*args) ** 2).sum(), (0, 1, 2))(x, w, v)


def unrolled(x):
    h, ys = jnp.zeros(8), []
    for _ in range(3):
        for row in x:
            for _ in range(4):
                h = jnp.tanh(row * h + jnp.sin(h)) * 0.5 + row
            ys.append(h)
    return jnp.stack(ys)


PROGRAMS = {
    "captured": (captured, (X,)),
    "stacked": (stacked, (X, _W, _V)),
    "dropped": (dropped, (X, _W, _V, KEY)),
    "residuals": (residuals, (X,)),
    "within_scan": (within_scan, (X,)),
    "within_cond": (within_cond, (X,)),
    "within_checkpoint": (within_checkpoint, (X,)),
    "unrolled": (unrolled, (X,)),
    "gradient": (gradient, (X, _W, _V)),
}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def _apart(target):
    return dataclasses.replace(TARGETS[target], shares_repeats=False)


def _graph(fun, args, **options):
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in args]
    converted = tf.function(jax2tf.convert(fun, **options), autograph=False)
    return converted.get_concrete_function(*specs)


def _shared(fun, *args):
    return with_shared_repeats(jax.jit(fun).trace(*args).jaxpr)


def _calls(fun, *args):
    """How many calls of a shared run of equations there are, outside of inner jaxprs."""
    return [e.params.get("name") for e in _shared(fun, *args).eqns].count("repeated")


@each_program
@pytest.mark.parametrize("target", ["xla", "tensorflow", "onnx"])
def test_the_graph_is_smaller_and_gives_the_same(name, target):
    fun, args = PROGRAMS[name]
    shared, apart = (_graph(fun, args, target=t) for t in (target, _apart(target)))
    assert len(nodes(shared.graph)) < 0.65 * len(nodes(apart.graph))
    tensors = list(map(tf.constant, args))
    for one, other in zip(
        tf.nest.flatten(shared(*tensors)), tf.nest.flatten(apart(*tensors)), strict=True
    ):
        # Grappler fuses an addition with what is beside it, which a call hides from it.
        assert_near(np.asarray(one), np.asarray(other), ulps=8)


@each_mode
@each_program
def test_gives_what_jax_gives(name, mode):
    fun, args = PROGRAMS[name]
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in args]
    run = of_every_size(jax2tf.convert(fun), mode, *specs)
    actual = jax.tree.map(np.asarray, run(*map(tf.constant, args)))
    expected = _rounded_once(fun, args) if name == "gradient" else jax.jit(fun)(*args)
    assert_near(jax.tree.unflatten(jax.tree.structure(expected), jax.tree.leaves(actual)), expected)


def _rounded_once(fun, args):
    """JAX's result in float64, as float32: of the gradient, JAX's in float32 is 15 ULPs off."""
    with jax.enable_x64(True):
        results = jax.jit(fun)(*(np.asarray(a, np.float64) for a in args))
    return jax.tree.map(lambda x: np.asarray(x, np.float32), results)


def test_a_batch_that_is_open():
    graph = tf.function(
        jax2tf.convert(captured, polymorphic_shapes=["b, _"]), autograph=False
    ).get_concrete_function(tf.TensorSpec([None, 8]))
    apart = _graph(captured, (X,), target=_apart("xla"))
    assert len(nodes(graph.graph)) < len(nodes(apart.graph))
    for size in (1, 5):
        x = np.resize(X, (size, 8))
        assert_near(np.asarray(graph(tf.constant(x))), np.asarray(captured(x)))


def test_a_saved_model_and_its_gradient(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        jax2tf.convert(captured), autograph=False, input_signature=[tf.TensorSpec(X.shape)]
    )
    tf.saved_model.save(module, str(tmp_path))
    restored = tf.saved_model.load(str(tmp_path))
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(restored.f(x))
    assert_near(
        np.asarray(tape.gradient(y, x)), np.asarray(jax.grad(lambda x: captured(x).sum())(X)), 64
    )


def test_layers_of_a_scope_keep_it():
    def scoped(x):
        for i, (w, v) in enumerate(zip(_W, _V, strict=True)):
            with jax.named_scope(f"layer_{i}"), jax.named_scope("inside"):
                x = _layer(x, w, v)
        return x

    graph = _graph(scoped, (X,)).graph
    calls = [op.name for op in graph.get_operations() if "Call" in op.type]
    assert [name.split("/")[0] for name in calls] == [f"layer_{i}" for i in range(LAYERS)]
    functions = graph.as_graph_def().library.function
    assert not any("layer_" in node.name for f in functions for node in f.node_def)


class TestWhatIsShared:
    def test_layers(self):
        assert _calls(captured, X) == LAYERS

    def test_eight_equations_and_more(self):
        def run(x, n):
            for _ in range(30):
                for _ in range(n // 2):
                    x = jnp.sin(x) * x
            return x

        assert _calls(partial(run, n=2), X) == 60 // MIN_PERIOD
        assert _calls(partial(run, n=MIN_PERIOD), X) == 30

    def test_a_window_more_before_a_value_less(self):
        """Between the layers two values are handed on, within them one."""

        def run(x, y):
            for _ in range(4):
                z = x * y
                for _ in range(MIN_PERIOD):
                    z = jnp.sin(z)
                x, y = jnp.cos(z), jnp.tan(z)
            return x + y

        assert _calls(run, X, X) == 4

    def test_not_a_run_that_saves_little(self):
        def run(x):
            for _ in range(2):
                for _ in range(MIN_SAVED // 2 - 1):
                    x = jnp.sin(x)
                x = x + 1
            return x

        assert _calls(run, X) == 0

    def test_not_what_reads_other_values(self):
        """The equations are equal but for which of two values they read."""

        def run(x):
            y = x + 1
            for i in range(10):
                for _ in range(MIN_PERIOD):
                    z = jnp.sin(x if i % 2 else y)
                    y = z * y
                    x = x - z
            return x + y

        jaxpr = _shared(run, X)
        np.testing.assert_array_equal(jex_core.jaxpr_as_fun(jaxpr)(X)[0], jax.jit(run)(X))

    @pytest.mark.parametrize("numbers", [(0.0, -0.0), (1.0, 2.0), (np.nan, -np.nan)])
    def test_not_other_literals(self, numbers):
        def run(x):
            for i in range(8):
                for _ in range(3 * MIN_PERIOD):
                    x = jnp.sin(x)
                x = jnp.copysign(x, numbers[i % 2])
            return x

        jaxpr = _shared(run, X)
        # Two layers may be one period; no call may hold one of them twice.
        np.testing.assert_array_equal(jex_core.jaxpr_as_fun(jaxpr)(X)[0], jax.jit(run)(X))

    def test_not_what_has_effects(self):
        seen = []

        def run(x):
            for i in range(LAYERS):
                x = _layer(x, _W[0], _V[0])
                jax.debug.callback(lambda s, i=i: seen.append(i), x.sum(), ordered=True)
            return x

        assert _calls(run, X) == 0
        _graph(run, (X,))(tf.constant(X))
        assert seen == list(range(LAYERS))

    def test_a_derivative_rule_of_each_layer(self):
        """Layers that compute the same, and whose derivative rules are different functions."""

        def scaled(x, factor):
            @jax.custom_vjp
            def rule(x):
                return _layer(x, _W[0], _V[0])

            rule.defvjp(lambda x: (rule(x), None), lambda _, ct: (ct * factor,))
            return rule(x)

        def run(x):
            for factor in range(1, LAYERS + 1):
                x = scaled(x, factor)
            return x

        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(jax2tf.convert(run), autograph=False)(x)
        expected = jax.grad(lambda x: run(x).sum())(X)
        assert float(expected[0, 0]) == np.prod(np.arange(1.0, LAYERS + 1))
        np.testing.assert_array_equal(tape.gradient(y, x), expected)

    def test_an_inner_function_of_each_layer(self):
        """jax.jit of a new function each time: other jaxprs of the same equations."""

        def run(x):
            for _ in range(LAYERS):
                x = jax.jit(lambda x: _layer(x, _W[0], _V[0]))(x) * 2 + jnp.sin(x)
            return x

        assert _calls(run, X) in (0, LAYERS)
        graph = _graph(run, (X,))
        assert len(graph.graph.as_graph_def().library.function) <= 2

    def test_nothing_in_a_short_program(self):
        jaxpr = jax.jit(jnp.sin).trace(X).jaxpr
        assert with_shared_repeats(jaxpr) is jaxpr


_OPS = {
    "sin": lambda a, b: jnp.sin(a),
    "mul": lambda a, b: a * b,
    "sub": lambda a, b: a - b,
    "less": lambda a, b: jnp.where(a < b, a, b),
    "half": lambda a, b: a * 0.5,
}


@st.composite
def _programs(draw):
    """Straight-line programs of parts that repeat, some with another operand here and there."""
    step = st.tuples(st.sampled_from(sorted(_OPS)), st.integers(0, 3), st.integers(0, 3))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.lists(step, min_size=6, max_size=20))
        for _ in range(draw(st.integers(1, 6))):
            changed = draw(st.none() | st.tuples(st.integers(0, len(part) - 1), step))
            again = list(part)
            if changed is not None:
                again[changed[0]] = changed[1]
            parts += again
    return parts


@given(_programs(), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_program_gives_the_same(program, n_results):
    def run(*values):
        # A step reads of the last four values, and gives a new one.
        values = list(values)
        for op, i, j in program:
            values.append(_OPS[op](values[-1 - i], values[-1 - j]))
        return values[-n_results:]

    args = [np.float32(v) * X[0] for v in (1, -0.5, 0.25, 2)]
    jaxpr = jax.make_jaxpr(run)(*args)
    shared = with_shared_repeats(jaxpr)
    for one, other in zip(
        jex_core.jaxpr_as_fun(shared)(*args), jex_core.jaxpr_as_fun(jaxpr)(*args), strict=True
    ):
        np.testing.assert_array_equal(one, other)
