"""Primitives of other libraries: each is what its implementation says, whatever its name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.extend import core as jex_core
from jax.interpreters import ad, batching, mlir

import jax2tf
from jax2tf._src.lowering import registry
from jax2tf._src.targets.by_name import TARGETS

# JAX's primitives of these names are known by more than their rules.
KNOWN_NAMES = (
    *("add", "mul", "sin", "convert_element_type", "jit", "cond", "while", "scan", "call_tf"),
    *("pure_callback", "sharding_constraint", "reshard", "shard_map", "rem", "custom_linear_solve"),
)


def foreign(name, implementation):
    """A primitive that another library might make: all that JAX asks of one, and its own name."""
    primitive = jex_core.Primitive(name)
    primitive.def_impl(implementation)
    primitive.def_abstract_eval(lambda *avals: jax.core.ShapedArray(avals[0].shape, avals[0].dtype))
    mlir.register_lowering(primitive, mlir.lower_fun(implementation, multiple_results=False))
    ad.primitive_jvps[primitive] = lambda primals, tangents: jax.jvp(
        implementation, primals, tuple(map(ad.instantiate_zeros, tangents))
    )
    batching.primitive_batchers[primitive] = lambda args, axes: (
        jax.vmap(implementation, axes)(*args),
        0,
    )
    return primitive


def test_what_its_implementation_says():
    primitive = jex_core.Primitive("any_of_it")
    primitive.def_impl(jnp.any)
    primitive.def_abstract_eval(lambda x: jax.core.ShapedArray((), np.bool_))
    converted = jax2tf.convert(lambda x: primitive.bind(x > 2))
    for stop in (3.0, 4.0):
        result = converted(np.arange(stop))
        assert (result.dtype, result.shape, bool(result)) == (tf.bool, (), stop == 4)


@pytest.mark.parametrize("name", KNOWN_NAMES)
def test_a_name_that_jax_has_too(name):
    assert name in registry.primitives(TARGETS["xla"])
    primitive = foreign(name, lambda x, y: 3 * x**2 - y)

    def fun(x, y):
        of_mask = primitive.bind(x, (x > 0).astype(x.dtype))
        return primitive.bind(x, y), jax.vmap(primitive.bind, (0, None))(x, x[0]), of_mask

    x, y = np.float32([1, -2, 3]), np.float32([0.5, 7, 0])
    expected = jax.jit(fun)(x, y)
    for options in ({}, {"enable_xla": False}, {"native_serialization": True}):
        actual = jax2tf.convert(fun, **options)(x, y)
        jax.tree.map(np.testing.assert_array_equal, actual, expected)


def test_its_gradient(mode):
    primitive = foreign("add", lambda x, y: 3 * x**2 - y)
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        result = mode(jax2tf.convert(primitive.bind))(x, tf.ones([2]))
    np.testing.assert_array_equal(result, [2.0, 11.0])
    np.testing.assert_array_equal(tape.gradient(result, x), [6.0, -12.0])


@pytest.fixture
def traces():
    """The names of the functions that JAX traces from now on."""
    names: list[str] = []

    def listen(event, duration, **details):
        if event.endswith("jaxpr_trace_duration"):
            names.append(details["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def _looping(x):
    return jax.lax.fori_loop(0, 3, lambda i, y: 2 * y + x, x)


@pytest.mark.parametrize("enable_xla", [True, False])
def test_a_second_eager_call_traces_nothing(enable_xla, traces):
    primitives = [foreign(name, _looping) for name in ("sin", "of_its_own")]

    def fun(x, data):
        keys = jax.random.split(jax.random.wrap_key_data(data), 4)
        moved = jnp.concatenate([keys[1:], keys[:1]]).reshape(2, 2).T[:, ::-1]
        drawn = [
            jax.random.bits(moved[0, 0]),
            jax.random.gamma(jax.random.fold_in(moved[1, 1], 3), x),
            jax.random.normal(jax.random.clone(moved[0, 1]), (2,)),
        ]
        by_jaxpr = [
            jnp.zeros(5).at[jnp.array([0, 3])].apply(lambda y: y * 2 + 1),
            jax.lax.reduce_window(x, 1.0, lambda a, b: a * b * 1.0, (2,), (1,), "SAME"),
        ]
        return [primitive.bind(x) for primitive in primitives], drawn, by_jaxpr

    x, data = np.float32([1, 2, 3]), np.uint32([1, 2])
    converted = jax2tf.convert(fun, enable_xla=enable_xla)
    converted(x, data)
    assert len(traces) > 10
    traces.clear()
    results = [converted(i * x, data) for i in (1, 2, 3)]
    assert traces == []
    for i, (foreigners, drawn, _) in enumerate(results, 1):
        for result in foreigners:
            np.testing.assert_array_equal(result, _looping(i * x))
        np.testing.assert_allclose(drawn[1], jax.jit(fun)(i * x, data)[1][1], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unheard_of", ("there is no lowering rule for it", "write that part with other")),
        # JAX's own, of checkify, is refused with a remedy of its own.
        ("check", ("there is no lowering rule for it", "write that part with other")),
        (
            "add",
            (
                "it is no primitive of JAX's, although it has the name of one",
                "no implementation in JAX functions (Primitive.def_impl)",
                "What to do: give it one, or keep it outside",
            ),
        ),
    ],
)
@pytest.mark.parametrize("enable_xla", [True, False])
def test_without_an_implementation(name, words, enable_xla):
    primitive = jex_core.Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    with pytest.raises(jax2tf.UnsupportedPrimitiveError) as error:
        jax2tf.convert(lambda x: primitive.bind(x), enable_xla=enable_xla)(1.0)
    text = str(error.value)
    for word in (f"cannot lower primitive '{name}'", "test_foreign.py:", "What to do:", *words):
        assert word in text
    assert isinstance(error.value, NotImplementedError)
