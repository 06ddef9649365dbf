"""Converted functions in SavedModels, restored where JAX cannot be imported."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

X = np.array([[0.5, -1.0, 2.0]], np.float32)
PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "b": np.ones(2, np.float32)}


def model(params, x):
    return jnp.tanh(x @ params["w"]) + params["b"]


def save(folder, fun, *signature, module=None, **options):
    module = module or tf.Module()
    module.f = tf.function(fun, autograph=False, input_signature=signature)
    tf.saved_model.save(module, str(folder), options=tf.saved_model.SaveOptions(**options))


def test_values_gradients_and_batches_without_jax(tmp_path, without_jax):
    module = tf.Module()
    module.params = tf.nest.map_structure(tf.Variable, PARAMS)
    converted = jax2tf.convert(model, polymorphic_shapes=[None, "b, _"])
    save(
        tmp_path,
        lambda x: converted(module.params, x),
        tf.TensorSpec([None, 3]),
        module=module,
        experimental_custom_gradients=True,
    )
    lines = without_jax(
        """
        module = tf.saved_model.load(sys.argv[1])
        for n in (1, 3):
            x = tf.constant(np.full((n, 3), 0.5, np.float32))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = module.f(x)
            print(y.numpy().tolist())
            print(tape.gradient(y, x).numpy().tolist())
        """,
        tmp_path,
    )
    results = [np.array(eval(line)) for line in lines]
    for n, y, gradient in zip((1, 3), results[::2], results[1::2], strict=True):
        x = np.full((n, 3), 0.5, np.float32)
        np.testing.assert_allclose(y, model(PARAMS, x), rtol=1e-5)
        expected = jax.grad(lambda x: model(PARAMS, x).sum())(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


DERIVATIVES = """
    module = tf.saved_model.load(sys.argv[1])
    x = tf.constant([0.5, -1.0, 2.0])
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = module.f(x)
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    print(d1.numpy().tolist())
    print(d2.numpy().tolist())
"""


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("shapes", [None, "b"])
def test_derivatives_of_higher_order_without_jax(tmp_path, without_jax, shapes, native):
    def fun(x):
        return jnp.sum(jnp.sin(x) * x**2) / x.shape[0]

    converted = jax2tf.convert(
        fun, polymorphic_shapes=shapes, saved_gradient_order=3, native_serialization=native
    )
    spec = tf.TensorSpec([3 if shapes is None else None])
    save(tmp_path, converted, spec, experimental_custom_gradients=True)
    code = DERIVATIVES + "    print(third.gradient(d2, x).numpy().tolist())"
    expected = fun
    for line in without_jax(code, tmp_path):
        expected = jax.grad(lambda x, f=expected: jnp.sum(f(x)))
        np.testing.assert_allclose(eval(line), expected(X[0]), rtol=1e-4)


def test_one_order_is_saved_unless_more_are_asked_for(tmp_path, without_jax):
    save(
        tmp_path,
        jax2tf.convert(lambda x: jnp.sum(jnp.sin(x))),
        tf.TensorSpec([3]),
        experimental_custom_gradients=True,
    )
    with pytest.raises(AssertionError, match=r"out of scope|No gradient defined"):
        without_jax(DERIVATIVES, tmp_path)


def test_parameters_are_variables_and_not_constants(tmp_path):
    module = tf.Module()
    module.params = {"w": tf.Variable(np.ones((300, 200), np.float32))}
    converted = jax2tf.convert(lambda params, x: x @ params["w"])
    save(tmp_path, lambda x: converted(module.params, x), tf.TensorSpec([1, 300]), module=module)
    assert (tmp_path / "saved_model.pb").stat().st_size < 64_000
    restored = tf.saved_model.load(str(tmp_path))
    assert restored.f(np.ones((1, 300), np.float32)).shape == (1, 200)


def test_a_broken_assumption_is_found_after_restoring(tmp_path):
    converted = jax2tf.convert(lambda x: x * 2, polymorphic_shapes="b, b")
    save(tmp_path, converted, tf.TensorSpec([None, None]))
    restored = tf.saved_model.load(str(tmp_path))
    assert restored.f(np.ones((2, 2), np.float32)).shape == (2, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape\[1\] should be b"):
        restored.f(np.ones((2, 3), np.float32))


def test_several_warmed_shapes(tmp_path):
    module = tf.Module()
    module.f = tf.function(jax2tf.convert(jnp.sin), autograph=False)
    for n in (1, 16):
        module.f(tf.ones([n, 3]))
    tf.saved_model.save(module, str(tmp_path))
    restored = tf.saved_model.load(str(tmp_path))
    assert [restored.f(tf.ones([n, 3])).shape[0] for n in (1, 16)] == [1, 16]


def test_a_function_that_has_no_reverse_gradient(tmp_path):
    def halved(x):
        return jax.lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)

    save(tmp_path / "plain", jax2tf.convert(halved, with_gradient=False), tf.TensorSpec([]))
    assert float(tf.saved_model.load(str(tmp_path / "plain")).f(tf.constant(6.0))) == 0.75
    with pytest.raises(ValueError, match="Error when tracing gradients") as error:
        save(
            tmp_path / "with",
            jax2tf.convert(halved),
            tf.TensorSpec([]),
            experimental_custom_gradients=True,
        )
    chain = str(error.value.__cause__ or error.value.__context__)
    assert "jax2tf.convert(halved): JAX cannot differentiate it" in chain
    assert "with_gradient=False" in chain


def test_what_is_compiled_by_itself_is_restored(tmp_path):
    save(tmp_path, jax2tf.convert(jax.jit(jnp.cos)), tf.TensorSpec([1, 3]))
    np.testing.assert_allclose(tf.saved_model.load(str(tmp_path)).f(X), np.cos(X), rtol=1e-5)
