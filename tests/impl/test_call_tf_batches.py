"""call_tf over batches of batches, and what is said where TensorFlow fails over a batch."""

import concurrent.futures
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from jax2tf import CallTfError, call_tf, convert

X = np.array([-1.0, 0.5, 2.0], np.float32)


def _around(f):
    """JAX before and behind the call: its hessian is forward over reverse over a batch of both."""
    return lambda x: jnp.sin(f(x * x)) * x.sum()


STAGES = {
    "op_by_op": lambda f: f,
    "jit": jax.jit,
    "converted": lambda f: tf.function(convert(f), autograph=False),
}
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


@each_stage
def test_hessian_of_a_function_around_a_call(stage):
    f_tf = call_tf(lambda x: tf.reduce_sum(tf.sin(x) * x))
    expected = jax.hessian(_around(lambda x: jnp.sum(jnp.sin(x) * x)))(X)
    assert_allclose(stage(jax.hessian(_around(f_tf)))(X), expected, rtol=1e-5, atol=1e-5)


def test_derivatives_of_a_concatenation():
    """Compiled, TensorFlow's gradient of a slice is an op that has no gradient of its own."""

    def third(f):
        return jax.jacfwd(jax.hessian(f))

    def f(numpy, x):
        parts = numpy.concat([x * x, x], axis=0)
        return numpy.sin(parts) * parts

    expected = third(partial(f, jnp))(X)
    actual = jax.jit(third(call_tf(partial(f, tf))))(X)
    assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_op_by_op_first_and_compiled_then():
    """The graph of a batch that runs op by op is not what XLA compiles."""

    def f(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: x * x)

    hessian = jax.hessian(call_tf(f))
    expected = jax.hessian(jnp.sin)(X)
    assert_allclose(hessian(X), expected, rtol=1e-5, atol=1e-6)
    assert_allclose(jax.jit(hessian)(X), expected, rtol=1e-5, atol=1e-6)


def test_a_batch_of_a_batch_of_a_loop_in_what_is_converted_compiled():
    """XLA does not compile what tf.vectorized_map makes of it; one of the two becomes a loop."""

    def f(x):
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) + x), (0, x), maximum_iterations=3
        )[1]

    batches = jax.jit(jax.vmap(jax.vmap(call_tf(f))))
    x = np.stack([X, 2 * X])
    once = np.sin(x) + x
    expected = np.sin(np.sin(once) + x) + x
    assert_allclose(convert(batches, with_gradient=False)(x), expected, rtol=1e-5)


@each_stage
def test_a_function_that_has_batches_of_its_own(stage):
    """The names of what TensorFlow makes of a batch within a batch do not clash."""

    @tf.function(autograph=False)
    def f(x):
        return tf.vectorized_map(lambda y: tf.tile(y[None], [2]) * tf.reduce_sum(x), x[:1])

    actual = stage(jax.vmap(call_tf(f)))(X[:, None])
    np.testing.assert_array_equal(actual, np.tile((X * X)[:, None, None], [1, 1, 2]))


def test_a_loop_of_a_function_that_reads_a_variable():
    v = tf.Variable(0.5)
    f = call_tf(lambda x: tf.foldl(lambda a, b: a * v + b, x))
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([X, 2 * X])), [2, 4])


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["op_by_op", "jit"])
def test_whatever_a_rule_for_batches_raises_there_is_the_loop(stage, caplog):
    """AttributeError, of a branch inside of a loop, over two batches."""

    @tf.function(autograph=False)
    def f(x):
        def step(i, y):
            return i + 1, y + tf.cond(y > 0, lambda: 1.0, lambda: 2.0)

        return tf.while_loop(lambda i, y: i < 3, step, (tf.constant(0), x))[1]

    mapped = jax.vmap(jax.vmap(call_tf(f)))
    np.testing.assert_array_equal(stage(mapped)(X[:, None]), [[3], [3.5], [5]])
    assert not caplog.records


