"""Networks and their training steps: Flax, Haiku, Equinox, Optax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, Fails, integers, normal, program

KEY = jax.random.key(0)
IMAGES = normal(2, 16, 16, 3)
SEQUENCES = normal(2, 5, 4)
TARGETS = normal(2, 5, 3, seed=1)


@program("flax", batch=(None, "b, ..."))
def convolutions_of_linen() -> Built:
    from flax import linen

    class ConvNet(linen.Module):
        @linen.compact
        def __call__(self, x, train: bool = False):
            x = linen.Conv(8, (3, 3), use_bias=False)(x)
            x = linen.BatchNorm(use_running_average=not train)(x)
            x = linen.avg_pool(linen.relu(x), (2, 2), strides=(2, 2))
            x = linen.Conv(16, (3, 3), strides=2, feature_group_count=8)(x)
            x = linen.max_pool(linen.gelu(x), (2, 2))
            x = linen.Dropout(0.5, deterministic=not train)(x.reshape(x.shape[0], -1))
            return linen.log_softmax(linen.Dense(10)(x))

    module = ConvNet()
    return module.apply, (module.init(KEY, IMAGES), IMAGES)


@program("flax", batch=(None, None, "b, ..."))
def training_with_batch_statistics_and_dropout() -> Built:
    import optax
    from flax import linen
    from flax.training import train_state

    class ConvNet(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(8, (3, 3), strides=2, use_bias=False)(x)
            x = linen.BatchNorm(use_running_average=False)(x)
            x = linen.Dropout(0.1, deterministic=False)(linen.relu(x))
            return linen.log_softmax(linen.Dense(10)(x.mean((1, 2))))

    module = ConvNet()
    variables = module.init({"params": KEY, "dropout": KEY}, IMAGES)
    optimizer = optax.sgd(0.1, momentum=0.9)
    state = train_state.TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )

    def step(state, statistics, images):
        def loss(params):
            logits, updates = state.apply_fn(
                {"params": params, "batch_stats": statistics},
                images,
                rngs={"dropout": jax.random.fold_in(KEY, state.step)},
                mutable=["batch_stats"],
            )
            return -logits[:, 3].mean(), updates["batch_stats"]

        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients), statistics, value

    return step, (state, variables["batch_stats"], IMAGES)


@program("flax", batch=(None, "b, ..."))
def lstm_in_both_directions() -> Built:
    from flax import linen

    forward, backward = (linen.RNN(linen.OptimizedLSTMCell(8)) for _ in range(2))
    module = linen.Bidirectional(forward, backward)
    return module.apply, (module.init(KEY, SEQUENCES), SEQUENCES)


@program("flax", batch=(None, "b, ..."))
def state_of_nnx() -> Built:
    from flax import nnx

    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(4, 8, rngs=rngs), nnx.LayerNorm(8, rngs=rngs), nnx.relu)
    graph, state = nnx.split(model)
    return lambda state, x: nnx.merge(graph, state)(x), (state, SEQUENCES)


@program("flax", batch="b, ...")
def variational_autoencoder_of_nnx() -> Built:
    from flax import nnx

    class Autoencoder(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.encode = nnx.Conv(3, 4, (3, 3), strides=2, rngs=rngs)
            self.normalize = nnx.GroupNorm(4, num_groups=2, rngs=rngs)
            self.mean = nnx.Linear(4, 4, rngs=rngs)
            self.decode = nnx.ConvTranspose(4, 3, (3, 3), strides=2, rngs=rngs)

        def __call__(self, x, key):
            code = self.mean(nnx.silu(self.normalize(self.encode(x))))
            code = code + jax.random.normal(key, (8, 8, 4))
            return nnx.sigmoid(self.decode(code)), 0.5 * jnp.sum(code**2, (1, 2, 3))

    model = Autoencoder(nnx.Rngs(0))
    return lambda x: model(x, KEY), (IMAGES,)


@program("dm-haiku", batch=(None, None, "b, ..."), ulps=256)
def residual_network_with_state() -> Built:
    import haiku as hk

    def network(x):
        return hk.nets.ResNet(
            (1, 1, 1, 1),
            3,
            resnet_v2=True,
            bottleneck=False,
            channels_per_group=(4, 8, 8, 8),
            strides=(1, 1, 1, 1),
        )(x, is_training=True)

    module = hk.transform_with_state(network)
    params, state = module.init(KEY, IMAGES)
    return lambda p, s, x: module.apply(p, s, None, x), (params, state, IMAGES)


@program("dm-haiku", batch=(None, "b, ..."))
def gated_recurrent_unit() -> Built:
    import haiku as hk

    def network(x):
        core = hk.GRU(8)
        states, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[0]), time_major=False)
        return hk.nets.MLP([8, 3], activation=jax.nn.swish)(states)

    module = hk.without_apply_rng(hk.transform(network))
    return module.apply, (module.init(KEY, SEQUENCES), SEQUENCES)


@program("equinox", batch=(None, "b, ..."))
def partitioned_perceptron() -> Built:
    import equinox as eqx

    arrays, static = eqx.partition(eqx.nn.MLP(4, 2, 8, 2, key=KEY), eqx.is_array)
    return (
        lambda arrays, x: jax.vmap(jax.vmap(eqx.combine(arrays, static)))(x),
        (arrays, SEQUENCES),
    )


@program("equinox", batch="b, ...")
def module_that_is_vmapped() -> Built:
    import equinox as eqx

    keys = jax.random.split(KEY, 3)
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, 4, 3, padding=1, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.AdaptiveAvgPool2d(4),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(64, 3, key=keys[1]),
        ]
    )
    return jax.vmap(model), (np.moveaxis(IMAGES, -1, 1),)


# Adam divides by the root of a square that is nearly 0: JAX's gradients op by op are 2,736 ULPs
# from those of jax.jit.
@program("equinox", batch=(None, "b, ...", "b, ..."), ulps=256, gradient_ulps=4096)
def filtered_training_step() -> Built:
    import equinox as eqx
    import optax

    model = eqx.nn.GRUCell(4, 3, key=KEY)
    optimizer = optax.adam(1e-2)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    state = optimizer.init(arrays)

    @eqx.filter_value_and_grad
    def loss(model, x, y):
        def step(hidden, inputs):
            return (hidden := model(inputs, hidden)), hidden

        _, states = jax.vmap(lambda x: jax.lax.scan(step, jnp.zeros(3), x))(x)
        return jnp.mean((states - y) ** 2)

    def train(arrays_and_state, x, y):
        arrays, state = arrays_and_state
        model = eqx.combine(arrays, static)
        value, gradients = loss(model, x, y)
        updates, state = optimizer.update(gradients, state, arrays)
        return eqx.filter(eqx.apply_updates(model, updates), eqx.is_array), state, value

    return train, ((arrays, state), SEQUENCES, TARGETS)


def _training(optimizer) -> Built:
    import haiku as hk
    import optax

    module = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 3])(x)))
    params = module.init(KEY, SEQUENCES)

    def step(params, state, x, y):
        def loss(params):
            return jnp.square(module.apply(params, x) - y).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        changes, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, changes), state, value

    return step, (params, optimizer.init(params), SEQUENCES, TARGETS)


_TRAINING_BATCH = (None, None, "b, ...", "b, ...")


@program("optax", batch=_TRAINING_BATCH)
def adamw() -> Built:
    import optax

    return _training(optax.adamw(1e-2))


@program("optax", batch=_TRAINING_BATCH)
def lion_with_clipping_and_a_schedule() -> Built:
    import optax

    schedule = optax.cosine_decay_schedule(1e-2, 9)
    return _training(optax.chain(optax.clip_by_global_norm(1.0), optax.lion(schedule)))


@program("optax", batch=_TRAINING_BATCH)
def adafactor() -> Built:
    import optax

    return _training(optax.adafactor(1e-2))


@program("optax", batch=_TRAINING_BATCH)
def gradient_accumulation_with_masks() -> Built:
    import optax

    inner = optax.masked(optax.adam(1e-2), lambda p: jax.tree.map(lambda x: x.ndim > 1, p))
    return _training(optax.MultiSteps(inner, every_k_schedule=2).gradient_transformation())


@program(
    "optax",
    batch=(None, "b, ...", "b"),
    fails={"gradient": Fails("jax", "ValueError", "Reverse-mode differentiation does not work")},
)
def minimization_by_lbfgs() -> Built:
    import optax

    def minimize(w, x, y):
        def loss(w):
            return jnp.mean(jax.nn.softplus(-y * (x @ w))) + 0.1 * jnp.sum(w**2)

        solver = optax.lbfgs()
        value_and_grad = optax.value_and_grad_from_state(loss)

        def step(carry, _):
            w, state = carry
            value, gradient = value_and_grad(w, state=state)
            updates, state = solver.update(
                gradient, state, w, value=value, grad=gradient, value_fn=loss
            )
            return (optax.apply_updates(w, updates), state), value

        (w, _), values = jax.lax.scan(step, (w, solver.init(w)), length=4)
        return w, values

    return minimize, (normal(4), normal(6, 4), np.sign(normal(6, seed=2)))


@program("optax", batch=("b, ...", "b, ..."))
def connectionist_temporal_classification() -> Built:
    import optax

    def loss(logits, labels):
        return optax.ctc_loss(
            logits, jnp.zeros(logits.shape[:2]), labels, (labels == 0).astype(jnp.float32)
        )

    return loss, (normal(2, 6, 5), integers(5, 2, 3))


@program("qwix", batch=(None, "b, ..."))
def quantised_convolutions() -> Built:
    """Convolutions and products of int8 into int32, which are exact."""
    import qwix
    from flax import linen

    class ConvNet(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(linen.Conv(8, (3, 3))(x))
            x = linen.relu(linen.Conv(8, (3, 3), strides=2, padding="VALID")(x))
            x = linen.relu(linen.Conv(8, (3, 3), feature_group_count=8)(x))
            return linen.Dense(5)(x.reshape(x.shape[0], -1))

    rule = qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)
    module = qwix.quantize_model(ConvNet(), qwix.PtqProvider([rule]))
    params = ConvNet().init(KEY, IMAGES)["params"]
    quantised = jax.eval_shape(module.init, KEY, IMAGES)["params"]
    variables = {"params": qwix.quantize_params(params, quantised)}
    return lambda scale, x: module.apply(variables, x * scale), (np.float32(1.5), IMAGES)
