"""Gradients of converted functions in variables that their calls of TensorFlow read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from jax2tf import Module, call_tf, convert
from jax2tf._src.api.errors import ConversionError, NotDifferentiableError
from tests.running import MODES

X = tf.constant([[0.5, -1.5, 1.0], [2.0, 0.25, -0.75]])


def gradients(f, sources):
    """The gradients of the sum of `f`, by a tape around its call."""

    def run(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            total = tf.reduce_sum(f(*args))
        return tape.gradient(total, [*args, *sources])

    return run


def second(f, variable):
    """The gradient of the sum of the gradient with respect to a variable."""

    def run(*args):
        with tf.GradientTape() as outer:
            (gradient,) = gradients(f, [variable])(*args)[len(args) :]
        return outer.gradient(gradient, variable)

    return run


def check(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
            assert one.dtype == other.dtype
            assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class Layer:
    """A TensorFlow function of captured variables, and programs of JAX that call it."""

    def __init__(self):
        self.w = tf.Variable([2.0, 3.0, -1.0], name="w")
        self.b = tf.Variable(0.5, name="b")

    def layer(self, x):
        return tf.sin(x * self.w) + self.b * self.w * x


def _scan(f):
    def fun(x):
        return jax.lax.scan(lambda c, y: (f(c) + y, f(y)), x[0], x)

    return lambda x: jax.tree.reduce(jnp.add, jax.tree.map(jnp.sum, fun(x)))


PROGRAMS = {
    "call": lambda f: f,
    "twice": lambda f: lambda x: jnp.cos(f(f(x))) * x,
    "jit": lambda f: lambda x: jax.jit(f)(x) + jax.jit(f)(2 * x),
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "vmap": lambda f: jax.vmap(f),
    "vmap_of_grad": lambda f: jax.vmap(jax.grad(lambda x: f(x).sum())),
    "scan": _scan,
    "cond": lambda f: lambda x: jax.lax.cond(x[0, 0] > 0, f, lambda x: x, x),
    "vmap_of_cond": lambda f: jax.vmap(
        lambda x: jax.lax.cond(x[0] > 1, f, lambda x: f(x) * x, x)
    ),
    "vmap_of_grad_of_cond": lambda f: jax.vmap(
        jax.grad(lambda x: jax.lax.cond(x[0] > 1, f, lambda x: f(x) * x, x).sum())
    ),
    "remat": lambda f: jax.checkpoint(f),
}  # fmt: skip


def _in_tensorflow(name, f):
    """The same program in TensorFlow's own ops."""

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return tape.gradient(y, x)

    def scan(x):
        carry, total = x[0], 0.0
        for y in tf.unstack(x):
            total += tf.reduce_sum(f(y))
            carry = f(carry) + y
        return total + tf.reduce_sum(carry)

    def cond(x):
        return tf.stack([f(x[0]) * x[0], f(x[1])])

    return {
        "call": f,
        "twice": lambda x: tf.cos(f(f(x))) * x,
        "jit": lambda x: f(x) + f(2 * x),
        "grad": gradient,
        "vmap": f,
        "vmap_of_grad": gradient,
        "scan": scan,
        "cond": f,
        "vmap_of_cond": cond,
        "vmap_of_grad_of_cond": lambda x: _gradient_of(cond, x),
        "remat": f,
    }[name]


def _gradient_of(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(f(x))
    return tape.gradient(y, x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_jax(mode, name):
    model = Layer()
    sources = [model.w, model.b]
    own = _in_tensorflow(name, model.layer)
    converted = convert(PROGRAMS[name](call_tf(model.layer)))
    expected = gradients(own, sources)(X)
    check(mode(gradients(converted, sources))(X), expected)  # the tape is inside
    check(gradients(mode(converted), sources)(X), expected)  # the tape is outside


# The tape is inside and outside in turn: each program and each mode has both, and each program has
# each mode once.
@pytest.mark.parametrize(
    ("name", "wrap", "tape"),
    [
        pytest.param(name, wrap, ("inside", "outside")[(i + j) % 2], id=f"{name}-{mode}")
        for i, name in enumerate(["call", "twice", "grad", "vmap_of_grad_of_cond", "scan"])
        for j, (mode, wrap) in enumerate(MODES.items())
    ],
)
def test_second_order(name, wrap, tape):
    model = Layer()
    converted = convert(PROGRAMS[name](call_tf(model.layer)))
    expected = second(_in_tensorflow(name, model.layer), model.w)(X)
    if tape == "inside":
        actual = wrap(second(converted, model.w))(X)
    else:
        actual = second(wrap(converted), model.w)(X)
    check([actual], [expected])


@pytest.mark.parametrize("options", [{"enable_xla": False}, {"polymorphic_shapes": "n, _"}])
def test_options(options):
    model = Layer()
    f = tf.function(
        convert(call_tf(model.layer), **options),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3])],
    )
    sources = [model.w, model.b]
    if "enable_xla" in options:
        f = convert(call_tf(model.layer), **options)
    check(gradients(f, sources)(X), gradients(model.layer, sources)(X))


