"""Errors of symbolic shapes say which constraints decide them, and those do."""

from __future__ import annotations

import ast
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import jax2tf
from jax2tf._src.dims import advice

X = np.arange(12, dtype=np.float32).reshape(3, 4)
TABLE = jnp.ones((512, 4))


@pytest.mark.parametrize(
    ("fun", "constraints"),
    [
        (lambda x: x + TABLE[: x.shape[0]], ["t <= 512"]),
        (lambda x: x + lax.dynamic_slice_in_dim(TABLE, 0, x.shape[0]), ["t <= 512"]),
        (lambda x: lax.dynamic_update_slice(TABLE, x, (0, 0)), ["t <= 512"]),
        (lambda x: TABLE.at[: x.shape[0]].set(x), ["t <= 512"]),
        (lambda x: x[:2] + TABLE[:2], ["t >= 2"]),
        (lambda x: x[1:] * 2 + x[2:].sum() + x[:-1] * lax.top_k(x.T, 2)[0].sum(), ["t >= 2"]),
        (lambda x: jnp.broadcast_to(x[:1], (x.shape[0] - 2, 4)), ["t >= 2"]),
        (lambda x: jnp.stack([x, x[:3]]), ["t <= 3"]),
        (lambda x: jnp.concatenate([x, TABLE[: x.shape[0]]], axis=1), ["t <= 512"]),
        (lambda x: jnp.arange(10)[: x.shape[0]] + jnp.arange(x.shape[0]), ["t <= 10"]),
        (lambda x: jnp.pad(x, ((0, 8 - x.shape[0]), (0, 0))), ["t <= 8"]),
        (lambda x: jnp.pad(x, ((1, 0), (0, 0)), mode="symmetric"), ["t >= 2"]),
        (lambda x: jnp.pad(x, ((0, 3), (0, 0)), mode="symmetric"), ["t >= 3"]),
        (lambda x: jnp.pad(x, ((2, 2), (0, 0)), mode="reflect"), ["t >= 3"]),
        (lambda x: jnp.split(x, 3), ["mod(t, 3) == 0"]),
        (lambda x: x.reshape(-1, 6), ["mod(4*t, -6) == 0"]),
        (lambda x: x.reshape(-1, 3, 2).sum(0), ["mod(4*t, -6) == 0"]),
    ],
)
def test_the_advice_works(fun, constraints):
    with pytest.raises(Exception) as error:  # noqa: PT011 - of JAX's, of several types
        jax2tf.convert(fun, polymorphic_shapes="t, _")(X)
    (note,) = (n for n in error.value.__notes__ if n.startswith("jax2tf.convert: JAX cannot"))
    advice = [ast.literal_eval(a) for a in re.findall(r"polymorphic_constraints=(\[.*?\])", note)]
    assert constraints in advice, note
    converted = jax2tf.convert(fun, polymorphic_shapes="t, _", polymorphic_constraints=constraints)
    actual, expected = converted(X), fun(jnp.asarray(X))
    for a, e in zip(*map(jax_leaves, (actual, expected)), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5)


@pytest.mark.parametrize("lists_are_taken", [False, True])
@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_the_advice_on_padding_that_wraps_around(monkeypatch, before, after, lists_are_taken):
    if lists_are_taken:  # tf_substrates gives JAX's arrays such an operator
        monkeypatch.setattr(
            jax.core.Tracer, "__mul__", lambda x, other: jnp.multiply(x, jnp.stack(other))
        )

    def convolved(x):  # as flax does for padding "CIRCULAR"
        padded = jnp.pad(x[None], ((0, 0), (before, after), (before, after)), mode="wrap")
        return lax.conv(padded[None], jnp.ones((1, 1, 2, 2)), (1, 2), "VALID")

    given = ["t >= 4", "u >= 4"]
    with pytest.raises(Exception, match="inconclusive") as error:
        jax2tf.convert(convolved, polymorphic_shapes="t, u", polymorphic_constraints=given)(X)
    (note,) = (n for n in error.value.__notes__ if n.startswith("jax2tf.convert: JAX cannot"))
    (advice,) = re.findall(r"polymorphic_constraints=(\[.*?\])", note)
    converted = jax2tf.convert(
        convolved,
        polymorphic_shapes="t, u",
        polymorphic_constraints=[*given, *ast.literal_eval(advice)],
    )
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    np.testing.assert_allclose(converted(x), convolved(jnp.asarray(x)))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y: x + y,
        lambda x, y: x @ y.T,
        lambda x, y: jnp.where(x > 0, x, y),
        lambda x, y: jnp.stack([x, y]),
        lambda x, y: jnp.concatenate([x, y], axis=0),
        lambda x, y: lax.cond(x.sum() > 0, lambda: x, lambda: y),
    ],
)
def test_sizes_that_have_to_be_equal(fun):
    shapes = ["t, a", "t, b"]
    with pytest.raises((TypeError, ValueError)) as error:
        jax2tf.convert(fun, polymorphic_shapes=shapes)(X, X)
    (note,) = (n for n in error.value.__notes__ if n.startswith("jax2tf.convert: JAX cannot"))
    assert "polymorphic_constraints=['a == b']" in note
    converted = jax2tf.convert(fun, polymorphic_shapes=shapes, polymorphic_constraints=["a == b"])
    np.testing.assert_allclose(converted(X, X), fun(jnp.asarray(X), jnp.asarray(X)), rtol=1e-5)
    with pytest.raises(ValueError, match=r"y\.shape\[1\] should be b: 3 == 4 is false"):
        converted(X, X[:, :3])


