"""Converted functions in SavedModels, restored where JAX cannot be imported."""

from __future__ import annotations

import traceback
from functools import partial

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


def save(folder, fun, *signature, module=None, jit_compile=None, **options):
    module = module or tf.Module()
    module.f = tf.function(fun, autograph=False, jit_compile=jit_compile, input_signature=signature)
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


def block(x):
    return jnp.sin(x) * jnp.cos(x) + jnp.exp(-x) * x


def blocks(x):
    """A jitted function that is called twice, which graphs share."""
    return jax.jit(block)(jax.jit(block)(x)) * jnp.sum(x**2)


def saved(folder, fun, *signature, jit_compile=None, **options):
    """The function after it was saved with its gradients, and restored."""
    converted = jax2tf.convert(fun, **options)
    save(folder, converted, *signature, jit_compile=jit_compile, experimental_custom_gradients=True)
    return tf.saved_model.load(str(folder)).f


ONE_ORDER = """
    import logging
    from absl import logging as absl_logging
    warnings = logging.StreamHandler(sys.stdout)
    absl_logging.get_absl_logger().addHandler(warnings)
    tf.get_logger().addHandler(warnings)
    module = tf.saved_model.load(sys.argv[1])

    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = module.f(x)
        return tape.jacobian(y, x)

    def gradient_under_a_tape(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = module.f(x)
            tape.gradient(y, x)
        return outer.gradient(y, x)

    x = tf.constant([0.5, -1.0, 2.0])
    for f in (jacobian, gradient_under_a_tape):
        print(f(x).numpy().tolist())
        print(tf.function(f)(x).numpy().tolist())
"""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_one_order_without_jax_nor_a_warning(tmp_path, without_jax, jit_compile):
    signature = tf.TensorSpec([None])
    saved(tmp_path, blocks, signature, jit_compile=jit_compile, polymorphic_shapes="b")
    lines = without_jax(ONE_ORDER, tmp_path)
    jacobian = jax.jacobian(blocks)(X[0])
    expected = [jacobian, jacobian, jacobian.sum(0), jacobian.sum(0)]
    for line, result in zip(lines, expected, strict=True):
        np.testing.assert_allclose(eval(line), result, rtol=1e-5, atol=1e-5)


def first_and_second(f, x):
    """The gradient of f at x, and a function from its cotangent to the derivative of that."""
    with tf.GradientTape(persistent=True) as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            y = f(x)
        gradient = first.gradient(y, x)
    return gradient, lambda cotangent: second.gradient(gradient, x, cotangent)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
def test_a_derivative_that_was_not_saved(tmp_path, dtype):
    def wave(x):
        return jnp.sum(jnp.sin(x) * x)

    with jax.enable_x64(dtype == "float64"):
        f = saved(tmp_path, wave, tf.TensorSpec([2], dtype))
        given = np.array([0.5, -1.0], jnp.dtype(dtype))
        expected = jax.grad(wave, holomorphic=dtype == "complex64")(given)
    gradient, second = first_and_second(f, tf.constant(given))
    rtol = {"bfloat16": 2e-2, "float64": 1e-12}.get(dtype, 1e-5)
    np.testing.assert_allclose(gradient, np.conj(expected), rtol=rtol)
    assert not np.any(second(tf.zeros_like(gradient)))
    message = (
        "jax2tf.convert: the SavedModel holds no derivative of the gradient of wave. "
        "Convert with a higher saved_gradient_order, which is 1 by default"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        second(tf.ones_like(gradient))


@pytest.mark.parametrize("value", [1.0, np.nan, np.inf, -np.inf])
def test_a_refused_derivative_leaves_the_gradient_as_it_is(tmp_path, value):
    f = saved(tmp_path, lambda x: jnp.sum(x * jnp.array([2.0, -0.0])), tf.TensorSpec([2]))
    x = tf.constant([value, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert str(tape.gradient(y, x).numpy().tolist()) == "[2.0, -0.0]"
    with pytest.raises(tf.errors.InvalidArgumentError, match="saved_gradient_order"):
        first_and_second(f, x)[1](tf.ones_like(x))


def test_what_xla_compiles_gives_nan_for_a_derivative_that_was_not_saved(tmp_path):
    f = saved(tmp_path, jnp.sin, tf.TensorSpec([2]), jit_compile=True)
    gradient, second = first_and_second(f, tf.constant([0.5, 1.0]))
    assert np.isnan(second(tf.ones_like(gradient))).all()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_order_two(tmp_path, jit_compile):
    def wave(x):
        return jnp.sum(jnp.sin(x) * x)

    x = np.array([0.5, -1.0], np.float32)
    f = saved(tmp_path, wave, tf.TensorSpec([2]), jit_compile=jit_compile, saved_gradient_order=2)
    gradient, second = first_and_second(f, tf.constant(x))
    expected = jax.hessian(wave)(x).sum(0)
    np.testing.assert_allclose(second(tf.ones_like(gradient)), expected, rtol=1e-5, atol=1e-6)


def test_a_step_of_second_order_that_is_traced_for_saving(tmp_path):
    """The tapes of what is saved stay live, whatever is saved of its gradients."""
    converted = jax2tf.convert(lambda x: jnp.sum(jnp.sin(x) * x))

    def step(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            penalty = tf.reduce_sum(tape.gradient(y, x) ** 2)
        return outer.gradient(penalty, x)

    module = tf.Module()
    signature = [tf.TensorSpec([2])]
    called = tf.function(converted, autograph=False)
    for name, f in ("direct", converted), ("called", called):
        traced = tf.function(partial(step, f), input_signature=signature, autograph=False)
        setattr(module, name, traced)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    restored = tf.saved_model.load(str(tmp_path))
    x = np.array([0.5, -1.0], np.float32)
    g = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))
    expected = jax.grad(lambda x: jnp.sum(g(x) ** 2))(x)
    for f in (restored.direct, restored.called):
        np.testing.assert_allclose(f(x), expected, rtol=1e-5, atol=1e-6)


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
    with pytest.warns(UserWarning, match="halved.*no gradient with respect to argument x"):
        save(
            tmp_path / "with",
            jax2tf.convert(halved),
            tf.TensorSpec([]),
            experimental_custom_gradients=True,
        )
    restored = tf.saved_model.load(str(tmp_path / "with"))
    x = tf.constant(6.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = restored.f(x)
    assert float(y) == 0.75
    with pytest.raises(tf.errors.InvalidArgumentError, match="with_gradient=False"):
        tape.gradient(y, x)


def test_what_is_compiled_by_itself_is_restored(tmp_path):
    save(tmp_path, jax2tf.convert(jax.jit(jnp.cos)), tf.TensorSpec([1, 3]))
    np.testing.assert_allclose(tf.saved_model.load(str(tmp_path)).f(X), np.cos(X), rtol=1e-5)


def test_autograph_rewrites_nothing_of_what_is_saved(tmp_path):
    """It would rewrite JAX, for minutes."""
    files = []

    @jax.custom_vjp
    def fun(x):
        return x

    def backward(_, cotangent):
        files.extend(frame.filename for frame in traceback.extract_stack())
        return (cotangent,)

    fun.defvjp(lambda x: (x, None), backward)
    module = tf.Module()
    specs = [tf.TensorSpec([3])]
    module.f = tf.function(jax2tf.convert(lambda x: fun(jnp.sin(x))), input_signature=specs)
    tf.saved_model.save(module, tmp_path)
    assert any(name.endswith("gradients/in_graph.py") for name in files)
    assert not [name for name in files if "autograph_generated" in name]
