"""Shape specs in all their forms, and the errors for those that make no sense."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf
from jax import export

import jax2tf
from jax2tf._src import dims


def shape_of(x, spec, **options):
    """The shape that JAX traces for `x`."""
    shapes, _ = jax2tf.eval_polymorphic_shape(lambda x: x, polymorphic_shapes=spec, **options)(x)
    return str(shapes.shape)


X = np.ones((4, 6), np.float32)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, "(4, 6)"),
        ("...", "(4, 6)"),
        ("b, ...", "(b, 6)"),
        ("(b, _)", "(b, 6)"),
        ("b, 6", "(b, 6)"),
        ("in, out", "(in, out)"),  # Python's keywords are names too
        ("lambda, None", "(lambda, None)"),
        ("2*b, 3*b + a - b", "(2*b, 2*b + a)"),
        ("floordiv(a, 2), a", "(floordiv(a, 2), a)"),
        ("(_, floordiv(a, 2))", "(4, floordiv(a, 2))"),
        (["b, _"], "(b, 6)"),
        (("b, _",), "(b, 6)"),
        (jax2tf.PolyShape("b", None), "(b, 6)"),
        (jax2tf.PolyShape("b", 6), "(b, 6)"),
        (jax2tf.PolyShape("b", ...), "(b, 6)"),
        (jax2tf.PolyShape(...), "(4, 6)"),
        (export.symbolic_shape("b, 6"), "(b, 6)"),
        ((export.symbolic_shape("b, 3*b"),), "(b, 3*b)"),
        (jax2tf.PolyShape(*export.symbolic_shape("b, a")), "(b, a)"),
    ],
)
def test_forms(spec, expected):
    assert shape_of(X, spec) == expected
    if "lambda" not in expected and "b, 3*b" not in expected and "2*b + a" not in expected:
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes=spec)
        if "floordiv" not in expected:
            np.testing.assert_array_equal(converted(X), X)


def test_a_scope_of_the_callers():
    scope = export.SymbolicScope(["b >= 4"])
    spec = export.symbolic_shape("b, 6", scope=scope)
    converted = jax2tf.convert(lambda x: x[:4], polymorphic_shapes=[spec])
    assert converted(X).shape == (4, 6)
    with pytest.raises(ValueError, match="constraint b >= 4 does not hold: 3 >= 4 is false"):
        converted(X[:3])


def test_a_scope_as_constraints():
    scope = export.SymbolicScope(["b >= 4"])
    converted = jax2tf.convert(
        lambda x: x[:4], polymorphic_shapes="b, _", polymorphic_constraints=scope
    )
    assert converted(X).shape == (4, 6)
    with pytest.raises(ValueError, match="constraint b >= 4 does not hold"):
        converted(X[:3])


def test_a_scope_beside_texts():
    spec = export.symbolic_shape("b, c")
    converted = jax2tf.convert(
        lambda x, y: x + y if x.shape == y.shape else x, polymorphic_shapes=[spec, "b, c"]
    )
    np.testing.assert_array_equal(converted(X, X), X + X)


@pytest.mark.parametrize(
    ("constraints", "good", "bad", "words"),
    [
        # JAX puts 2*b where the function sees `a`, 5 + b where it sees c.
        (["a == 2*b"], (8, 4), (8, 3), r"shape\[0\] should be 2\*b|shape\[1\] should be b"),
        (["b == a - 5"], (8, 3), (8, 4), "should be"),
        (["b == a - 5"], (9, 4), (5, 0), "variable b should be at least 1"),
        (["floordiv(a, 2) == b"], (9, 4), (9, 5), "constraint floordiv"),
        (["max(a, b) == 7"], (7, 2), (6, 2), "constraint max"),
        (["min(a, b) >= 3"], (3, 3), (3, 2), "constraint min"),
        (["a*b <= 12"], (6, 2), (7, 2), r"constraint a\*b"),
    ],
)
def test_constraints(constraints, good, bad, words):
    converted = jax2tf.convert(
        lambda x: x, polymorphic_shapes="a, b", polymorphic_constraints=constraints
    )
    assert converted(np.ones(good)).shape == good
    with pytest.raises(ValueError, match=words):
        converted(np.ones(bad))


class TestVariables:
    """A tf.Variable may be made for several shapes."""

    def test_in_eager_mode_its_shape_is_that_of_its_value(self):
        variable = tf.Variable(X, shape=tf.TensorShape(None))
        np.testing.assert_array_equal(jax2tf.convert(lambda x: x + x)(variable), X + X)
        variable.assign(X[:2])
        converted = jax2tf.convert(lambda x: x * x.shape[0], polymorphic_shapes="b, ...")
        np.testing.assert_array_equal(converted(variable), X[:2] * 2)

    def test_in_a_graph(self):
        variable = tf.Variable(X, shape=[None, 6])
        converted = jax2tf.convert(lambda x: x * x.shape[0], polymorphic_shapes="b, ...")
        graph = tf.function(lambda: converted(variable), autograph=False)
        for x in (X, X[:2]):
            variable.assign(x)
            np.testing.assert_array_equal(graph(), x * len(x))
        words = r'x: its shape \(None, 6\) is not fully .*polymorphic_shapes="b, 6"'
        with pytest.raises(ValueError, match=words):
            tf.function(lambda: jax2tf.convert(lambda x: x)(variable), autograph=False)()

    def test_of_unknown_rank_in_a_graph(self):
        variable = tf.Variable(X, shape=tf.TensorShape(None))
        converted = jax2tf.convert(lambda x: x, polymorphic_shapes="b, ...")
        with pytest.raises(ValueError, match=r"x: its rank is unknown.*'b, ...'"):
            tf.function(lambda: converted(variable), autograph=False)()


class TestRefused:
    @pytest.mark.parametrize(
        "spec",
        ["b,,", "0b, 2", "'", "b**2, _", "b, $", "b c", "(b", "f(b), _", "b, 1.5"],
    )
    def test_what_is_no_spec(self, spec):
        with pytest.raises(ValueError, match=r"jax2tf.convert\(<lambda>\): argument x: "):
            shape_of(X, spec)

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ("b", "has 1 dimensions, but the argument has shape (4, 6)"),
            ("b, _, _", "has 3 dimensions, but the argument has shape (4, 6)"),
            ("b, 7", "dimension 1 should be 7"),
            ([{"w": "b, _"}], "argument x: polymorphic_shapes has a dict with the keys 'w' for it"),
            (("b", "c"), "has 2 specs, and 1 arguments came by position (of x)"),
            (7, "a sequence with one for each argument, or a dict with the names of parameters"),
            ([3], "should hold None, texts such as 'b, _', or symbolic shapes, got 3"),
        ],
    )
    def test_what_does_not_fit(self, spec, words):
        with pytest.raises(ValueError, match=re.escape(words)):
            shape_of(X, spec)

    @pytest.mark.parametrize(
        "constraints",
        [["b > 1"], ["b"], [">= 3"], ["b >= "], ["1 == 2"], ["b >= 1 >= a"], ["$ == 1"]],
    )
    def test_what_is_no_constraint(self, constraints):
        with pytest.raises(ValueError, match=r"polymorphic_constraints .*should each be a compar"):
            jax2tf.convert(lambda x: x, polymorphic_constraints=constraints)

    def test_constraints_that_are_one_text(self):
        with pytest.raises(ValueError, match=r"got the text 'b >= 1'; write \['b >= 1'\]"):
            jax2tf.convert(lambda x: x, polymorphic_constraints="b >= 1")

    def test_a_constraint_on_what_no_argument_has(self):
        converted = jax2tf.convert(
            lambda x: x, polymorphic_shapes="b, _", polymorphic_constraints=["c >= 2"]
        )
        with pytest.raises(ValueError, match="speak of dimension variable c, which the shape of"):
            converted(X)

    def test_two_scopes(self):
        specs = [export.symbolic_shape("b, _", like=(None, 6)) for _ in range(2)]
        with pytest.raises(ValueError, match="dimensions of one SymbolicScope"):
            jax2tf.convert(lambda x, y: x, polymorphic_shapes=specs)(X, X)

    def test_a_scope_and_constraints(self):
        spec = export.symbolic_shape("b, 6")
        converted = jax2tf.convert(
            lambda x: x, polymorphic_shapes=[spec], polymorphic_constraints=["b >= 2"]
        )
        with pytest.raises(ValueError, match="give the constraints to the scope"):
            converted(X)


@pytest.mark.parametrize(
    "text", ["", "b +", "b ^ c", "sin(a, b)", "max(a)", "max(a, b, c)", "b)", "(b", "b c", "3.5"]
)
def test_what_is_no_dimension(text):
    with pytest.raises(ValueError, match="cannot read the dimension"):
        dims.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 2*b^2 + 3", -5),
        ("(b - 7)*3", -15),
        ("floordiv(b - 7, 2)", -3),
        ("mod(b - 7, 3)", 1),
        ("max(b, 3) - min(b, mod(b, 2))", 3),
        ("- floordiv(- b, 3) - 1", 0),
        ("if*2 + b", 12),
    ],
)
def test_evaluation(text, expected):
    for make in (int, tf.constant):
        values = {"b": make(2), "if": make(5)}
        assert int(dims.evaluate_expression(dims.parse(text), values)) == expected


def test_a_factor_that_happens_to_be_zero():
    """`a*b` tells nothing of b where a is 0."""
    converted = jax2tf.convert(lambda x: x, polymorphic_shapes="a, a*b")
    assert converted(np.ones((2, 6))).shape == (2, 6)
    with pytest.raises(ValueError, match=r"variable b may have any value: its factor in .*\[1\]"):
        converted(np.ones((0, 0)))
    for jit_compile in (None, True):
        graph = tf.function(
            converted,
            input_signature=[tf.TensorSpec([None, None])],
            autograph=False,
            jit_compile=jit_compile,
        )
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph(np.ones((0, 0), np.float32))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("..., b", r"dimension 0 is '...'; '...' stands for all .* may come last only"),
        ("(b, _", r"dimension 0 is '\(b, _'; close each parenthesis"),
        ("b, _ _", r"dimension 1 is '_ _'; .* '_' alone; commas divide them"),
        ("b, 2*_", r"dimension 1 is '2\*_'; .* '_' alone"),
        ("?, 4", r"'\?' shows an open size that has no name.* such as 'b'"),
    ],
)
def test_placeholders_in_a_wrong_place(spec, words):
    with pytest.raises(ValueError, match=rf"argument x: .*does not fit its shape .*{words}"):
        jax2tf.convert(lambda x: x, polymorphic_shapes=spec)(np.ones((3, 4), np.float32))
