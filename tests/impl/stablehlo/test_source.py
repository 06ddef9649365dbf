"""Loaded functions have the equations that their source has: passes and gradients need these."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.extend import core as jex_core

import jax2tf
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import called

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)


def _loaded(function: Any, *specs: Any) -> Any:
    return jax2tf.load(bytes(export.export(jax.jit(function))(*specs).serialize()))


def _standardized(x: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def _attention(x: jax.Array) -> jax.Array:
    q, k, v = jnp.split(x, 3, axis=-1)
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)), q @ k.T / 2, -1e9)
    return jax.nn.softmax(scores) @ v


def _lstm(x: jax.Array) -> tuple[Any, Any]:
    def step(carry: Any, row: jax.Array) -> tuple[Any, Any]:
        h, c = carry
        i, f, g = jnp.split(row * h[0], 3)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jnp.tanh(c), c), {"c": c, "g": g > 0}

    zeros = jnp.zeros(2, x.dtype)
    return lax.scan(step, (zeros, zeros), x, reverse=True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dense": lambda x: jax.nn.silu(x @ x.T + x[:, 0]) / 3,
    "gelu": jax.nn.gelu,
    "activations": lambda x: jax.nn.relu(x) + jax.nn.relu6(x) + jax.nn.softplus(x),
    "norm": _standardized,
    "attention": _attention,
    "log_softmax": jax.nn.log_softmax,
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 1) + lax.cumlogsumexp(x + 0j, 0).real,
    "magnitude": lambda x: jnp.abs(lax.complex(x, jnp.sin(x))),
    "lstm": _lstm,
    "nested": lambda x: lax.map(lambda r: lax.map(lambda s: s * r, x), x),
    "counts": lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * i, x),
    "while": lambda x: lax.while_loop(lambda y: y.sum() < 9, lambda y: y + x.sum(), jnp.cos(x)),
}
# Equations that hand a value on, and those by which sizes and constants become arrays.
_PASSED_OVER = {"convert_element_type", "dim_as_value", "stop_gradient", "copy", "copy_p"}
# JAX writes one op for both.
_AS_WRITTEN = {"squeeze": "reshape"}


def _primitives(jaxpr: jex_core.Jaxpr) -> Iterator[str]:
    """The primitives that the results need, those of inner jaxprs too."""
    needed = {x for x in jaxpr.outvars if isinstance(x, jex_core.Var)}
    for eqn in reversed(jaxpr.eqns):
        if needed.isdisjoint(eqn.outvars) and not eqn.effects:
            continue
        needed.update(x for x in eqn.invars if isinstance(x, jex_core.Var))
        if eqn.primitive in traits.CALLS:
            yield from _primitives(called(eqn).jaxpr)
            continue
        if eqn.primitive.name not in _PASSED_OVER:
            yield _AS_WRITTEN.get(eqn.primitive.name, eqn.primitive.name)
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if isinstance(inner, jex_core.ClosedJaxpr):
                yield from _primitives(inner.jaxpr)


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equations(name: str, is_open: bool):
    function = FUNCTIONS[name]
    size = export.symbolic_shape("b")[0] if is_open else 4
    spec = jax.ShapeDtypeStruct((size, 6), np.float32)
    loaded = _loaded(function, spec)
    got, want = (
        collections.Counter(_primitives(jax.jit(f).trace(spec).jaxpr.jaxpr))
        for f in (loaded, function)
    )
    assert not got - want
    assert (want - got).keys() <= {"broadcast_in_dim"}
    for x, y in zip(*(jax.tree.leaves(jax.jit(f)(X)) for f in (loaded, function)), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["gelu", "norm", "attention", "lstm", "magnitude", "nested"])
def test_gradients_with_an_open_size(name: str):
    function = FUNCTIONS[name]
    loaded = _loaded(function, jax.ShapeDtypeStruct((export.symbolic_shape("b")[0], 6), X.dtype))

    def loss(f: Any, x: jax.Array) -> jax.Array:
        floats = [y for y in jax.tree.leaves(f(x)) if y.dtype == np.float32]
        return sum(jnp.sum(jnp.sin(y)) for y in floats)  # type: ignore[return-value]

    got, want = (jax.jit(jax.grad(lambda x, f=f: loss(f, x)))(X) for f in (loaded, function))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_gradients_where_ops_have_others():
    nn = jax.nn
    functions = [nn.relu, nn.sigmoid, nn.relu6, nn.softplus, nn.log_sigmoid, nn.hard_silu]
    functions += [jnp.sinc, lax.asin]
    x = jnp.tile(jnp.array([0.0, 1.0, -3.0, -200.0, 200.0]), (len(functions), 1))
    function = lambda x: sum(f(row).sum() for f, row in zip(functions, x, strict=True))  # noqa: E731
    got, want = (jax.jit(jax.grad(f))(x) for f in (_loaded(function, x), function))
    np.testing.assert_allclose(got, want, rtol=1e-6)


@jax.jit
def relu(x: jax.Array) -> jax.Array:
    """Another function than jax.nn.relu under its name."""
    return jnp.where(x > 0, x, x / 8)


def test_a_name_alone_tells_no_function():
    for shape in ((), (2,)):
        x = jnp.full(shape, -4.0)
        np.testing.assert_array_equal(_loaded(lambda x: relu(x), x)(x), relu(x))


def test_gradients_of_powers_of_integers():
    x, n = jnp.array([0.0, -2.0, jnp.nan, 3.0]), jnp.array([0, 3, 0, -1], jnp.int8)
    got, want = (
        jax.grad(lambda x, f=f: f(x, n).sum())(x) for f in (_loaded(jnp.power, x, n), jnp.power)
    )
    np.testing.assert_array_equal(got, want)
    assert got[0] == 0


def test_starts_of_slices_are_not_counted_from_the_end():
    def function(x: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
        update = jnp.zeros((2, 6), x.dtype)
        return lax.dynamic_slice(x, (i, 0), (2, 6)), lax.dynamic_update_slice(x, update, (i, 0))

    loaded = _loaded(function, X, jnp.int32(0))
    for i in (-9, -5, -1, 0, 2, 9):  # JAX adds the size of four, and StableHLO clamps the rest
        for got, want in zip(loaded(X, jnp.int32(i)), function(X, jnp.int32(i)), strict=True):
            np.testing.assert_array_equal(got, want)


def test_rows_that_a_loop_writes_in_part():
    """The types of open sizes do not tell that a step writes half of a row."""

    def function(x: jax.Array) -> jax.Array:
        half = x.shape[1] // 2

        def step(i: jax.Array, y: jax.Array) -> jax.Array:
            row = lax.dynamic_slice(x, (i, 0), (1, half))
            return lax.dynamic_update_slice(y, row * 2, (i, 0))

        return lax.fori_loop(0, x.shape[0], step, x)

    specs = export.symbolic_shape("b, c")
    loaded = _loaded(function, jax.ShapeDtypeStruct(specs, np.float32))
    np.testing.assert_array_equal(loaded(X), function(X))


def test_special_functions_with_loops_have_jax_derivatives():
    def function(a: jax.Array, x: jax.Array) -> jax.Array:
        return lax.igammac(jnp.exp(a), x) * 2

    a, x = jnp.array([0.3, 1.2]), jnp.array([0.5, 2.0])
    loaded = _loaded(function, a, x)
    got, want = (
        jax.jit(jax.grad(lambda a, x, f=f: f(a, x).sum(), (0, 1)))(a, x) for f in (loaded, function)
    )
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_constant_may_be_an_operand_of_a_function_with_loops():
    x = jnp.array([0.25, 2.0])
    loaded = _loaded(lambda x: lax.igamma(jnp.full_like(x, 2), x), x)
    gradient = jax.jit(jax.grad(lambda x: loaded(x).sum()))(x)
    np.testing.assert_allclose(gradient, x * jnp.exp(-x), 1e-5)


def test_other_functions_with_loops_have_no_other_derivatives():
    def function(x: jax.Array) -> jax.Array:
        def step(carry: Any) -> Any:
            go, *values = carry
            return go & (values[0] > 0.1), *(value / 2 for value in values)

        done = lax.while_loop(lambda carry: carry[0].any(), step, (x > 0, x, x, x + 1, x))
        return jnp.where(x > 3, jnp.nan, done[3])

    loaded = _loaded(function, X)
    np.testing.assert_array_equal(loaded(X), function(X))
    got, want = (jax.jvp(f, (X,), (X,))[1] for f in (loaded, function))
    np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(lambda x: loaded(x).sum())(X)


def test_special_functions_of_few_ops_or_of_no_name():
    functions = [lax.bessel_i0e, *([lax.log2] if hasattr(lax, "log2") else [])]
    for function, dtype in itertools.product(functions, ("float32", "bfloat16")):
        x = jnp.array([0.0, 1e-40, -0.3, 2.0, 40.0], dtype)
        got, want = (
            jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(x)
            for f in (_loaded(function, x), function)
        )
        np.testing.assert_array_equal(np.asarray(got, np.float32), np.asarray(want, np.float32))


def test_searches_in_dtypes_without_infinities():
    x = jnp.array([1, 3, 2], "float8_e4m3fnuz")
    for search in (lax.argmax, lax.argmin):
        function = lambda x, search=search: search(x, 0, np.int32)  # noqa: E731
        assert search.__name__ in _primitives(jax.make_jaxpr(_loaded(function, x))(x).jaxpr)
