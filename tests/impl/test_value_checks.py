"""`convert(..., value_checks=...)`: callbacks whose values are used only where a check fails."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.experimental import io_callback

import jax2tf
from jax2tf import Module
from tests.running import MODES

GOOD, BAD = np.array([4, 1, 2], np.float32), np.array([4, -1, 2], np.float32)


def fail(*_):
    raise ValueError("a negative number")


def fail_if(x):
    if np.any(x):
        raise ValueError("a negative number")


def check(x):
    if (np.asarray(x) < 0).any():
        raise ValueError("a negative number")
    return x


def scalar(x):
    return jax.ShapeDtypeStruct((), x.dtype)


def is_bad(x):
    return jnp.any(x < 0)


def guarded(x):
    return jax.lax.cond(is_bad(x), lambda x: jax.pure_callback(fail, x, x), lambda x: x, x)


@jax.custom_jvp
def with_rule(x):
    return guarded(x)


@with_rule.defjvp
def _with_rule(primals, tangents):
    return with_rule(*primals), tangents[0]


def on_rows(x):
    def row(c, r):
        return c + 1, jnp.sqrt(guarded(r))

    return jax.lax.scan(row, 0.0, x)


# Each with what "drop" and "nan" give for BAD. Without a failure all give what JAX gives.
NAN = np.full(3, np.nan, np.float32)
ROOT = np.array([2, np.nan, np.sqrt(2)], np.float32)
CHECKS = {
    "identity in the other branch": (guarded, BAD, NAN),
    "inside of a rule for derivatives": (lambda x: with_rule(x) * 2, BAD * 2, NAN),
    "inside of jit": (jax.jit(lambda x: jnp.sqrt(jax.jit(guarded)(x))), ROOT, NAN),
    "inside of remat": (jax.checkpoint(lambda x: jnp.sqrt(guarded(x))), ROOT, NAN),
    "a computation in the other branch": (
        lambda x: jax.lax.cond(~is_bad(x), jnp.sqrt, lambda x: jax.pure_callback(fail, x, x), x),
        ROOT,
        NAN,
    ),
    "a scalar that is broadcast": (
        lambda x: jax.lax.cond(
            is_bad(x), lambda x: x * jax.pure_callback(fail, scalar(x)), lambda x: x * 2, x
        ),
        BAD * 2,
        NAN,
    ),
    "a function that returns None or raises": (
        lambda x: jax.lax.cond(
            is_bad(x), lambda x: jax.pure_callback(fail_if, x, x > 0), jnp.sin, x
        ),
        np.sin(BAD),
        NAN,
    ),
    "a function that may return": (
        lambda x: jax.lax.cond(is_bad(x), lambda x: jax.pure_callback(check, x, x), lambda x: x, x),
        BAD,
        NAN,
    ),
    "a callback of a callback": (
        lambda x: jax.lax.cond(
            is_bad(x),
            lambda x: jax.pure_callback(check, x, jax.pure_callback(check, x, x)),
            lambda x: x,
            x,
        ),
        BAD,
        NAN,
    ),
    "io_callback": (
        lambda x: jax.lax.cond(
            is_bad(x), lambda x: io_callback(fail, x, x, ordered=True), lambda x: x, x
        ),
        BAD,
        NAN,
    ),
    "where": (
        lambda x: jnp.where(x < 0, jax.pure_callback(check, x, x), x),
        BAD,
        np.array([4, np.nan, 2], np.float32),
    ),
    "where, of the condition": (
        lambda x: jnp.where(
            is_bad(x), jax.pure_callback(lambda b: np.float32(check(b)), scalar(x), is_bad(x)), x
        ),
        BAD,
        NAN,
    ),
    "select": (
        lambda x: jax.lax.select(x >= 0, x, jax.pure_callback(lambda x: x * 0, x, x)),
        BAD,
        np.array([4, np.nan, 2], np.float32),
    ),
    "a loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: guarded(c) * 2, x),
        BAD * 8,
        NAN,
    ),
    "a scan": (lambda x: on_rows(x[:, None])[1][:, 0], ROOT, ROOT),
    "nested branches": (
        lambda x: jax.lax.cond(x[0] > 9, jnp.sin, lambda x: guarded(x) + 1, x),
        BAD + 1,
        NAN,
    ),
    "one branch of several": (
        lambda x: jax.lax.switch(
            1 + is_bad(x), [jnp.sin, jnp.cos, lambda x: jax.pure_callback(fail, x, x)], x
        ),
        NAN,
        NAN,
    ),
}
JAXS = {choice: i for i, choice in enumerate(("drop", "nan"), 1)}


@pytest.mark.parametrize("choice", JAXS)
@pytest.mark.parametrize("name", CHECKS)
def test_checks_in_every_mode(name, choice):
    fun, failed = CHECKS[name][0], CHECKS[name][JAXS[choice]]
    expected = np.asarray(fun(jnp.asarray(GOOD)))
    for options in ({}, {"enable_xla": False}, {"polymorphic_shapes": "b"}):
        converted = jax2tf.convert(fun, value_checks=choice, **options)
        for mode in MODES.values():
            run = mode(converted)
            np.testing.assert_allclose(run(tf.constant(GOOD)), expected, rtol=1e-6)
            np.testing.assert_allclose(run(tf.constant(BAD)), failed, rtol=1e-6)
    native = jax2tf.convert(fun, value_checks=choice, native_serialization=True)
    np.testing.assert_allclose(native(BAD), failed, rtol=1e-6)


@pytest.mark.parametrize("choice", JAXS)
def test_gradients_are_those_without_the_check(choice):
    for name in ("inside of a rule for derivatives", "a computation in the other branch", "where"):
        run = tf.function(
            jax2tf.convert(CHECKS[name][0], value_checks=choice), autograph=False, jit_compile=True
        )
        x = tf.constant(GOOD)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(run(x))
        factor = {"where": np.ones(3), "inside of a rule for derivatives": np.full(3, 2)}
        np.testing.assert_allclose(tape.gradient(y, x), factor.get(name, 0.5 / np.sqrt(GOOD)))


@pytest.mark.parametrize(
    "name", [n for n in CHECKS if n not in ("where, of the condition", "select")]
)
def test_by_default_they_raise_where_python_can_be_called(name):
    converted = jax2tf.convert(CHECKS[name][0])
    with pytest.raises(Exception, match="a negative number"):
        converted(BAD)
    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match=r"value_checks='drop'"):
        tf.function(converted, autograph=False, jit_compile=True)(GOOD)


NO_CHECKS = {
    "always": lambda x: jax.pure_callback(check, x, x),
    "one of two branches that compute": lambda x: jax.lax.cond(
        is_bad(x), jnp.cos, lambda x: jax.pure_callback(check, x, x), x
    ),
    "read elsewhere too": lambda x: (lambda y: jnp.where(x < 0, y, x) + y)(
        jax.pure_callback(check, x, x)
    ),
    "the condition": lambda x: jnp.where(
        jax.pure_callback(lambda x: x < 0, jax.ShapeDtypeStruct(x.shape, bool), x), x, -x
    ),
    "of other values": lambda x: jnp.where(
        x < 0, jax.pure_callback(check, x, jnp.arange(3, dtype=x.dtype)), x
    ),
    "computed on": lambda x: jax.lax.cond(
        is_bad(x), lambda x: jnp.sin(jax.pure_callback(check, x, x)), lambda x: x, x
    ),
}


@pytest.mark.parametrize("choice", JAXS)
@pytest.mark.parametrize("name", NO_CHECKS)
def test_callbacks_that_compute_stay(name, choice):
    converted = jax2tf.convert(NO_CHECKS[name], value_checks=choice)
    np.testing.assert_allclose(converted(GOOD), NO_CHECKS[name](jnp.asarray(GOOD)), rtol=1e-6)
    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match="XLA cannot compile a call back"):
        tf.function(converted, autograph=False, jit_compile=True)(GOOD)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, np.nan),
        (jnp.bfloat16, np.nan),
        (np.complex64, np.nan),
        (np.int8, 127),
        (np.uint32, 2**32 - 1),
        (bool, True),
    ],
)
def test_nan_of_every_kind_of_dtype(dtype, expected):
    def fun(bad, x):
        return jax.lax.cond(bad, lambda: jax.pure_callback(fail, x, x), lambda: x)

    run = tf.function(jax2tf.convert(fun, value_checks="nan"), autograph=False, jit_compile=True)
    for shape in ((2,), (), (0, 2)):
        x = np.zeros(shape, dtype)
        np.testing.assert_array_equal(run(False, x).numpy(), x)
        np.testing.assert_array_equal(
            run(True, x).numpy().astype(np.complex128).real, np.full(shape, expected, np.float64)
        )


def test_effects_go_with_the_checks():
    def fun(x):
        return jax.lax.fori_loop(0, 2, lambda i, c: CHECKS["io_callback"][0](c) * 2, x)

    converted = jax2tf.convert(jax.jit(fun), value_checks="drop")
    np.testing.assert_array_equal(converted(BAD), BAD * 4)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(BAD)).graph
    assert any(f.attr["_XlaMustCompile"].b for f in graph.as_graph_def().library.function)


def test_module_saves_them_away(tmp_path):
    module = Module(lambda p, x: guarded(x * p), np.float32(2), value_checks="nan")
    module.f = tf.function(module, autograph=False, input_signature=[tf.TensorSpec([3])])
    tf.saved_model.save(module, str(tmp_path))
    restored = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(restored.f(GOOD), GOOD * 2)
    np.testing.assert_array_equal(restored.f(BAD), NAN)


@pytest.mark.parametrize("suffix", ["", ".tflite"])
def test_export_takes_the_option(suffix, tmp_path):
    result = jax2tf.export(
        lambda x: jnp.sqrt(guarded(x)),
        None,
        "b, 3",
        tmp_path / f"model{suffix}",
        value_checks="drop",
        verify=[(GOOD[None],)],
    )
    (difference,) = result.differences["serving_default"].values()
    assert difference < 1e-6


def test_another_choice_is_refused():
    with pytest.raises(
        ValueError, match=r"value_checks should be one of raise, drop, nan, got 'off'"
    ):
        jax2tf.convert(guarded, value_checks="off")
