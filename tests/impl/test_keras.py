"""Converted functions in Keras 3: layers, functional models, training, export, TFSMLayer."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf

keras = pytest.importorskip("keras")

PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "b": np.ones(2, np.float32)}
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


def dense(params, x):
    return jnp.tanh(x @ params["w"]) + params["b"]


@keras.saving.register_keras_serializable("jax2tf-tests")
class Dense(keras.layers.Layer):
    """A layer whose weights are the leaves of `PARAMS`."""

    def __init__(self, native=False, **kwargs):
        super().__init__(**kwargs)
        self.converted = jax2tf.convert(
            dense, polymorphic_shapes=[None, "b, _"], native_serialization=native
        )

    def build(self, input_shape):
        leaves, self.tree = jax.tree.flatten(PARAMS)
        self.leaves = [
            self.add_weight(shape=leaf.shape, initializer=lambda *_, leaf=leaf, **__: leaf)
            for leaf in leaves
        ]

    def call(self, x):
        return self.converted(jax.tree.unflatten(self.tree, list(self.leaves)), x)


@pytest.fixture(params=[False, True], ids=["graph", "native"])
def model(request):
    inputs = keras.Input([3])
    return keras.Model(inputs, keras.layers.Dense(1)(Dense(request.param)(inputs)))


def test_a_function_without_weights_in_a_sequential_model():
    layer = keras.layers.Lambda(jax2tf.convert(jnp.sin, polymorphic_shapes="b, _"))
    model = keras.Sequential([keras.Input([3]), layer])
    assert model.output_shape == (None, 3)
    np.testing.assert_allclose(model(X), np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(model.predict(X, verbose=0), np.sin(X), rtol=1e-5)


def test_the_layer_alone():
    layer = Dense()
    np.testing.assert_allclose(layer(X), dense(PARAMS, X), rtol=1e-5)
    assert len(layer.trainable_weights) == 2


def test_training(model):
    assert model.layers[1].output.shape == (None, 2)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = [np.array(w) for w in model.layers[1].get_weights()]
    losses = model.fit(X, X.sum(1, keepdims=True), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    for old, new in zip(before, model.layers[1].get_weights(), strict=True):
        assert np.abs(old - new).max() > 0


def test_export_and_tfsm_layer(model, tmp_path, without_jax):
    model.export(str(tmp_path), verbose=False)
    layer = keras.layers.TFSMLayer(str(tmp_path), call_endpoint="serve")
    expected = model(X)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5)
    inputs = keras.Input([3])
    around = keras.Model(inputs, layer(inputs))
    np.testing.assert_allclose(around.predict(X[:2], verbose=0), expected[:2], rtol=1e-5)
    lines = without_jax(
        """
        restored = tf.saved_model.load(sys.argv[1])
        x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
        print(restored.serve(x).numpy().tolist())
        """,
        tmp_path,
    )
    np.testing.assert_allclose(np.array(eval(lines[0])), expected, rtol=1e-5)


def test_a_saved_converted_function_in_tfsm_layer(tmp_path):
    module = jax2tf.Module(dense, PARAMS, polymorphic_shapes="b, _")
    module.serve = tf.function(
        module, autograph=False, input_signature=[tf.TensorSpec([None, 3], name="x")]
    )
    tf.saved_model.save(module, str(tmp_path))
    layer = keras.layers.TFSMLayer(str(tmp_path), call_endpoint="serving_default")
    np.testing.assert_allclose(layer(X)["output_0"], dense(PARAMS, X), rtol=1e-5)


def test_keras_saving(model, tmp_path):
    path = tmp_path / "model.keras"
    model.save(path)
    restored = keras.saving.load_model(path)
    np.testing.assert_allclose(restored(X), model(X), rtol=1e-5)


@keras.saving.register_keras_serializable("jax2tf-tests")
class Holding(keras.layers.Layer):
    """A layer that holds a jax2tf.Module, or the layer that it makes of itself."""

    def __init__(self, as_layer=True, trainable_module=True, **kwargs):
        super().__init__(**kwargs)
        self.as_layer = as_layer
        inner = jax2tf.Module(dense, PARAMS, polymorphic_shapes="b, _", trainable=trainable_module)
        self.inner = inner.keras_layer() if as_layer else inner

    def call(self, x):
        return self.inner(x)

    def get_config(self):
        return {**super().get_config(), "as_layer": self.as_layer}


class TestTheLayer:
    def test_no_function(self):
        with pytest.raises(TypeError, match=r"jax2tf\.keras\.Layer: fun_jax should be .* got dict"):
            jax2tf.keras.Layer({"w": X}, dense)

    def model(self, **options):
        layer = jax2tf.keras.Layer(dense, PARAMS, polymorphic_shapes="b, _", **options)
        return keras.Sequential([keras.Input([3]), layer, keras.layers.Dense(1)])

    def test_it_is_trained(self):
        model = self.model(name="from_jax")
        model.compile(keras.optimizers.SGD(0.05), "mse")
        losses = model.fit(X, X.sum(1, keepdims=True), epochs=5, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        assert [w.path for w in model.layers[0].trainable_weights] == ["from_jax/b", "from_jax/w"]
        assert not np.allclose(model.layers[0].weights[1], PARAMS["w"])

    def test_it_is_frozen_as_any_layer(self):
        assert not self.model(trainable=False).layers[0].trainable_weights

    @pytest.mark.parametrize("name", ["model.keras", "weights.weights.h5"])
    def test_what_is_saved_is_restored(self, name, tmp_path):
        model = self.model(convert_options={"enable_xla": False})
        model.layers[0].set_weights([np.full(2, 3.0), np.full((3, 2), 0.5)])
        path = tmp_path / name
        if name.endswith(".keras"):
            model.save(path)
            restored = keras.saving.load_model(path, custom_objects={"dense": dense})
        else:
            model.save_weights(path)
            restored = self.model()
            restored.load_weights(path)
        np.testing.assert_allclose(restored(X), model(X), rtol=1e-6)
        restored.compile(keras.optimizers.SGD(0.05), "mse")
        before = [np.array(w) for w in restored.layers[0].weights]
        restored.fit(X, X.sum(1, keepdims=True), epochs=1, verbose=0)
        after = restored.layers[0].weights
        assert not any(np.allclose(a, b) for a, b in zip(after, before, strict=True))

    def test_trees_of_lists_and_tuples(self, tmp_path):
        def model_of(params):
            layer = jax2tf.keras.Layer(of_tree, params, polymorphic_shapes="b, _")
            return keras.Sequential([keras.Input([3]), layer])

        params = {"layers": [(PARAMS["w"], PARAMS["b"])], "scale": np.float32(2)}
        model = model_of(params)
        model.save(tmp_path / "tree.keras")
        restored = keras.saving.load_model(
            tmp_path / "tree.keras", custom_objects={"of_tree": of_tree}
        )
        np.testing.assert_allclose(restored(X), of_tree(params, X), rtol=1e-5)

    def test_export(self, tmp_path, without_jax):
        model = self.model()
        np.save(tmp_path / "x.npy", X)
        model.export(tmp_path / "saved", verbose=False)
        lines = without_jax(
            """
            x = np.load(sys.argv[1])
            restored = tf.saved_model.load(sys.argv[2])
            print(restored.serve(x).numpy().tolist())
            """,
            tmp_path / "x.npy",
            tmp_path / "saved",
        )
        np.testing.assert_allclose(json.loads(lines[-1]), model(X), rtol=1e-5)

    def test_what_the_module_has(self):
        with pytest.raises(AttributeError, match=r"jax2tf.keras.* no attribute 'Dense'; .* Layer"):
            jax2tf.keras.Dense  # noqa: B018


def of_tree(params, x):
    for w, b in params["layers"]:
        x = jnp.tanh(x @ w) + b
    return x * params["scale"]


class TestAModuleInALayer:
    def model(self, layer):
        inputs = keras.Input([3])
        return keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))

    def test_its_parameters_are_trained_and_saved(self, tmp_path):
        layer = Holding()
        model = self.model(layer)
        np.testing.assert_allclose(layer(X), dense(PARAMS, X), rtol=1e-5)
        assert len(model.trainable_weights) == 4
        module = layer.inner.module
        assert {v.ref() for v in module.trainable_variables} == {
            w.value.ref() for w in layer.trainable_weights
        }
        model.compile(keras.optimizers.SGD(0.1), "mse")
        losses = model.fit(X, X.sum(1, keepdims=True), epochs=5, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        for path, before in PARAMS.items():
            assert np.abs(module.parameters[path] - before).max() > 0
        model.save(tmp_path / "model.keras")
        restored = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(restored(X), model(X), rtol=1e-5)
        model.export(str(tmp_path / "exported"), verbose=False)
        exported = tf.saved_model.load(str(tmp_path / "exported"))
        np.testing.assert_allclose(exported.serve(X), model(X), rtol=1e-5)

    def test_a_layer_of_its_own_in_a_sequential_model(self):
        module = jax2tf.Module(dense, PARAMS, polymorphic_shapes="b, _")
        model = keras.Sequential([keras.Input([3]), module.keras_layer(name="inner")])
        assert model.layers[0].name == "inner"
        assert len(model.trainable_weights) == 2
        np.testing.assert_allclose(model.predict(X, verbose=0), dense(PARAMS, X), rtol=1e-5)

    @pytest.mark.parametrize(
        "call",
        [
            lambda self, layer: layer(X),
            lambda self, layer: self.model(layer),
            lambda self, layer: keras.layers.Lambda(layer.inner)(X),
        ],
        ids=["layer", "model", "lambda"],
    )
    def test_keras_would_not_see_them(self, call):
        layer = Holding(as_layer=False)
        with pytest.raises(jax2tf.ConversionError) as error:
            call(self, layer)
        for words in (
            "jax2tf.Module(dense): the Keras layer ",
            "trainable variables (b, w) are no weights of",
            "What to do: assign module.keras_layer()",
            "trainable=False",
        ):
            assert words in str(error.value)
        # Keras is out of that call again.
        np.testing.assert_allclose(layer.inner(X), dense(PARAMS, X), rtol=1e-5)

    def test_nothing_to_train_is_nothing_to_see(self):
        layer = Holding(as_layer=False, trainable_module=False)
        np.testing.assert_allclose(self.model(layer).layers[1](X), dense(PARAMS, X), rtol=1e-5)
