"""call_tf with models, SavedModels, and convert on both sides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from jax2tf import CallTfError, call_tf, convert
from tests.running import ops_of


@pytest.fixture(params=["op_by_op", "jit"])
def stage(request):
    """How the function runs: as it is, or inside jax.jit."""
    return jax.jit if request.param == "jit" else lambda f: f


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    inputs = tf.keras.Input([8, 8, 3])
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Add()([x, layers.Conv2D(4, 1)(inputs)])
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x))
    return tf.keras.Model(inputs, layers.Dense(2, activation="gelu")(x))


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)


class TestKeras:
    def test_model(self, stage, model, images):
        assert_allclose(stage(call_tf(model))(images), model(images), rtol=1e-5, atol=1e-6)

    def test_restored(self, stage, model, images, tmp_path):
        model.export(tmp_path, verbose=False)
        restored = tf.saved_model.load(tmp_path)
        f = stage(call_tf(restored.signatures["serving_default"]))
        (result,) = f(images).values()
        assert_allclose(result, model(images), rtol=1e-5, atol=1e-6)

    def test_restored_under_grad_and_vmap(self, stage, model, images, tmp_path):
        model.export(tmp_path, verbose=False)
        restored = tf.saved_model.load(tmp_path)
        serve = call_tf(restored.serve)
        with tf.GradientTape() as tape:
            x = tf.constant(images)
            tape.watch(x)
            y = tf.reduce_sum(model(x) ** 2)
        expected = tape.gradient(y, x)
        actual = stage(jax.grad(lambda x: (serve(x) ** 2).sum()))(images)
        assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
        batches = np.stack([images, images[::-1]])
        expected = np.stack([model(b) for b in batches])
        assert_allclose(stage(jax.vmap(serve))(batches), expected, rtol=1e-4, atol=1e-6)


def test_training_equals_that_of_tensorflow():
    """Ten steps of gradient descent on weights that are arguments."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 4)).astype(np.float32)
    y = rng.normal(size=(16, 2)).astype(np.float32)
    start = {
        "w": rng.normal(size=(4, 2)).astype(np.float32),
        "b": np.zeros(2, np.float32),
    }

    def loss(weights):
        return tf.reduce_mean((tf.nn.gelu(x @ weights["w"] + weights["b"]) - y) ** 2)

    step = jax.jit(jax.value_and_grad(call_tf(loss)))
    in_jax = start
    variables = {name: tf.Variable(value) for name, value in start.items()}
    for _ in range(10):
        value, gradients = step(in_jax)
        in_jax = jax.tree.map(lambda w, g: w - 0.1 * g, in_jax, gradients)
        with tf.GradientTape() as tape:
            expected = loss(variables)
        for name, gradient in tape.gradient(expected, variables).items():
            variables[name].assign_sub(0.1 * gradient)
        assert_allclose(value, expected, rtol=1e-5)
    for name, variable in variables.items():
        assert_allclose(in_jax[name], variable, rtol=1e-4, atol=1e-6)


@jax.custom_vjp
def _square(x):
    return x * x


_square.defvjp(lambda x: (x * x, x), lambda x, g: (3 * x * g,))


class TestCallOfConverted:
    @pytest.mark.parametrize("f", [jnp.sin, jax.nn.gelu, lambda x: jnp.cumsum(x @ x.T, 0)])
    def test_values_and_derivatives(self, stage, f):
        x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
        back = call_tf(convert(f))
        for transform in (
            lambda f: f,
            lambda f: jax.grad(lambda x: f(x).sum()),
            lambda f: lambda x: jax.jvp(f, (x,), (x,)),
            lambda f: jax.jacrev(jax.grad(lambda x: f(x).sum())),
        ):
            expected = transform(f)(x)
            actual = stage(transform(back))(x)
            jax.tree.map(lambda a, e: assert_allclose(a, e, rtol=1e-4, atol=1e-4), actual, expected)
        assert_allclose(stage(jax.vmap(back))(x[None])[0], f(x), rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize(
        "options", [{}, {"enable_xla": False}, {"native_serialization": True}], ids=str
    )
    def test_custom_gradients_survive_a_saved_model(self, stage, options, tmp_path):
        module = tf.Module()
        module.f = tf.function(
            convert(_square, **options), autograph=False, input_signature=[tf.TensorSpec([])]
        )
        saving = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, tmp_path, options=saving)
        f = call_tf(tf.saved_model.load(tmp_path).f)
        assert float(stage(f)(2.0)) == 4.0
        assert float(stage(jax.grad(f))(2.0)) == 6.0
        np.testing.assert_array_equal(stage(jax.vmap(jax.grad(f)))(jnp.arange(3.0)), [0, 3, 6])