def test_compiled_by_itself():
    model = Layer()
    f = convert(jax.jit(lambda x: jnp.sin(call_tf(model.layer)(x))))
    expected = gradients(lambda x: tf.sin(model.layer(x)), [model.w])(X)
    check(gradients(f, [model.w])(X), expected)


def test_a_variable_that_is_captured_and_passed(mode):
    v = tf.Variable([1.0, 2.0, 3.0])

    def f(x, v_passed):
        return x * v_passed * v

    converted = convert(lambda x: 0 * x)
    call = convert(lambda x, p: call_tf(f)(x, p) + call_tf(lambda: v * v)())

    def total(g):
        return gradients(lambda x: g(x, v), [v])

    expected = total(lambda x, p: f(x, p) + v * v)(X)
    check(mode(total(call))(X), expected)
    check(gradients(converted, [v])(X), [tf.zeros_like(X), None])


def test_functions_of_integers_alone(mode):
    table = tf.Variable(tf.reshape(tf.range(12.0), [4, 3]))
    f = convert(lambda i: jnp.sin(call_tf(lambda i: tf.gather(table, i))(i)))

    def gradient(f):
        def run(i):
            with tf.GradientTape() as tape:
                y = f(i)
            return tape.gradient(y, table)

        return run

    i = tf.constant([1, 3, 1])
    expected = gradient(lambda i: tf.sin(tf.gather(table, i)))(i)
    check([mode(gradient(f))(i)], [expected])
    check([gradient(mode(f))(i)], [expected])


@pytest.mark.parametrize("dtype", [tf.float64, tf.complex64, tf.bfloat16])
@pytest.mark.parametrize("x64", [False, True])
def test_dtypes(mode, dtype, x64):
    v = tf.Variable(tf.cast([1.0, 2.0], dtype))

    def f(x):
        return tf.math.real(v * v * tf.cast(x, dtype))

    x = tf.constant([0.5, 3.0], tf.float32)
    with jax.enable_x64(x64):
        (actual,) = mode(gradients(convert(call_tf(f)), [v]))(x)[1:]
    assert actual.dtype == dtype
    check([actual], gradients(f, [v])(x)[1:])


def test_variables_that_are_not_trainable(mode):
    v = tf.Variable(2.0, trainable=False)
    f = convert(call_tf(lambda x: x * v))
    assert mode(gradients(f, [v]))(X)[1] is None

    def watched(x):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = f(x)
        return tape.gradient(y, v)

    assert_allclose(mode(watched)(X), tf.reduce_sum(X))


def test_a_variable_that_the_function_writes_has_no_gradient(mode):
    v, w = tf.Variable(2.0), tf.Variable(3.0)

    def count(x):
        v.assign(5.0)
        return x * v * w

    dx, dv, dw = gradients(mode(convert(call_tf(count))), [v, w])(X)
    assert_allclose(dx, np.full(X.shape, 15.0))
    assert dv is None
    assert_allclose(dw, 5 * tf.reduce_sum(X))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_variable_that_is_written_before_the_gradient_is_taken(mode):
    v = tf.Variable([2.0, 3.0, 4.0], name="weight")
    f = convert(call_tf(lambda x: x * v))
    f = f if mode == "eager" else tf.function(f, autograph=False)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = f(X)
    assert_allclose(tape.gradient(y, X), np.broadcast_to([2.0, 3.0, 4.0], X.shape))
    v.assign([1.0, np.nan, 1.0])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"variable weight:0 was written between the call and its gradient.*Take the gradient",
    ):
        tape.gradient(y, X)
    with tf.GradientTape() as tape:
        y = f(X)
    assert_allclose(tape.gradient(y, v), tf.reduce_sum(X, 0))  # NaN is no other value than NaN


def test_a_vjp_of_jax_has_no_place_for_variables():
    v = tf.Variable(2.0)
    g = call_tf(lambda x: x * v)
    f = jax.custom_vjp(lambda x: g(x))
    f.defvjp(lambda x: (g(x), None), lambda _, cotangent: (7 * cotangent,))
    with pytest.raises(NotDifferentiableError, match=r"closed-over value.*with_gradient=False"):
        gradients(convert(f), [v])(X)
    assert_allclose(convert(f, with_gradient=False)(X), 2 * X)


