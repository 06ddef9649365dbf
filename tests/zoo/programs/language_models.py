"""Language models: encoders, decoders with a cache, generation, state spaces, quantised weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.zoo.program import Built, integers, normal, program

KEY = jax.random.key(0)
TOKENS = integers(50, 2, 8)
SEQUENCES = normal(2, 8, 4)


@program("flax", batch=(None, "b, ..."))
def encoder_of_linen() -> Built:
    from flax import linen

    class Encoder(linen.Module):
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

    module = Encoder()
    return module.apply, (module.init(KEY, TOKENS), TOKENS)


@program("flax", batch=(None, "b, s"), constraints=("s <= 64",))
def scanned_layers_of_any_length_rematerialized() -> Built:
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, _):
            y = linen.RMSNorm()(x)
            mask = linen.make_causal_mask(x[..., 0])
            x = x + linen.MultiHeadDotProductAttention(2)(y, mask=mask)
            gate, up = jnp.split(linen.Dense(32)(linen.RMSNorm()(x)), 2, axis=-1)
            return x + linen.Dense(16)(linen.silu(gate) * up), None

    class Decoder(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            embed = linen.Embed(50, 16)
            positions = self.param("positions", linen.initializers.normal(), (64, 16))
            x = embed(tokens) + positions[: tokens.shape[1]]
            blocks = linen.scan(
                linen.remat(Block),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=3,
            )
            x, _ = blocks()(x, None)
            return embed.attend(linen.LayerNorm()(x))

    module = Decoder()
    return module.apply, (module.init(KEY, TOKENS), TOKENS)


@program("flax", batch=(None, "b, ..."))
def greedy_generation_with_a_cache_of_nnx() -> Built:
    from flax import nnx

    class Decoder(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.embed = nnx.Embed(50, 16, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(4, 16, decode=True, rngs=rngs)
            self.output = nnx.Linear(16, 50, rngs=rngs)

        def __call__(self, token):
            x = self.embed(token)[:, None]
            return self.output(x + self.attention(x))[:, 0]

    model = Decoder(nnx.Rngs(0))
    params = nnx.state(model, nnx.Param)

    def generate(params, first):
        decoder = nnx.clone(model)
        decoder.attention.init_cache((first.shape[0], 6, 16))
        nnx.update(decoder, params)
        graph, state = nnx.split(decoder)

        def step(carry, _):
            state, token = carry
            decoder = nnx.merge(graph, state)
            token = jnp.argmax(decoder(token), axis=-1).astype(jnp.int32)
            return (nnx.state(decoder), token), token

        return jax.lax.scan(step, (state, first), length=6)[1]

    return generate, (params, TOKENS[:, 0])


@program("equinox", batch="b, ...")
def rotary_attention_with_masks() -> Built:
    import equinox as eqx

    class Block(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        rotary: eqx.nn.RotaryPositionalEmbedding
        norm: eqx.nn.RMSNorm
        mlp: eqx.nn.MLP

        def __init__(self, key):
            one, other = jax.random.split(key)
            self.attention = eqx.nn.MultiheadAttention(2, 16, key=one)
            self.rotary = eqx.nn.RotaryPositionalEmbedding(8)
            self.norm = eqx.nn.RMSNorm(16)
            self.mlp = eqx.nn.MLP(16, 16, 32, 1, jax.nn.gelu, key=other)

        def __call__(self, x):
            def rotate(query, key, value):
                turn = jax.vmap(self.rotary, in_axes=1, out_axes=1)
                return turn(query), turn(key), value

            y = jax.vmap(self.norm)(x)
            mask = jnp.tril(jnp.ones((x.shape[0],) * 2, bool))
            x = x + self.attention(y, y, y, mask, process_heads=rotate)
            return x + jax.vmap(self.mlp)(jax.vmap(self.norm)(x))

    embed = eqx.nn.Embedding(50, 16, key=KEY)
    block = Block(KEY)
    model = eqx.filter_jit(lambda tokens: block(jax.vmap(embed)(tokens)) @ embed.weight.T)
    return lambda tokens: jax.vmap(model)(tokens), (TOKENS,)


@program("dm-haiku", batch=(None, "b, ..."), ulps=4)
def bfloat16_decoder_with_shared_keys() -> Built:
    import haiku as hk

    def attend(x):
        batch, length, _ = x.shape
        query = hk.Linear(16, name="query")(x).reshape(batch, length, 2, 2, 4)
        key, value = (
            hk.Linear(8, name=name)(x).reshape(batch, length, 2, 4) for name in ("key", "value")
        )
        logits = jnp.einsum("btghd,bsgd->bghts", query, key).astype(jnp.float32) / 2
        mask = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(mask, logits, -1e30)).astype(x.dtype)
        mixed = jnp.einsum("bghts,bsgd->btghd", weights, value)
        return hk.Linear(16)(mixed.reshape(batch, length, 16))

    def network(tokens):
        x = hk.Embed(50, 16)(tokens).astype(jnp.bfloat16)
        x = x + attend(hk.RMSNorm(-1)(x))
        return hk.Linear(50)(hk.LayerNorm(-1, True, True)(x))

    module = hk.without_apply_rng(hk.transform(network))
    params = jax.tree.map(lambda x: x.astype(jnp.bfloat16), module.init(KEY, TOKENS))
    return module.apply, (params, TOKENS)


@program("dm-haiku", batch=(None, "b", None))
def sampling_until_the_end() -> Built:
    import haiku as hk

    def network(token, state):
        output, state = hk.GRU(8)(hk.Embed(12, 8)(token), state)
        return hk.Linear(12)(output), state

    module = hk.without_apply_rng(hk.transform(network))

    def generate(params, first, key):
        def step(carry):
            i, token, state, key, text = carry
            logits, state = module.apply(params, token, state)
            key, now = jax.random.split(key)
            best, _ = jax.lax.top_k(logits, 5)
            token = jax.random.categorical(now, jnp.where(logits < best[:, -1:], -1e9, logits))
            text = jax.lax.dynamic_update_index_in_dim(text, token, i, 1)
            return i + 1, token.astype(jnp.int32), state, key, text

        def unfinished(carry):
            i, token, *_ = carry
            return (i < 9) & jnp.any(token != 0)

        text = jnp.zeros((first.shape[0], 9), jnp.int32)
        state = jnp.zeros((first.shape[0], 8))
        return jax.lax.while_loop(unfinished, step, (0, first, state, key, text))[-1]

    params = module.init(KEY, TOKENS[:, 0], jnp.zeros((2, 8)))
    return generate, (params, TOKENS[:, 0] % 12, jax.random.PRNGKey(1))


@program("flax", batch=(None, "b, ..."))
def weights_of_eight_bits() -> Built:
    from flax import linen

    class Quantized(linen.Module):
        features: int

        @linen.compact
        def __call__(self, x):
            shape = (x.shape[-1], self.features)
            weight = self.param("weight", lambda key: integers(100, *shape).astype(np.int8))
            scale = self.param("scale", lambda key: np.full(shape[1:], 0.02, np.float32))
            size = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127
            rounded = jnp.round(x / size).astype(jnp.int8)
            product = jax.lax.dot_general(
                rounded, weight, (((2,), (0,)), ((), ())), preferred_element_type=jnp.int32
            )
            return product * size * scale

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            return Quantized(3)(linen.silu(Quantized(16)(x)))

    module = Network()
    return module.apply, (module.init(KEY, SEQUENCES), SEQUENCES)


@program("equinox", batch="b, ...")
def selective_state_space() -> Built:
    import equinox as eqx

    class StateSpace(eqx.Module):
        decay: jax.Array
        inputs: eqx.nn.Linear
        steps: eqx.nn.Linear
        convolution: eqx.nn.Conv1d

        def __init__(self, width, key):
            keys = jax.random.split(key, 3)
            self.decay = -jnp.exp(jax.random.normal(keys[0], (width, 6)))
            self.inputs = eqx.nn.Linear(width, 12, key=keys[1])
            self.steps = eqx.nn.Linear(width, width, key=keys[2])
            self.convolution = eqx.nn.Conv1d(width, width, 3, groups=width, key=key)

        def __call__(self, x):
            x = jax.nn.silu(self.convolution(jnp.pad(x.T, ((0, 0), (2, 0)))).T)
            step = jax.nn.softplus(jax.vmap(self.steps)(x))[..., None]
            into, out = jnp.split(jax.vmap(self.inputs)(x), 2, axis=-1)
            forget = jnp.exp(step * self.decay)
            enter = step * into[:, None] * x[..., None]

            def join(one, other):
                return one[0] * other[0], one[1] * other[0] + other[1]

            _, states = jax.lax.associative_scan(join, (forget, enter))
            return jnp.einsum("tds,ts->td", states, out)

    return jax.vmap(StateSpace(4, KEY)), (SEQUENCES,)
