"""Models and training steps of JAX's libraries, with small random weights: `tox run -e zoo`."""

from __future__ import annotations

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

import jax2tf
from tests.running import check, each_lowering, each_mode

KEY = jax.random.key(0)
_RNG = np.random.default_rng(0)
IMAGES = _RNG.normal(size=(2, 16, 16, 3)).astype(np.float32)
TOKENS = _RNG.integers(0, 50, (2, 8)).astype(np.int32)
SEQUENCES = _RNG.normal(size=(2, 5, 4)).astype(np.float32)
TARGETS = _RNG.normal(size=(2, 5, 3)).astype(np.float32)


class ConvNet(linen.Module):
    """Convolutions, grouped ones among them, normalised over the batch, pooled."""

    train: bool = False

    @linen.compact
    def __call__(self, x):
        x = linen.Conv(8, (3, 3), use_bias=False)(x)
        x = linen.BatchNorm(use_running_average=not self.train)(x)
        x = linen.avg_pool(linen.relu(x), (2, 2), strides=(2, 2))
        x = linen.Conv(16, (3, 3), strides=2, feature_group_count=8)(x)
        x = linen.max_pool(linen.gelu(x), (2, 2))
        x = linen.Dropout(0.5, deterministic=True)(x.reshape(x.shape[0], -1))
        return linen.log_softmax(linen.Dense(10)(x))


class Encoder(linen.Module):
    """Two layers of a transformer."""

    @linen.compact
    def __call__(self, tokens):
        x = linen.Embed(50, 16)(tokens)
        x = x + self.param("positions", linen.initializers.normal(), (1, 8, 16))
        mask = linen.make_causal_mask(tokens)
        for _ in range(2):
            x = x + linen.MultiHeadDotProductAttention(4)(linen.LayerNorm()(x), mask=mask)
            hidden = linen.gelu(linen.Dense(32)(linen.LayerNorm()(x)))
            x = x + linen.Dense(16)(hidden)
        return x


class Recurrent(linen.Module):
    """An LSTM over a sequence."""

    @linen.compact
    def __call__(self, x):
        return linen.RNN(linen.OptimizedLSTMCell(8))(x)


def _flax(module, x):
    return module.apply, (module.init(KEY, x), x)


def _flax_training():
    module = ConvNet(train=True)
    variables = module.init(KEY, IMAGES)
    optimizer = optax.sgd(0.1, momentum=0.9)

    def step(variables, state, images):
        def loss(params):
            logits, updates = module.apply(
                {**variables, "params": params}, images, mutable=["batch_stats"]
            )
            return -logits[:, 3].mean(), updates

        (value, updates), gradients = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        changes, state = optimizer.update(gradients, state)
        params = optax.apply_updates(variables["params"], changes)
        return {"params": params, **updates}, state, value

    return step, (variables, optimizer.init(variables["params"]), IMAGES)


def _nnx():
    model = nnx.Sequential(
        nnx.Linear(4, 8, rngs=nnx.Rngs(0)), nnx.LayerNorm(8, rngs=nnx.Rngs(1)), nnx.relu
    )
    graph, state = nnx.split(model)
    return lambda state, x: nnx.merge(graph, state)(x), (state, SEQUENCES)


def _haiku():
    module = hk.transform_with_state(
        lambda x: hk.BatchNorm(True, True, 0.9)(hk.nets.MLP([8, 3])(x), is_training=True)
    )
    params, state = module.init(KEY, SEQUENCES)
    return lambda p, s, x: module.apply(p, s, None, x), (params, state, SEQUENCES)


def _equinox():
    arrays, static = eqx.partition(eqx.nn.MLP(4, 2, 8, 2, key=KEY), eqx.is_array)
    return (
        lambda arrays, x: jax.vmap(jax.vmap(eqx.combine(arrays, static)))(x),
        (arrays, SEQUENCES),
    )


def _training(optimizer):
    module = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 3])(x)))
    params = module.init(KEY, SEQUENCES)

    def step(params, state, x, y):
        def loss(params):
            return jnp.square(module.apply(params, x) - y).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        changes, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, changes), state, value

    return step, (params, optimizer.init(params), SEQUENCES, TARGETS)


PROGRAMS = {
    "flax convolutions": lambda: _flax(ConvNet(), IMAGES),
    "flax transformer": lambda: _flax(Encoder(), TOKENS),
    "flax lstm": lambda: _flax(Recurrent(), SEQUENCES),
    "flax training": _flax_training,
    "nnx": _nnx,
    "haiku": _haiku,
    "equinox": _equinox,
    "optax adamw": lambda: _training(optax.adamw(1e-2)),
    "optax lion, clipped": lambda: _training(
        optax.chain(
            optax.clip_by_global_norm(1.0), optax.lion(optax.cosine_decay_schedule(1e-2, 9))
        )
    ),
    "optax adafactor": lambda: _training(optax.adafactor(1e-2)),
}


@each_lowering
@each_mode
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_jax_gives(name, mode, lowering):
    fun, args = PROGRAMS[name]()
    check(fun, args, mode, lowering, ulps=64)


@eqx.filter_jit
def _checked_root(x):
    return jnp.sqrt(eqx.error_if(x, jnp.any(x < 0), "a negative number"))


@each_lowering
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_error_checks_of_equinox_convert_and_raise(mode, lowering):
    positive = abs(SEQUENCES)
    check(_checked_root, (positive,), mode, lowering)
    with pytest.raises(Exception, match="a negative number"):
        check(_checked_root, (-positive,), mode, lowering)


def test_error_checks_of_equinox_are_refused_where_xla_compiles():
    with pytest.raises(jax2tf.UnsupportedPrimitiveError, match=r"pure_callback.*call back into"):
        check(_checked_root, (SEQUENCES,), "compiled", "xla")