def test_a_jvp_of_jax_says_all_there_is():
    v = tf.Variable(2.0)
    g = call_tf(lambda x: x * v)
    f = jax.custom_jvp(lambda x: g(x))
    f.defjvp(lambda primals, tangents: (g(*primals), 7 * tangents[0]))
    check(gradients(convert(f), [v])(X), [7 * tf.ones_like(X), tf.constant(0.0)])


def test_without_gradient():
    v = tf.Variable(2.0)
    f = convert(call_tf(lambda x: x * v), with_gradient=False)
    with pytest.raises(LookupError, match="with_gradient=False"):
        gradients(f, [v])(X)


def test_saved_model(tmp_path):
    model = Layer()
    module = tf.Module()
    module.variables_of_layer = [model.w, model.b]
    module.f = tf.function(
        convert(lambda x: jnp.cos(call_tf(model.layer)(x)), polymorphic_shapes="n, _"),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3])],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, tmp_path, options=options)
    restored = tf.saved_model.load(tmp_path)
    expected = gradients(lambda x: tf.cos(model.layer(x)), [model.w, model.b])(X)
    check(gradients(restored.f, list(restored.variables_of_layer))(X), expected)


def test_training_a_keras_model(mode):
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input([3]), layers.Dense(4, "gelu"), layers.LayerNormalization(), layers.Dense(1)]
    )
    sources = model.trainable_variables
    sources = [v.value for v in sources]
    converted = convert(lambda x: jnp.tanh(call_tf(model)(x)))
    expected = gradients(lambda x: tf.tanh(model(x)), sources)(X)
    check(mode(gradients(converted, sources))(X), expected)
    check(gradients(mode(converted), sources)(X), expected)


def test_caches_of_jit_do_not_hide_variables():
    """A jitted function that was traced before, without its variables, is traced again."""
    v = tf.Variable(3.0)
    g = jax.jit(call_tf(lambda x: x * v))
    assert float(g(2.0)) == 6.0
    f = convert(lambda x: g(x) + g(x))
    assert [float(d) for d in gradients(f, [v])(tf.constant(2.0))] == [6.0, 4.0]
    assert float(g(2.0)) == 6.0


def test_no_value_stays_behind():
    v = tf.Variable(3.0)
    f = convert(lambda x: jax.jit(call_tf(lambda x: x * v))(x))
    with jax.checking_leaks():
        assert float(gradients(f, [v])(tf.constant(2.0))[1]) == 2.0


def _of_a_rule(variable, derivative):
    """A derivative of a jitted function with a rule of its own, which reads the variable."""
    f = call_tf(lambda x: tf.sin(x) * variable)
    rule = jax.custom_jvp(f)
    rule.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return derivative(jax.jit(rule))


@pytest.mark.parametrize("derivative", [jax.jacrev, jax.jacfwd])
def test_a_rule_of_a_jitted_function_that_reads_a_variable(derivative):
    fun = _of_a_rule(tf.Variable([2.0, 3.0]), derivative)
    x = np.array([0.5, 0.25], np.float32)
    expected = np.diag(np.cos(x) * [2, 3])
    assert_allclose(convert(fun, with_gradient=False)(x), expected, rtol=1e-6)
    with pytest.raises(ConversionError, match=r"captures a value float32\[2\] .* What to do: pass"):
        convert(fun, native_serialization=True, with_gradient=False)(x)


def test_a_rule_of_a_jitted_function_that_captures_a_value():
    def fun(y, x):
        rule = jax.custom_jvp(lambda x: x * y)
        rule.defjvp(lambda primals, tangents: (primals[0] * y, tangents[0] * y))
        return jax.grad(jax.jit(rule))(x)

    with pytest.raises(TypeError, match="No constant handler"):
        jax.jit(fun)(2.0, 3.0)
    with pytest.raises(ConversionError, match=r"captures a value .* does not compile either"):
        convert(fun)(2.0, 3.0)


def test_a_module_that_has_the_variables_is_saved(tmp_path):
    called = tf.Module()
    called.scale = tf.Variable([1.0, 2.0, 3.0])
    scaled = call_tf(lambda x: x * called.scale)
    module = Module(lambda w, x: scaled(x) * w, np.float32(2))
    module.called = called
    module.serve = tf.function(
        lambda x: module(x), autograph=False, input_signature=[tf.TensorSpec([3])]
    )
    tf.saved_model.save(module, str(tmp_path))
    restored = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(restored.serve(tf.ones(3)), [2.0, 4.0, 6.0])
    restored.called.scale.assign([5.0, 5.0, 5.0])
    np.testing.assert_array_equal(restored.serve(tf.ones(3)), [10.0, 10.0, 10.0])
