"""What libraries make of functions, as their users hand it over: to `convert` and to `Module`."""

from __future__ import annotations

import functools

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tensorflow as tf
from flax import linen, nnx

import jax2tf
from tests.running import MODES, assert_near, each_mode

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)

MLP = eqx.nn.MLP(4, 3, 8, 2, key=KEY)
DENSE = linen.Dense(3)
DENSE_PARAMS = DENSE.init(KEY, X)
HAIKU = hk.transform(lambda x: hk.nets.MLP([8, 3])(x))
HAIKU_PARAMS = HAIKU.init(KEY, X)


class Coder(linen.Module):
    """Methods, and a flag that JAX cannot trace."""

    def setup(self):
        self.dense = linen.Dense(3)
        self.dropout = linen.Dropout(0.5)

    def __call__(self, x, train):
        return self.dropout(self.encode(x), deterministic=not train)

    def encode(self, x):
        return self.dense(x)


CODER = Coder()
CODER_PARAMS = CODER.init(KEY, X, False)


def of_nnx():
    return nnx.Sequential(nnx.Linear(4, 3, rngs=nnx.Rngs(0)), nnx.LayerNorm(3, rngs=nnx.Rngs(1)))


MODEL = of_nnx()
GRAPH, STATE = nnx.split(MODEL)

# Functions of an array, as the library gives them.
OF_ARRAYS = {
    "equinox, vmapped": jax.vmap(MLP),
    "equinox, jitted": eqx.filter_jit(eqx.filter_vmap(MLP)),
    "equinox, filter_vmap": eqx.filter_vmap(MLP),
    "equinox, bound method": jax.vmap(MLP.__call__),
    "equinox, gradient": eqx.filter_grad(lambda x: jnp.sum(jax.vmap(MLP)(x) ** 2)),
    "linen, bound": DENSE.bind(DENSE_PARAMS),
    "linen, partial": functools.partial(DENSE.apply, DENSE_PARAMS),
    "haiku, partial": functools.partial(HAIKU.apply, HAIKU_PARAMS, None),
    "nnx": MODEL,
    "nnx, jitted": nnx.jit(MODEL),
    "nnx, jitted function": nnx.jit(lambda x: MODEL(x) * 2),
    "nnx, bound method": MODEL.__call__,
}


@each_mode
@pytest.mark.parametrize("fun", OF_ARRAYS.values(), ids=OF_ARRAYS)
def test_a_function_of_arrays(fun, mode):
    assert_near(MODES[mode](jax2tf.convert(fun))(X), fun(jnp.asarray(X)), 64)


# The function, the parameters, and what comes behind them.
WITH_PARAMETERS = {
    "equinox, jitted": (eqx.filter_jit(lambda model, x: jax.vmap(model)(x)), MLP, {}),
    "equinox": (lambda model, x: jax.vmap(model)(x), MLP, {}),
    "linen": (DENSE.apply, DENSE_PARAMS, {}),
    "linen, a method by its name": (
        jax.jit(CODER.apply, static_argnames="method"),
        CODER_PARAMS,
        {"method": "encode"},
    ),
    "linen, a flag": (
        jax.jit(CODER.apply, static_argnames="train"),
        CODER_PARAMS,
        {"train": False},
    ),
    "haiku": (hk.without_apply_rng(HAIKU).apply, HAIKU_PARAMS, {}),
    "nnx, jitted": (nnx.jit(lambda model, x: model(x)), MODEL, {}),
    "nnx, split": (lambda state, x: nnx.merge(GRAPH, state)(x), STATE, {}),
}


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_a_module_of_parameters(name, tmp_path):
    fun, params, options = WITH_PARAMETERS[name]
    expected = fun(params, jnp.asarray(X), **options)
    module = jax2tf.Module(fun, params, polymorphic_shapes="b, _")
    with tf.GradientTape() as tape:
        y = module(X, **options)
    assert_near(y, expected, 64)
    gradients = tape.gradient(y, module.trainable_variables)
    assert gradients
    assert all(g is not None for g in gradients)
    module.serve = tf.function(
        lambda x: module(x, **options),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 4])],
    )
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    assert_near(restored.serve(X), expected, 64)
    assert restored.serve(X[:1]).shape == (1, 3)


def test_a_training_step_of_equinox_gives_the_model_back():
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(MLP, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, x, scale):
        def loss(model):
            return jnp.mean(jax.vmap(model)(x) ** 2) * scale

        value, gradients = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    converted = jax2tf.convert(step)
    model, state_after, value = converted(MLP, state, X, 0.5)
    assert model.activation is MLP.activation
    assert jax.tree.structure(state_after) == jax.tree.structure(state)
    expected = step(MLP, state, X, 0.5)
    assert_near(value, expected[2], 64)
    arrays = [eqx.filter(m, lambda leaf: hasattr(leaf, "shape")) for m in (model, expected[0])]
    for actual, wanted in zip(*map(jax.tree.leaves, arrays), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-5)
    assert float(converted(model, state_after, X, 0.5)[2]) < float(value)


def test_an_update_of_optax():
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
    state = optimizer.init(DENSE_PARAMS)
    expected = optimizer.update(DENSE_PARAMS, state, DENSE_PARAMS)
    actual = jax2tf.convert(optimizer.update)(DENSE_PARAMS, state, DENSE_PARAMS)
    assert_near(actual, expected, 64)


def test_the_state_that_nnx_writes_is_not_the_callers():
    model = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
    before = np.asarray(model.mean[...])

    @nnx.jit
    def step(model, x):
        return model(x), nnx.state(model)

    y, state = jax2tf.convert(step)(model, X + 3)
    np.testing.assert_array_equal(model.mean[...], before)
    expected = step(model, X + 3)
    assert_near(y, expected[0], 64)
    np.testing.assert_allclose(
        jax.tree.leaves(state)[1], jax.tree.leaves(expected[1])[1], rtol=1e-4
    )