def _over(in_specs, out_specs, fun=lambda *args: args, **axes):
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    return jax.shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


@pytest.mark.parametrize(
    ("fun", "shapes", "multiples"),
    [
        (_over(P("a"), P("a"), a=8), ["b, _"], {"b": "8*b"}),
        (_over(P(("a", "c")), P(("c", "a")), a=4, c=2), ["b, _"], {"b": "8*b"}),
        (_over(P("a"), P("a"), a=8), ["2*b, _"], {"2*b": "8*b"}),
        (_over(P(None, "a"), P(None, "a"), a=8), ["b, d"], {"d": "8*d"}),
        (
            _over((P("a"), P(None, "c")), P("a", "c"), lambda x, y: x @ y, a=4, c=2),
            ["b, _", "_, d"],
            {"b": "4*b", "d": "2*d"},
        ),
        (
            _over(P("a"), P("a"), lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True), a=8),
            ["_, d"],
            {"d": "8*d"},
        ),
        (
            _over(P("a"), P("a"), lambda x: lax.psum_scatter(x, "a", tiled=True), a=4),
            ["4*b, _"],
            {"b": "4*b"},
        ),
        (lambda x: jnp.split(x, 4), ["b, _"], {"b": "4*b"}),
    ],
)
def test_multiples_are_named(fun, shapes, multiples):
    args = [np.arange(256, dtype=np.float32).reshape(16, 16)] * len(shapes)
    with pytest.raises(ValueError, match="divi") as error:
        jax2tf.convert(fun, polymorphic_shapes=shapes)(*args)
    (note,) = (n for n in error.value.__notes__ if n.startswith("jax2tf.convert: JAX cannot"))
    words = [f"`{multiple}` in the place of `{size}`" for size, multiple in multiples.items()]
    assert note.endswith(f"or with {' and '.join(words)} in polymorphic_shapes")
    for size, multiple in multiples.items():
        shapes = [shape.replace(size, multiple) for shape in shapes]
    results = jax2tf.convert(fun, polymorphic_shapes=shapes)(*args)
    expected = jax2tf.convert(fun)(*args)
    for result, other in zip(jax_leaves(results), jax_leaves(expected), strict=True):
        np.testing.assert_array_equal(result, other)


def jax_leaves(tree):
    return [np.asarray(leaf) for leaf in (tree if isinstance(tree, list) else [tree])]


def test_nothing_is_said_where_nothing_helps():
    with pytest.raises(TypeError) as error:
        jax2tf.convert(lambda x: x @ x, polymorphic_shapes="t, _")(X)
    assert not any("polymorphic_constraints" in n for n in error.value.__notes__)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.zeros(x.shape) + x,
        lambda x: sum(x[i] for i in range(x.shape[0])),
        lambda x: int(x.shape[0]) * x,
        lambda x: float(x.shape[0]) * x,
        lambda x: x.at[x.shape[0] - 1].set(1),
        lambda x: jax.random.permutation(jax.random.key(0), x),
    ],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["eager", "graph"])
def test_a_dimension_is_no_int(fun, is_known):
    converted = jax2tf.convert(fun, polymorphic_shapes="t, _")
    if not is_known:
        signature = [tf.TensorSpec([None, 4], tf.float32)]
        converted = tf.function(converted, autograph=False, input_signature=signature)
    with pytest.raises(Exception) as error:  # noqa: PT011 - of JAX's, of several types
        converted(X)
    (note,) = (n for n in error.value.__notes__ if "every size is known" in n)
    for words in ("not for x: (t, 4)", "jnp.zeros", "jnp.asarray(x.shape[0])", "fori_loop", "`_`"):
        assert words in note


def test_what_fails_for_every_size_is_not_for_the_names():
    def fun(x):
        raise TypeError("of the user")

    with pytest.raises(TypeError, match="of the user") as error:
        jax2tf.convert(fun, polymorphic_shapes="t, _")(X)
    assert not any("every size is known" in n for n in error.value.__notes__)


class UnlikeJax(Exception):
    """What a library of the user's raises."""


def test_errors_of_other_kinds():
    def fun(x):
        if x.shape[0] != 3:
            raise UnlikeJax("min(512, t) is not 3: (a, 4) and (b, 4)")
        return x

    with pytest.raises(UnlikeJax) as error:
        jax2tf.convert(fun, polymorphic_shapes="t, _")(X)
    assert any("traces where every size is known" in note for note in error.value.__notes__)


@pytest.mark.parametrize("text", ["(", "got '''", "min(, )", "min(a, ')", "mod(\\, 2)", "(a b, @)"])
def test_words_that_are_no_dimensions(text):
    def fun(x):
        raise ValueError(f"{text} (b, 4) min({text}, 4)")

    with pytest.raises(ValueError, match=re.escape(text)):
        jax2tf.convert(fun, polymorphic_shapes="t, _")(X)


def test_no_trace_starts_when_a_search_has_taken_too_long(monkeypatch):
    def fun(x):
        return x + TABLE[: x.shape[0]]

    def notes():
        converted = jax2tf.convert(fun, polymorphic_shapes="t, _", with_gradient=False)
        with pytest.raises(TypeError, match="incompatible shapes") as raised:
            converted(X)
        return "\n".join(raised.value.__notes__)

    assert "polymorphic_constraints=['t <= 512']" in notes()
    monkeypatch.setattr(advice, "_MOST_SECONDS", 0.0)
    assert "t <= 512" not in notes()
