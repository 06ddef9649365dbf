"""What a trace assumes of dimensions is checked wherever the function runs."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf


def graph(fun, signature):
    return tf.function(fun, autograph=False, input_signature=signature)


def compiled(fun, signature):
    return tf.function(fun, autograph=False, input_signature=signature, jit_compile=True)


def restored(fun, signature, folder):
    module = tf.Module()
    module.f = graph(fun, signature)
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder).f


# Where a converted function may end up.
PLACES = {
    "graph": lambda fun, signature, folder: graph(fun, signature),
    "compiled": lambda fun, signature, folder: compiled(fun, signature),
    "graph inside compiled": lambda fun, signature, folder: compiled(
        graph(fun, signature), signature
    ),
    "restored": restored,
    "restored inside compiled": lambda fun, signature, folder: compiled(
        restored(fun, signature, folder), signature
    ),
}
each_place = pytest.mark.parametrize("place", PLACES)


def is_square(x):
    return 1 if x.shape[0] == x.shape[1] else 0


FUNCTIONS = {
    "of nothing but the assumption": is_square,
    "of a dimension": lambda x: x.shape[0] * jnp.ones(2),
    "of the argument": lambda x: x * (1 + is_square(x)),
    "jitted": jax.jit(lambda x: x * (1 + is_square(x))),
}


def unknown(*shape):
    return [tf.TensorSpec(shape, tf.float32)]


@each_place
@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
def test_equal_variables_are_equal(fun, place, tmp_path):
    converted = jax2tf.convert(fun, polymorphic_shapes="b, b")
    function = PLACES[place](converted, unknown(None, None), str(tmp_path))
    x = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(function(x), jax.jit(fun)(x))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape.1..?should.be.b") as error:
        function(np.ones((4, 5), np.float32))
    if place in ("graph", "restored") and not isinstance(fun, jax.stages.Wrapped):
        words = r"x.shape\[1\] should be b:\] \[5\] \[==\] \[4\] .*\[b =\] \[4\]"
    else:
        # XLA's error names both sizes, and the op by which the check is made.
        words = r"\.shape = \[5\] != .*\.shape = \[4\]"
    assert error.match(words)


@each_place
@pytest.mark.parametrize(
    ("spec", "constraints", "good", "bad", "words"),
    [
        ("b", [], 1, 0, "dimension.variable.b.should.be.at.least.1"),
        ("2*b", [], 4, 5, r"b.should.be.whole|shape.*should.be"),
        ("b + 3", [], 4, 3, "dimension.variable.b.should.be.at.least.1"),
        ("b", ["b >= 3"], 3, 2, "constraint.b"),
        ("b", ["b <= 3"], 3, 4, "constraint.b"),
        ("b", ["mod(b, 4) == 0"], 8, 6, "constraint.mod.b"),
        ("b", ["floordiv(b - 7, 3) == -2"], 1, 5, "constraint.floordiv.b"),
    ],
)
def test_every_assumption(spec, constraints, good, bad, words, place, tmp_path):
    converted = jax2tf.convert(
        lambda x: x + 1, polymorphic_shapes=spec, polymorphic_constraints=constraints
    )
    function = PLACES[place](converted, unknown(None), str(tmp_path))
    assert function(np.ones(good, np.float32)).shape == good
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        function(np.ones(bad, np.float32))


@pytest.mark.parametrize("place", ["graph", "compiled"])
@pytest.mark.parametrize("native", [False, True])
def test_a_gradient_that_needs_no_forward_pass(place, native):
    """The backward pass of a sum knows the argument's shape alone."""

    def fun(x):
        return jnp.sum(x) * (1 + is_square(x))

    converted = jax2tf.convert(fun, polymorphic_shapes="b, b", native_serialization=native)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x, output_gradients=tf.constant(3.0))

    function = PLACES[place](gradient, unknown(None, None), None)
    np.testing.assert_array_equal(function(np.ones((2, 2), np.float32)), np.full((2, 2), 6))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"should.be.b"):
        function(np.ones((4, 5), np.float32))


@pytest.mark.parametrize("place", ["graph", "compiled"])
def test_native_serialization(place):
    converted = jax2tf.convert(is_square, polymorphic_shapes="b, b", native_serialization=True)
    function = PLACES[place](converted, unknown(None, None), None)
    assert function(np.ones((2, 2), np.float32)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"should.be.b"):
        function(np.ones((4, 5), np.float32))


@pytest.mark.parametrize("place", ["graph", "compiled"])
def test_across_arguments_of_which_one_is_known(place):
    converted = jax2tf.convert(lambda x, y: y * x.shape[0], polymorphic_shapes=["b", "b, a"])
    signature = [tf.TensorSpec([4]), tf.TensorSpec([None, None])]
    function = PLACES[place](converted, signature, None)
    x = np.ones(4, np.float32)
    assert function(x, np.ones((4, 3), np.float32)).shape == (4, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"argument.y.*shape.0"):
        function(x, np.ones((5, 3), np.float32))


class TestWithoutChecks:
    """polymorphic_checks=False leaves out what only the run can tell."""

    convert = staticmethod(
        partial(jax2tf.convert, polymorphic_shapes="b, b", polymorphic_checks=False)
    )

    @pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
    def test_the_graph_has_no_check(self, fun):
        with_checks = jax2tf.convert(fun, polymorphic_shapes="b, b")
        for converted, wanted in ((with_checks, True), (self.convert(fun), False)):
            function = graph(converted, unknown(None, None)).get_concrete_function()
            definition = function.graph.as_graph_def()
            inner = (f.node_def for f in definition.library.function)
            names = {n.op for n in itertools.chain(definition.node, *inner)}
            assert ("Assert" in names) == wanted

    @each_place
    def test_it_runs(self, place, tmp_path):
        function = PLACES[place](self.convert(is_square), unknown(None, None), str(tmp_path))
        assert function(np.ones((4, 5), np.float32)) == 1

    def test_known_sizes_are_checked_nevertheless(self):
        with pytest.raises(ValueError, match="should be b"):
            self.convert(is_square)(np.ones((4, 5), np.float32))


def test_a_check_holds_for_every_call_of_an_eager_function():
    converted = jax2tf.convert(
        lambda x: x, polymorphic_shapes="b", polymorphic_constraints=["b <= 2"]
    )
    assert converted(np.ones(2, np.float32)).shape == 2
    for _ in range(2):
        with pytest.raises(ValueError, match=r"b = 3 \(argument x.shape\[0\]\)"):
            converted(np.ones(3, np.float32))


@pytest.mark.parametrize("enable_xla", [True, False])
@pytest.mark.parametrize("place", ["graph", "compiled"])
def test_an_op_that_a_wrong_size_breaks_waits_for_the_check(place, enable_xla, tmp_path):
    """A slice of a table that is too short reads nothing but the size."""
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    converted = jax2tf.convert(
        lambda x: jnp.asarray(table)[: x.shape[0]],
        polymorphic_shapes="b",
        polymorphic_constraints=["b <= 4"],
        enable_xla=enable_xla,
    )
    function = PLACES[place](converted, [tf.TensorSpec([None])], tmp_path)
    np.testing.assert_array_equal(function(tf.zeros(3)), table[:3])
    words = {
        "graph": "constraint b <= 4 does not hold",
        "compiled": "Shapes of all inputs must match",
    }
    for _ in range(20):  # without the wait one of the two is the first, now and then
        with pytest.raises(tf.errors.InvalidArgumentError, match=words[place]):
            function(tf.zeros(6))
