"""What TensorFlow functions capture: tensors and variables of every dtype and rank, under JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jax2tf import CallTfError, call_tf, convert

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int4", "uint4"),
    *("float8_e4m3fn", "float8_e5m2"),
]
SHAPES = [(), (0, 2), (300,)]


def _value(dtype, shape):
    """Values that other dtypes do not have, where there are such."""
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 + 1
    if np.dtype(dtype).kind == "c":
        return value * dtype(1 + 2j)
    high = {8: 2**33, 4: 2**17, 2: 2**8}.get(np.dtype(dtype).itemsize, 0)
    return (value + (high if np.dtype(dtype).kind in "iu" else 0)).astype(dtype)


CAPTURES = {
    "tensors": lambda values: [tf.constant(v) for v in values],
    "variables": lambda values: [tf.Variable(v) for v in values],
}
# What runs the function; whether its results have a leading axis.
STAGES = {
    "op_by_op": (lambda f: f, False),
    "jit": (lambda f: jax.jit(lambda x: jax.jit(f)(x)), False),
    "converted": (lambda f: tf.function(convert(f), autograph=False), False),
    "vmap": (lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])), True),
    "jit_of_vmap": (lambda f: jax.jit(lambda x: jax.vmap(f)(jnp.stack([x, x]))), True),
    "scan": (lambda f: jax.jit(lambda x: jax.lax.map(f, jnp.stack([x, x]))), True),
}


@pytest.mark.parametrize("kind", CAPTURES)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_every_dtype_and_rank(stage, x64, kind):
    """A scalar tensor is a number of NumPy's, and JAX's callbacks make 32 bits of 64."""
    run, has_axis = STAGES[stage]
    values = [_value(d, shape) for d in DTYPES for shape in (SHAPES[:1] if has_axis else SHAPES)]
    captured = CAPTURES[kind](values)
    with jax.enable_x64(x64):
        results = run(call_tf(lambda x: [x, *map(tf.identity, captured)]))(np.float32(2))[1:]
        for value, actual in zip(values, results, strict=True):
            expected = value.astype(jax.dtypes.canonicalize_dtype(value.dtype))
            expected = np.stack([expected] * 2) if has_axis else expected
            actual = actual.numpy() if isinstance(actual, tf.Tensor) else np.asarray(actual)
            np.testing.assert_array_equal(actual, expected, strict=True)


DERIVATIVES = {
    "grad": lambda f: jax.grad(lambda x: jnp.real(f(x)).sum()),
    "hessian": lambda f: jax.hessian(lambda x: jnp.real(f(x)).sum()),
}


@pytest.mark.parametrize("kind", CAPTURES)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["op_by_op", "jit"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, stage, x64, kind):
    """What is captured takes part in the derivative, in 64 bits, and the result is JAX's."""
    values = [np.float64(1.5), np.array([0.5, 2.0]), np.complex128(2.0), np.float32(0.5)]
    captured = CAPTURES[kind](values)

    def f_tf(x):
        wide = tf.cast(x, tf.float64) * captured[0] * captured[1]
        return tf.sin(tf.cast(wide, tf.complex128) * captured[2]) * tf.cast(
            captured[3], "complex128"
        )

    def f_jax(x):
        return jnp.sin((x * values[0] * values[1] * values[2]).astype(complex)) * values[3]

    x = np.array([0.25, 0.75], np.float32)
    with jax.enable_x64(x64):
        actual = stage(DERIVATIVES[name](call_tf(f_tf)))(x)
        expected = DERIVATIVES[name](f_jax)(x)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def _strings(x):
    return x * tf.cast(tf.strings.length(_strings.captured), tf.float32)


@pytest.mark.parametrize(
    ("captured", "what"),
    [
        (tf.constant("text"), "a tensor of dtype string"),
        (tf.Variable("text", name="words"), "the variable words:0 of strings"),
    ],
)
def test_strings(captured, what):
    _strings.captured = captured
    assert float(call_tf(_strings)(2.0)) == 8
    assert float(jax.grad(call_tf(_strings))(2.0)) == 4
    with pytest.raises(CallTfError, match=rf"call_tf\(_strings\): it captures {what}.*compile=Fa"):
        jax.jit(call_tf(_strings))(2.0)
    assert float(jax.jit(call_tf(_strings, compile=False))(2.0)) == 8


def test_variables_without_a_fixed_shape():
    v = tf.Variable([1.0, 2.0], shape=[None], name="open")

    def total(x):
        return tf.reduce_sum(x * v)

    assert float(call_tf(total)(2.0)) == 6
    assert float(jax.grad(call_tf(total))(2.0)) == 3
    with pytest.raises(CallTfError, match=r"the variable open:0, whose shape is not fixed \(\(N"):
        jax.jit(call_tf(total))(2.0)


def test_variables_of_64_bits_are_read_at_each_call():
    v = tf.Variable(2**40 + 1, dtype=tf.int64)
    f = jax.jit(call_tf(lambda x: x * tf.cast(v % 1000, tf.float32)))
    assert float(f(1.0)) == (2**40 + 1) % 1000
    v.assign(2**33 + 7)
    assert float(f(1.0)) == (2**33 + 7) % 1000


class TestOutputShapeDtypeNone:
    def test_returns_nothing(self):
        v = tf.Variable(0.0)

        def count(x):
            v.assign_add(x)

        assert call_tf(count, output_shape_dtype=None)(1.0) is None
        on_host = call_tf(count, compile=False, output_shape_dtype=None)
        assert jax.jit(lambda x: on_host(x))(2.0) is None
        jax.effects_barrier()
        assert float(v) == 3

    @pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["op_by_op", "jit"])
    def test_returns_something(self, stage):
        f = call_tf(tf.identity, output_shape_dtype=None)
        with pytest.raises(
            CallTfError,
            match=r"call_tf\(identity\): output_shape_dtype has the structure PyTreeDef\(None\), "
            r"but the TensorFlow function returned PyTreeDef\(\*\)",
        ):
            stage(f)(1.0)
