"""tf.py_function and tf.numpy_function: eagerly as in TensorFlow, and called back from JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.substrates.comparing import Case, assert_as_tensorflow, over, tf_of

tf = tf_of("jax")


def x_of(tf):
    return tf.constant([1.0, 2.0])


def raising(error):
    def function(*args):
        raise error

    return lambda tf: tf.py_function(function, [x_of(tf)], tf.float32)


@over(
    [
        Case("one value", lambda tf: tf.py_function(lambda a: a * 2, [x_of(tf)], tf.float32)),
        Case(
            "a list",
            lambda tf: tf.py_function(
                lambda a, b: [a + b, b], [x_of(tf), 3.0], [tf.float32, tf.float32]
            ),
        ),
        Case("a list of one", lambda tf: tf.py_function(lambda a: a, [x_of(tf)], [tf.float32])),
        Case("nothing", lambda tf: tf.py_function(lambda a: None, [x_of(tf)], [])),
        Case("nothing, in a tuple", lambda tf: tf.py_function(lambda: None, (), ())),
        Case("a Python number", lambda tf: tf.py_function(lambda a: 3, [x_of(tf)], tf.float64)),
        Case("too many", lambda tf: tf.py_function(lambda a: [a, a], [x_of(tf)], [tf.float32])),
        Case("too few", lambda tf: tf.py_function(lambda a: a, [x_of(tf)], [tf.float32] * 2)),
        Case("None for one", lambda tf: tf.py_function(lambda a: None, [x_of(tf)], tf.float32)),
        Case("another dtype", lambda tf: tf.py_function(lambda a: a, [x_of(tf)], tf.float64)),
        Case("no arguments", lambda tf: tf.py_function(lambda: 1.0, None, tf.float32)),
        Case("a decorator", lambda tf: tf.py_function(Tout=tf.float32)(lambda a: a * 2)(x_of(tf))),
        Case(
            "a spec",
            lambda tf: tf.py_function(lambda a: a * 2, [x_of(tf)], tf.TensorSpec([2], tf.float32)),
        ),
        *(
            Case(f"raises {error.__name__}", raising(error("no")))
            for error in (
                ZeroDivisionError,
                ValueError,
                TypeError,
                NotImplementedError,
                StopIteration,
                MemoryError,
                KeyError,
            )
        ),
    ]
)
def test_py_function(case, substrate):
    assert_as_tensorflow(case, substrate)


@over(
    [
        Case("one value", lambda tf: tf.numpy_function(np.square, [x_of(tf)], tf.float32)),
        Case("its own dtype", lambda tf: tf.numpy_function(lambda a: 3, [1.0], tf.int64)),
        Case("a list", lambda tf: tf.numpy_function(lambda a: (a, 3), [1.0], [tf.int64])),
        Case("a text", lambda tf: tf.numpy_function(lambda a: type(a).__name__, [1.0], tf.string)),
        Case("raises", lambda tf: tf.numpy_function(lambda a: 1 / 0, [1.0], tf.float32)),
    ]
)
def test_numpy_function(case, substrate):
    assert_as_tensorflow(case, substrate)


def test_compiled_programs_call_back():
    seen = []

    def squared(x):
        seen.append(np.asarray(x).tolist())
        return x * x

    spec = tf.TensorSpec([2], tf.float32)
    compiled = jax.jit(lambda x: tf.py_function(squared, [x], spec) + 1)
    for start in (0.0, 1.0):
        given = np.array([start, 3.0], np.float32)
        assert compiled(given).tolist() == (given**2 + 1).tolist()
    assert seen == [[0.0, 3.0], [1.0, 3.0]]
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert jax.vmap(compiled)(rows).tolist() == (rows**2 + 1).tolist()


@pytest.mark.parametrize("stateful", [True, False])
def test_numpy_functions_are_constants_to_derivatives(stateful):
    spec = tf.TensorSpec([2], tf.float32)

    def f(x):
        return (x * tf.numpy_function(np.square, [x], spec, stateful=stateful)).sum()

    x = np.array([2.0, 3.0], np.float32)
    for gradient in (jax.grad(f), jax.jit(jax.grad(f))):
        assert gradient(x).tolist() == [4.0, 9.0]


def test_effects_happen_each_time_a_compiled_program_runs():
    seen = []

    @jax.jit
    def f(x):
        tf.py_function(lambda n: seen.append(float(n)), [x], [])
        return jax.lax.scan(lambda c, _: (c + 1, tf.py_function(lambda: seen.append(0.5), (), ())),
                            x, None, length=2)[0]  # fmt: skip

    assert float(f(1.0)) == 3
    jax.effects_barrier()
    assert sorted(seen) == [0.5, 0.5, 1.0]


@pytest.mark.parametrize("name", ["py_function", "numpy_function"])
@pytest.mark.parametrize("shape", [None, [None]])
def test_compiled_programs_need_the_shapes(name, shape):
    out = tf.float32 if shape is None else tf.TensorSpec(shape, tf.float32)
    with pytest.raises(
        ValueError, match=rf"^tf.{name}: inside jax.jit the shapes.*tf.TensorSpec\(shape, dtype\)"
    ):
        jax.jit(lambda x: getattr(tf, name)(lambda a: a, [x], out))(np.ones(2, np.float32))


def test_eager_derivatives_are_those_of_its_operations():
    gradient = jax.grad(lambda x: tf.py_function(lambda a: a * a, [x], tf.float32))(3.0)
    assert float(gradient) == 6.0
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        square = tf.py_function(lambda a: a * a, [x], tf.float32)
        constant = tf.numpy_function(lambda a: a * a, [x], tf.float32)
    assert float(tape.gradient(square, x)) == 6.0
    assert tape.gradient(constant, x) is None
