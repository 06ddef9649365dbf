"""The profile of a conversion: whose time it is, and what it refuses."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from jax2tf._src.explain import timing as profiling

X = jax.ShapeDtypeStruct((2, 3), jnp.float32)


def model(x):
    y = jnp.tanh(x) + 1.0
    for _ in range(3):
        y = layer(y)
    return {"out": y.sum()}


@jax.jit
def layer(x):
    return jnp.sin(x) @ jnp.ones((3, 3))


def test_times_are_of_the_users_lines():
    found = jax2tf.profile(model, X)
    assert (found.function, found.target) == ("model", "xla")
    assert list(found.steps) == ["trace", "prepare", "lower", "graph"]
    assert min(found.steps.values()) >= 0
    assert found.seconds == pytest.approx(sum(found.steps.values()))
    assert found.steps["lower"] == pytest.approx(sum(line.seconds for line in found.lines))
    functions = [line.source.partition("(")[2] for line in found.lines]
    assert set(functions) == {"model)", "layer)"}
    assert [line.seconds for line in found.lines] == sorted(
        (line.seconds for line in found.lines), reverse=True
    )


def test_equations_and_ops_are_counted_by_line():
    found = jax2tf.profile(lambda x: jnp.sin(jnp.cos(x)) * 2.0, X)
    # Newer versions of JAX tell columns of a line apart.
    assert sum(line.equations for line in found.lines) == 3
    assert sum(line.ops for line in found.lines) >= 3
    assert all("test_profile.py" in line.source for line in found.lines)


def test_time_of_a_call_is_not_that_of_what_it_calls(monkeypatch):
    # A clock that one equation alone moves.
    now = [0.0]
    monkeypatch.setattr(profiling.time, "perf_counter", lambda: now[0])
    lines = profiling._Lines()
    jaxpr = jax.make_jaxpr(model)(X)
    eqns = {e.primitive.name: e for e in jaxpr.eqns}
    with lines.within(eqns["tanh"], "rule"):
        now[0] += 1
        with lines.within(eqns["jit"] if "jit" in eqns else eqns["pjit"], "rule"):
            now[0] += 10
        now[0] += 2
    now[0] += 100
    with lines.within(eqns["tanh"], "rule"):
        now[0] += 4
    by_line = {line.source.rpartition(":")[0].rpartition(":")[2]: line for line in lines.found()}
    assert sorted(line.seconds for line in by_line.values()) == [7, 10]
    assert sorted(line.equations for line in by_line.values()) == [1, 2]


def test_it_prints_a_table():
    text = str(jax2tf.profile(model, X, target="tensorflow"))
    head, columns, *rows = text.splitlines()
    assert head.startswith("model, target tensorflow: ")
    assert columns.split() == ["ms", "equations", "ops", "line"]
    assert all("test_profile.py" in row for row in rows)
    lines = tuple(profiling.Line(f"f.py:{i}", 0.1, 1, 1) for i in range(25))
    assert str(profiling.Profile("f", "xla", {}, lines)).endswith("\nand 5 lines more")


def test_shapes_and_keywords():
    found = jax2tf.profile(
        lambda x, *, scale: x * scale,
        tf.TensorSpec([None, 3], tf.float32),
        scale=np.float32(2.0),
        polymorphic_shapes={"x": "b, _"},
    )
    assert sum(line.equations for line in found.lines) >= 1


def test_what_it_refuses():
    with pytest.raises(TypeError, match=r"jax2tf\.profile: fun_jax"):
        jax2tf.profile(3, X)
    with pytest.raises(ValueError, match="target"):
        jax2tf.profile(model, X, target="abacus")

    def filtered(x):
        return jax.ffi.ffi_call("my_filter", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(jax2tf.ConversionError, match="my_filter"):
        jax2tf.profile(filtered, X)


def test_a_slow_rule_is_found(monkeypatch):
    from jax2tf._src.lowering import interpreter

    inner = interpreter.Lowering._results

    def slow(self, step, operands):
        if step.eqn.primitive.name == "cos":
            time.sleep(0.05)
        return inner(self, step, operands)

    monkeypatch.setattr(interpreter.Lowering, "_results", slow)

    def fun(x):
        y = jnp.sin(x)
        return jnp.cos(y)

    slowest, *_ = jax2tf.profile(fun, X).lines
    assert slowest.seconds >= 0.05
    assert slowest.equations == 1