class TestFailures:
    def test_while_it_runs(self):
        def checked(x):
            tf.debugging.assert_positive(x, message="mine")
            return x

        with pytest.raises(
            CallTfError,
            match=r"^jax2tf.call_tf\(vmap\(checked\)\): over a batch TensorFlow runs the function "
            r"as a graph, which raises InvalidArgumentError: assertion failed: .*mine.*\[-1\]. "
            r"Call the function for one element, without jax.vmap, to see where that comes from",
        ) as error:
            jax.vmap(call_tf(checked))(X)
        assert "\n" not in str(error.value)
        assert isinstance(error.value.__cause__, tf.errors.InvalidArgumentError)

    @pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["op_by_op", "jit"])
    @pytest.mark.parametrize(
        ("f", "cause"),
        [
            (lambda x: x if x > 0 else -x, "OperatorNotAllowedInGraphError: Using a symbolic"),
            (lambda x: x.numpy(), "AttributeError: 'SymbolicTensor' object has no attribute"),
            (
                lambda x: tf.reshape(x, [2, 3]),
                "ValueError: Cannot reshape a tensor with 1 elements",
            ),
        ],
    )
    def test_while_it_is_made(self, stage, f, cause):
        with pytest.raises(CallTfError, match=rf"^jax2tf.call_tf\(.*\): over a .*raises {cause}"):
            stage(jax.vmap(call_tf(f)))(X)

    def test_of_the_users_own(self):
        def raises(x):
            raise KeyError("a key of mine")

        with pytest.raises(KeyError, match="a key of mine") as error:
            jax.vmap(call_tf(raises))(X)
        assert any("call_tf(raises)" in note for note in error.value.__notes__)

    def test_what_xla_does_not_compile_in_one_line(self):
        @tf.function(autograph=False)
        def f(x):
            return tf.while_loop(lambda y: y < 9, lambda y: y * 2, (x,))[0]

        with pytest.raises(
            CallTfError,
            match=r"^jax2tf.call_tf\(vjp\(f\)\): TensorFlow cannot compile it for jax.jit: XLA "
            r"compilation requires a fixed tensor list size.*maximum_iteration.*compile=False\)",
        ) as error:
            jax.jit(jax.grad(call_tf(f)))(2.0)
        assert "\n" not in str(error.value)


def test_second_derivatives_in_batches_of_batches_are_compiled():
    """No rule for batches takes the gather, so each is a loop, and reads what is outside of it."""

    def in_batches(f):
        return jax.vmap(jax.vmap(jax.hessian(f)))

    @call_tf
    @tf.function(autograph=False)
    def called(x):
        return tf.reduce_sum(tf.sin(x)) * tf.gather(x[0], [0, 1, 0])[1]

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 2, 1, 2)
    expected = in_batches(lambda x: jnp.sin(x).sum() * x[0, 1])(x)
    assert_allclose(jax.jit(in_batches(called))(x), expected, rtol=1e-5, atol=1e-5)


def test_what_stablehlo_does_not_hold_is_said_in_one_line(monkeypatch):
    def refuses(hlo):
        raise jax.errors.JaxRuntimeError("INTERNAL: Unsupported type: TUPLE\n=== Source Location")

    monkeypatch.setattr("jax.extend.mlir.hlo_to_stablehlo", refuses)
    with pytest.raises(CallTfError, match="a tuple where StableHLO takes arrays alone") as error:
        jax.jit(call_tf(lambda x: x + 1))(X)
    assert "\n" not in str(error.value)


@each_stage
@pytest.mark.parametrize("in_function", [False, True], ids=["plain", "in_function"])
def test_a_batch_of_gradients_of_a_branch(stage, in_function):
    """The cotangent, which is one for the whole batch, goes into each branch."""

    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * x, lambda: x * x)

    f_tf = call_tf(tf.function(branch, autograph=False) if in_function else branch)
    xs = jnp.stack([X, -X, X * X])
    found = stage(jax.vmap(jax.grad(lambda x: jnp.sum(f_tf(x)))))(xs)

    def same(x):
        return jnp.sum(jnp.where(jnp.sum(x) > 0, jnp.sin(x) * x, x * x))

    assert_allclose(found, jax.vmap(jax.grad(same))(xs), rtol=1e-6, atol=1e-6)


def test_threads_find_a_way_to_compile_together():
    """Several that fail at one way do not go past the next ones."""
    f_tf = call_tf(lambda x: tf.cond(tf.reduce_sum(x) > 0.2, lambda: x * 2, lambda: x - 1))

    def scanned(x):
        steps = lambda c, _: (c / 2, jax.vmap(f_tf)(c))  # noqa: E731
        return jax.vmap(lambda x: jax.lax.scan(steps, x, None, length=2)[1])(x)

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 2, 3)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: scanned(x), range(3)))
    carried = np.stack([x, x / 2], 1)
    rows = carried.sum(-1, keepdims=True) > 0.2
    for result in results:
        assert_allclose(result, np.where(rows, carried * 2, carried - 1), rtol=1e-6)


def test_a_loop_over_a_batch_adds_what_is_not_mapped():
    """TensorFlow's optimiser would have the sum wait for the end of the loop: an empty array."""

    def function(x, w):
        return tf.py_function(lambda x: x, [x], tf.float32), w + w * 1

    mapped = jax.vmap(call_tf(function, output_shape_dtype=(X[0], X)), (0, None))
    assert_allclose(mapped(X, X)[1], np.stack([2 * X] * 3))
