"""Modules of Flax, exported as their users did with `jax.experimental.jax2tf`: the import is JAX's
own, and `jax2tf.install()` makes it ours."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from flax import linen, nnx

import jax2tf
from tests.running import assert_near

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).normal(size=(2, 28, 28, 1)).astype(np.float32)
IDS = np.random.default_rng(0).integers(1, 17, (2, 6)).astype(np.int32)
DEFAULT: dict[str, bool] = {}
NO_XLA = {"enable_xla": False, "native_serialization": False}
each_options = pytest.mark.parametrize("options", [DEFAULT, NO_XLA], ids=["default", "no_xla"])


class Classifier(linen.Module):
    """Linen's example of digits, with statistics of the batch."""

    @linen.compact
    def __call__(self, x, train: bool = False):
        x = linen.Conv(8, (3, 3), strides=2)(x)
        x = linen.relu(linen.BatchNorm(use_running_average=not train)(x))
        x = linen.avg_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
        x = linen.Dropout(0.5, deterministic=not train)(x)
        return linen.Dense(10)(x)


class Decoder(linen.Module):
    """Linen's example of a language model: blocks in a scan, each recomputed, causal attention."""

    @linen.compact
    def __call__(self, ids):
        x = linen.Embed(17, 8)(ids)
        blocks = linen.scan(
            linen.remat(Block),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=linen.broadcast,
            length=2,
        )
        x, _ = blocks()(x, linen.make_causal_mask(ids))
        return linen.Dense(17)(linen.RMSNorm()(x))


class Block(linen.Module):
    @linen.compact
    def __call__(self, x, mask):
        x = x + linen.MultiHeadDotProductAttention(2)(linen.LayerNorm()(x), mask=mask)
        return x + linen.Dense(8)(linen.gelu(linen.Dense(16)(x))), None


class Autoencoder(nnx.Module):
    """NNX's example, with a recurrent layer."""

    def __init__(self, rngs: nnx.Rngs):
        self.encode = nnx.Conv(1, 4, (3, 3), strides=2, rngs=rngs)
        self.normalize = nnx.BatchNorm(4, use_running_average=True, rngs=rngs)
        self.rows = nnx.RNN(nnx.GRUCell(14 * 4, 8, rngs=rngs))
        self.decode = nnx.Linear(8, 28, rngs=rngs)

    def __call__(self, x):
        code = nnx.relu(self.normalize(self.encode(x)))
        rows = code.reshape(*code.shape[:2], -1)
        states = self.rows(rows, initial_carry=jnp.zeros((x.shape[0], 8)))
        return nnx.sigmoid(self.decode(states))


@pytest.fixture(scope="module")
def original():
    """`jax.experimental.jax2tf`, as a program finds it."""
    jax2tf.install()
    yield importlib.import_module("jax.experimental.jax2tf")
    jax2tf.uninstall()


def exported(original, fun, params, spec, shapes, options, folder):
    """The SavedModel that a user makes of a function of parameters and an array, restored."""
    module = tf.Module()
    module.params = tf.nest.map_structure(lambda p: tf.Variable(np.asarray(p)), params)
    converted = original.convert(fun, polymorphic_shapes=[None, shapes], **options)
    module.f = tf.function(
        lambda x: converted(module.params, x), autograph=False, input_signature=[spec]
    )
    saving = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(folder), options=saving)
    return tf.saved_model.load(str(folder))


def assert_trains(restored, fun, params, x):
    """A step down the gradient by TensorFlow's variables is JAX's step."""
    variables = tf.nest.flatten(restored.params)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(restored.f(tf.constant(x)) ** 2)
    actual = [np.asarray(g) for g in tape.gradient(loss, variables)]
    of_loss = jax.grad(lambda params: jnp.mean(fun(params, x) ** 2))
    expected = list(map(np.asarray, tf.nest.flatten(jax.jit(of_loss)(params))))
    # The gradients of biases before a normalisation are zero but for rounding.
    assert_near(actual, expected, 1024, max(np.abs(g).max() for g in expected) / 64)


@each_options
@pytest.mark.parametrize(
    ("module", "x", "spec", "shapes"),
    [
        (Classifier(), IMAGES, tf.TensorSpec([None, 28, 28, 1], tf.float32), "b, ..."),
        (Decoder(), IDS, tf.TensorSpec([None, None], tf.int32), "b, t"),
    ],
    ids=["classifier", "decoder"],
)
def test_linen(original, module, x, spec, shapes, options, tmp_path):
    variables = module.init(KEY, x)
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}

    def apply(params, x):
        return module.apply({"params": params, **rest}, x)

    restored = exported(original, apply, params, spec, shapes, options, tmp_path)
    for batch in (x, x[:1]):
        assert_near(restored.f(tf.constant(batch)).numpy(), jax.jit(apply)(params, batch), 256)
    assert_trains(restored, apply, params, x)


def test_linen_trains_with_statistics_and_dropout(original):
    """A function with a static flag, keys of two streams and a mutable collection."""
    module = Classifier()
    variables = module.init(KEY, IMAGES)

    def step(variables, x):
        return module.apply(
            variables, x, train=True, rngs={"dropout": KEY}, mutable=["batch_stats"]
        )

    converted = tf.function(original.convert(step), autograph=False)
    given = tf.nest.map_structure(np.asarray, variables)
    actual = tf.nest.map_structure(lambda t: t.numpy(), converted(given, IMAGES))
    assert_near(actual, jax.jit(step)(variables, IMAGES), 256)


@each_options
def test_nnx(original, options, tmp_path):
    graph, state, rest = nnx.split(Autoencoder(nnx.Rngs(0)), nnx.Param, ...)
    params = nnx.to_pure_dict(state)

    def apply(params, x):
        replaced = jax.tree.map(lambda leaf: leaf, state)
        nnx.replace_by_pure_dict(replaced, params)
        return nnx.merge(graph, replaced, rest)(x)

    spec = tf.TensorSpec([None, 28, 28, 1], tf.float32)
    restored = exported(original, apply, params, spec, "b, ...", options, tmp_path)
    for batch in (IMAGES, IMAGES[:1]):
        assert_near(restored.f(tf.constant(batch)).numpy(), jax.jit(apply)(params, batch), 256)
    assert_trains(restored, apply, params, IMAGES)
