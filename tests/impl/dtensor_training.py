"""Training on DTensor: test_dtensor.py runs this in a process with eight devices."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jax2tf import dtensor
from tests.impl import logical_devices
from tests.impl.parallel_programs import PROGRAMS, normal
from tests.running import assert_near

logical_devices.make(8)

P = PartitionSpec
RATE = 0.1


def shardings(mesh, specs):
    return jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda node: isinstance(node, P)
    )


def check_training(loss, mesh, params, param_specs, batch, batch_spec, steps=3):
    """Steps of gradient descent on DTensor end where JAX's do on eight devices."""
    given = shardings(mesh, (param_specs, batch_spec))
    sharded = jax.jit(loss, in_shardings=given, out_shardings=NamedSharding(mesh, P()))
    variables = dtensor.variables(params, param_specs, mesh)
    leaves = jax.tree.leaves(variables)
    converted = dtensor.convert(sharded, mesh)

    @tf.function(autograph=False)
    def step(batch):
        with tf.GradientTape() as tape:
            value = converted(variables, batch)
        for variable, gradient in zip(leaves, tape.gradient(value, leaves), strict=True):
            variable.assign_sub(RATE * gradient)
        return value

    of_jax = jax.jit(
        jax.value_and_grad(loss),
        in_shardings=given,
        out_shardings=shardings(mesh, (P(), param_specs)),
    )
    on_mesh = dtensor.place(batch, batch_spec, mesh)
    for _ in range(steps):
        expected, gradient = of_jax(params, batch)
        params = jax.tree.map(lambda p, g: p - RATE * g, params, gradient)
        assert_near(dtensor.values(step(on_mesh)), np.asarray(expected), 64)
    assert_near(dtensor.values(variables), jax.tree.map(np.asarray, params), 256)
    layouts = [tf.experimental.dtensor.fetch_layout(v.read_value()) for v in leaves]
    assert layouts == [v.layout for v in leaves]


VOCABULARY, WIDTH, HEADS, LAYERS = 32, 16, 4, 2

TRANSFORMER_SPECS = {
    "embedding": P("model"),
    "layers": {
        "scales": P(),
        "qkv": P(None, None, None, "model"),
        "out": P(None, "model"),
        "up": P(None, None, "model"),
        "down": P(None, "model"),
    },
}


def transformer_params():
    size = WIDTH // HEADS
    shapes = {
        "qkv": (LAYERS, 3, WIDTH, HEADS, size),
        "out": (LAYERS, HEADS, size, WIDTH),
        "up": (LAYERS, WIDTH, 4 * WIDTH),
        "down": (LAYERS, 4 * WIDTH, WIDTH),
    }
    layers = {name: 0.3 * normal(*shape) for name, shape in shapes.items()}
    layers["scales"] = np.ones((LAYERS, 2, WIDTH), np.float32)
    return {"embedding": 0.3 * normal(VOCABULARY, WIDTH), "layers": layers}


def normalized(x, scale):
    return scale * (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def transformer_loss(mesh):
    def on(x, *spec):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None, *spec)))

    def layer(x, p):
        y = normalized(x, p["scales"][0])
        q, k, v = (on(t, "model", None) for t in jnp.einsum("btd,sdhk->sbthk", y, p["qkv"]))
        scores = jnp.einsum("bqhk,bthk->bhqt", q, k) / np.sqrt(q.shape[-1])
        causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
        attended = jnp.einsum("bhqt,bthk->bqhk", weights, v)
        x = on(x + jnp.einsum("bqhk,hkd->bqd", attended, p["out"]), None)
        hidden = on(jax.nn.gelu(normalized(x, p["scales"][1]) @ p["up"]), "model")
        return on(x + hidden @ p["down"], None), None

    def loss(params, tokens):
        x = params["embedding"][tokens[:, :-1]]
        x, _ = lax.scan(jax.checkpoint(layer), x, params["layers"])
        scores = jax.nn.log_softmax(x @ params["embedding"].T)
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    return loss


def test_a_transformer_over_data_and_model():
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (8, 9)).astype(np.int32)
    params = transformer_params()
    check_training(transformer_loss(mesh), mesh, params, TRANSFORMER_SPECS, tokens, P("data"))


def test_a_mixture_of_experts():
    layer, (gate, w, x) = PROGRAMS["mixture_of_experts"](8)
    mesh = jax.make_mesh((8,), ("expert",), axis_types=(AxisType.Auto,))

    def loss(params, x):
        return jnp.mean((layer(params["gate"], params["w"], x) - 1) ** 2)

    specs = {"gate": P(), "w": P("expert")}
    check_training(loss, mesh, {"gate": gate, "w": w}, specs, x, P("expert"))
