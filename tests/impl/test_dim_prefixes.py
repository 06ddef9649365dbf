"""Which shape spec belongs to which argument: by position, by the parameter's name, by prefix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.ones((4, 6), np.float32)


class Pair(NamedTuple):
    left: object
    right: object


class Nothing(NamedTuple):
    pass


def attend(query, key, /, value=None, *rest, mask=None, **others):
    """All kinds of parameters; gives its arguments as they come."""
    return {"query": query, "key": key, "value": value, "rest": rest, "mask": mask, **others}


def shapes_of(specs, *args, **kwargs):
    """The shapes that JAX traces for the arguments of `attend` that are there."""
    _, texts = jax2tf.eval_polymorphic_shape(attend, polymorphic_shapes=specs)(*args, **kwargs)
    return {name: text for name, text in texts.items() if text not in (None, ())}


@pytest.mark.parametrize(
    ("specs", "args", "kwargs", "expected"),
    [
        ({"query": "b, _"}, (X, X), {}, {"query": "(b, 6)", "key": "(4, 6)"}),
        ({"mask": "b, _", "key": "b, ..."}, (X, X), {"mask": X}, ["(4, 6)", "(b, 6)", "(b, 6)"]),
        # The name counts, not how the argument comes.
        ({"value": "b, _"}, (X, X), {"value": X}, ["(4, 6)", "(4, 6)", "(b, 6)"]),
        ({"value": "b, _"}, (X, X, X), {}, ["(4, 6)", "(4, 6)", "(b, 6)"]),
        (["b, _", None, "b, 6"], (X, X), {"value": X}, ["(b, 6)", "(4, 6)", "(b, 6)"]),
        # A parameter that is left out needs no spec, and its spec does no harm.
        (["b, _", "b, _", "b, _"], (X, X), {}, ["(b, 6)", "(b, 6)"]),
        ({"query": "b, _", "mask": "b"}, (X, X), {}, ["(b, 6)", "(4, 6)"]),
        # Those behind the named ones.
        ({"rest": "b, _"}, (X,) * 5, {}, ["(4, 6)"] * 3 + [("(b, 6)", "(b, 6)")]),
        ({"rest": [None, "b, _"]}, (X,) * 5, {}, ["(4, 6)"] * 3 + [("(4, 6)", "(b, 6)")]),
        ({"extra": "b, _"}, (X, X), {"extra": X, "also": X}, {"extra": "(b, 6)"}),
        # A tree of specs for an argument that is a tree.
        (
            {"value": {"w": "b, _", "v": None}},
            (X, X),
            {"value": {"w": X, "v": X}},
            {"value": {"w": "(b, 6)", "v": "(4, 6)"}},
        ),
        ([Pair("b, _", None), None], (Pair(X, X), X), {}, {"query": Pair("(b, 6)", "(4, 6)")}),
        # A part without arrays, as optax.EmptyState is.
        (
            [Pair("b, _", Nothing()), None],
            (Pair(X, Nothing()), X),
            {},
            {"query": Pair("(b, 6)", Nothing())},
        ),
        (
            [None, {"of": {}, "x": "b, _"}],
            (X, {"of": {}, "x": X}),
            {},
            {"key": {"of": {}, "x": "(b, 6)"}},
        ),
        ({}, (X, X), {}, ["(4, 6)", "(4, 6)"]),
        # One spec is for all that comes by position.
        ("b, _", (X, X), {"mask": X}, ["(b, 6)", "(b, 6)", "(4, 6)"]),
    ],
)
def test_an_argument_gets_its_spec(specs, args, kwargs, expected):
    shapes = shapes_of(specs, *args, **kwargs)
    if isinstance(expected, dict):
        assert {name: shapes[name] for name in expected} == expected
    else:
        order = ("query", "key", "value", "rest", "mask")
        assert [shapes[name] for name in order if name in shapes] == expected


@pytest.mark.parametrize("options", [{}, {"native_serialization": True}, {"enable_xla": False}])
@pytest.mark.parametrize("kind", ["convert", "Module"])
def test_one_graph_serves_every_size_of_a_keyword_argument(kind, options):
    def fun(params, x, *, mask):
        return (x * mask[:, None]).sum(0) * params / x.shape[0]

    specs = {"x": "b, _", "mask": "b"}
    if kind == "Module":
        converted = jax2tf.Module(fun, np.float32(2), polymorphic_shapes=specs, **options)
    else:
        of_params = jax2tf.convert(fun, polymorphic_shapes=specs, **options)

        def converted(x, mask):
            return of_params(np.float32(2), x, mask=mask)

    graph = tf.function(
        lambda x, mask: converted(x, mask=mask),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None])],
    )
    for size in (1, 4):
        x = np.arange(3.0 * size, dtype=np.float32).reshape(size, 3)
        mask = np.arange(size, dtype=np.float32)
        np.testing.assert_allclose(graph(x, mask), fun(2, x, mask=mask), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"mask"):
        graph(np.ones((4, 3), np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("specs", "args", "kwargs", "words"),
    [
        (["b"], (X, X), {}, ["has 1 specs, and 2 arguments came by position (of query, key)"]),
        (["b"] * 4, (X, X), {"mask": X}, ["has 4 specs, and 2", "(of query, key, mask)"]),
        ({"quer": "b"}, (X, X), {}, ["a spec for 'quer'", "query, key, value, mask, rest"]),
        # A dict has names of parameters for its keys, whatever the argument is.
        (
            {"w": "b, _"},
            ({"w": X}, X),
            {},
            ["a spec for 'w'", "polymorphic_shapes=[{'w': ...}]"],
        ),
        ({"other": "b"}, (X, X), {"mask": X}, ["a spec for 'other'"]),
        ({"rest": ["b"]}, (X,) * 5, {}, ["['b'] for *rest, which got 2 arguments"]),
        (
            {"mask": {"v": "b"}},
            (X, X),
            {"mask": {"w": X}},
            ["argument mask: ", "has a dict with the keys 'v'", "it is a dict with the keys 'w'"],
        ),
        (
            [{"a": ["b"]}, None],
            ({"a": (X,)}, X),
            {},
            ["argument query['a']: ", "has a list of 1", "it is a tuple of 1"],
        ),
        ([["b"], None], (X, X), {}, ["argument query: ", "a list of 1 for it, and it is an array"]),
        ({"mask": 3}, (X, X), {"mask": X}, ["argument mask: ", "should hold None, texts"]),
        ({"mask": "b"}, (X, X), {"mask": X}, ["argument mask: ", "'b' has 1 dimensions"]),
        (object(), (X, X), {}, ["a dict with the names of parameters as keys, got <object"]),
    ],
)
def test_what_does_not_fit_is_named(specs, args, kwargs, words):
    with pytest.raises(ValueError, match=r"jax2tf.convert\(attend\)") as error:
        jax2tf.convert(attend, polymorphic_shapes=specs)(*args, **kwargs)
    for piece in words:
        assert piece in str(error.value)


class TestOfAModule:
    """Its specs are those of the inputs: parameters have known shapes."""

    @pytest.mark.parametrize("specs", ["b, _", ["b, _"], ("b, _",), {"x": "b, _"}])
    def test_forms(self, specs):
        module = jax2tf.Module(lambda p, x: x @ p, np.ones((6, 2)), polymorphic_shapes=specs)
        graph = tf.function(module, input_signature=[tf.TensorSpec([None, 6])])
        assert [graph(X[:n]).shape for n in (4, 2)] == [(4, 2), (2, 2)]

    def test_a_spec_for_the_parameters(self):
        module = jax2tf.Module(lambda p, x: x @ p, np.ones((6, 2)), polymorphic_shapes={"p": "b"})
        with pytest.raises(ValueError, match=r"jax2tf.Module\(<lambda>\): .*'p', which are the"):
            module(X)

    def test_errors_name_the_users_parameter(self):
        module = jax2tf.Module(lambda p, ids: ids @ p, np.ones((6, 2)), polymorphic_shapes="b, _")
        with pytest.raises(
            ValueError,
            match=r"argument ids: polymorphic_shapes 'b, _' has 2 dimensions, .* shape \(6,\)",
        ):
            module(X[0])
        with pytest.raises(TypeError, match=r"argument ids\['x'\]: expected"):
            module({"x": "text"})