def _gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


class TestConvertedCall:
    X = tf.constant([0.5, 1.5])

    def test_values(self, mode):
        f = convert(lambda x: jnp.cos(call_tf(lambda x: tf.sin(x) * 2)(x)))
        assert_allclose(mode(f)(self.X), np.cos(np.sin(self.X) * 2), rtol=1e-5)

    @pytest.mark.parametrize("enable_xla", [True, False])
    def test_gradient(self, mode, enable_xla):
        f = convert(lambda x: jnp.cos(call_tf(tf.sin)(x)), enable_xla=enable_xla)
        expected = -np.sin(np.sin(self.X)) * np.cos(self.X)
        assert_allclose(mode(lambda x: _gradient(f, x))(self.X), expected, rtol=1e-5)
        assert_allclose(_gradient(mode(f), self.X), expected, rtol=1e-5)

    def test_jax_gradient(self, mode):
        f = convert(jax.grad(lambda x: call_tf(tf.sin)(x).sum()))
        assert_allclose(mode(f)(self.X), np.cos(self.X), rtol=1e-5)

    def test_tensorflow_differentiates_the_jax_gradient(self, mode):
        f = convert(jax.grad(lambda x: call_tf(tf.sin)(x).sum()))

        def both(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return y, tape.gradient(y, x)

        for value, gradient in (mode(both)(self.X), (mode(f)(self.X), _gradient(mode(f), self.X))):
            assert_allclose(value, np.cos(self.X), rtol=1e-5)
            assert_allclose(gradient, -np.sin(self.X), rtol=1e-5)

    def test_it_becomes_ordinary_ops(self):
        f = tf.function(convert(call_tf(tf.sin)), autograph=False)
        assert ops_of(f.get_concrete_function(self.X)) <= {
            "Placeholder",
            "Sin",
            "Identity",
            "IdentityN",
            "NoOp",
        }

    def test_captured_variables_stay_variables(self, mode):
        v = tf.Variable(3.0)
        f = mode(convert(call_tf(lambda x: x * v)))
        np.testing.assert_array_equal(f(self.X), 3 * self.X)
        np.testing.assert_array_equal(_gradient(f, self.X), [3, 3])
        v.assign(5.0)
        np.testing.assert_array_equal(f(self.X), 5 * self.X)

    def test_functions_that_xla_does_not_compile(self):
        f = convert(call_tf(lambda x: tf.strings.length(tf.strings.as_string(x))))
        assert int(tf.function(f, autograph=False)(tf.constant(100))) == 3

    def test_called_as_a_graph(self, mode):
        f = convert(call_tf(tf.sin, call_tf_graph=True))
        assert_allclose(mode(f)(self.X), np.sin(self.X), rtol=1e-6)

    def test_static_results_of_polymorphic_arguments(self):
        f = convert(
            lambda x: call_tf(lambda x: tf.reduce_sum(tf.sin(x)))(x), polymorphic_shapes=["b, ..."]
        )
        f = tf.function(f, autograph=False, input_signature=[tf.TensorSpec([None, 2])])
        assert_allclose(f(np.ones([3, 2])), 6 * np.sin(1), rtol=1e-5)


class TestPolymorphicShapes:
    @pytest.mark.parametrize(
        ("f", "shape"),
        [
            (tf.sin, (None, 4, None)),
            (lambda x: tf.concat([x, x, x[:1]], 0), (None, 4, None)),
            (lambda x: tf.reshape(x, [-1]), (None,)),
            (lambda x: tf.reshape(x, [-1, 2]) @ tf.ones([2, 3]), (None, 3)),
            (lambda x: tf.reduce_sum(x, [0, 2]), (4,)),
        ],
    )
    def test_results_are_inferred(self, f, shape):
        converted = convert(call_tf(f), polymorphic_shapes=["b, _, t"])
        graph = tf.function(converted, autograph=False)
        concrete = graph.get_concrete_function(tf.TensorSpec([None, 4, None]))
        assert tuple(concrete.structured_outputs.shape) == shape
        x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
        x = x if shape != (None, 3) else x[..., :4]
        np.testing.assert_array_equal(concrete(tf.constant(x)), f(x))

    def test_jax_knows_the_inferred_dimension(self):
        f = convert(
            lambda x: call_tf(lambda x: tf.concat([x, x], 0))(x) + jnp.ones(2 * x.shape[0]),
            polymorphic_shapes="b",
        )
        graph = tf.function(f, autograph=False, input_signature=[tf.TensorSpec([None])])
        np.testing.assert_array_equal(graph(np.ones(3, np.float32)), np.full(6, 2))

    def test_gradient_and_vmap(self):
        f = jax.vmap(jax.grad(lambda x: call_tf(lambda x: tf.sin(x[1:]))(x).sum()))
        graph = tf.function(
            convert(f, polymorphic_shapes="b, n"),
            autograph=False,
            input_signature=[tf.TensorSpec([None, None])],
        )
        x = np.ones((2, 3), np.float32)
        expected = np.cos(x) * np.array([0, 1, 1], np.float32)
        assert_allclose(graph(x), expected, rtol=1e-6)

    def test_a_formula_that_does_not_hold_is_seen_in_the_run(self):
        def mostly(x):
            return x[: tf.minimum(tf.shape(x)[0], 1000)] if x.shape[0] is None else x[:1000]

        f = convert(call_tf(mostly), polymorphic_shapes="b")
        graph = tf.function(f, autograph=False, input_signature=[tf.TensorSpec([None])])
        assert graph(np.ones(10, np.float32)).shape == (10,)
        with pytest.raises(tf.errors.InvalidArgumentError, match="dimension 0 of a result is not"):
            graph(np.ones(2000, np.float32))

    def test_no_formula(self):
        f = convert(call_tf(lambda x: tf.boolean_mask(x, x > 0)), polymorphic_shapes="b")
        with pytest.raises(
            CallTfError, match=r"no formula was found.*State call_tf\(\.\.\., output_shape_dtype"
        ):
            f(tf.ones(3))

    def test_stated_dimensions(self):
        def f(x):
            call = call_tf(
                lambda x: tf.boolean_mask(x, x > 0),
                output_shape_dtype=jax.ShapeDtypeStruct(x.shape, x.dtype),
            )
            return call(x) * 2

        graph = tf.function(
            convert(f, polymorphic_shapes="b"),
            autograph=False,
            input_signature=[tf.TensorSpec([None])],
        )
        np.testing.assert_array_equal(graph(np.ones(3, np.float32)), [2, 2, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="dimension 0 of a result is"):
            graph(np.array([1, -1], np.float32))


def test_fine_tuning_a_restored_model_equals_that_of_tensorflow(tmp_path):
    """Its variables stay TensorFlow's: compiled JAX reads them anew in each of ten steps."""
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input([4]), layers.Dense(3, "relu"), layers.Dense(1)])
    model.export(tmp_path, verbose=False)
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)

    def loss_and_gradients(restored):
        def function(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((restored.serve(x) - 1) ** 2)
            return loss, tape.gradient(loss, list(restored.trainable_variables))

        return function

    def train(restored, step):
        losses = []
        for _ in range(10):
            loss, gradients = step(x)
            losses.append(float(loss))
            for variable, gradient in zip(restored.trainable_variables, gradients, strict=True):
                variable.assign_sub(0.1 * np.asarray(gradient))
        return losses

    in_jax, in_tensorflow = tf.saved_model.load(tmp_path), tf.saved_model.load(tmp_path)
    actual = train(in_jax, jax.jit(call_tf(loss_and_gradients(in_jax))))
    expected = train(in_tensorflow, loss_and_gradients(in_tensorflow))
    assert_allclose(actual, expected, rtol=1e-4)
    assert actual[-1] < actual[0]
