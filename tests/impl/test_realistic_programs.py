"""Programs as users write them, in plain JAX: what jax.jit gives, in every mode, with both op sets.

Models of JAX's libraries are in tests/zoo.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.jet import jet
from jax.experimental.ode import odeint

from tests.running import check, each_lowering, each_mode

_RNG = np.random.default_rng(7)


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RNG.normal(size=shape).astype(dtype)


X = _normal(4, 6)
KEY = np.array([3, 9], np.uint32)


def diffusion_sampler(key, x):
    """Noise taken away step by step, some of it put back: random bits inside a scan."""

    def step(state, t):
        key, x = state
        key, inner = jax.random.split(key)
        noise = jax.random.normal(inner, x.shape)
        return (key, 0.9 * x + 0.1 * jnp.tanh(x) * t + 0.05 * noise), x.mean()

    (_, x), means = lax.scan(step, (jax.random.wrap_key_data(key), x), jnp.linspace(1, 0, 8))
    return x, means


def pendulum(y):
    return odeint(lambda y, t: jnp.stack([y[1], -jnp.sin(y[0])]), y, jnp.linspace(0.0, 2.0, 4))


def beam_search(logits):
    """The three best paths through a table of transitions."""

    def body(state):
        i, beams, scores = state
        following = jax.nn.log_softmax(logits[beams], axis=-1)
        total = (scores[:, None] + following).ravel()
        scores, index = lax.top_k(total, 3)
        return i + 1, index % logits.shape[1], scores

    start = (0, jnp.zeros(3, jnp.int32), jnp.array([0.0, -jnp.inf, -jnp.inf]))
    return lax.while_loop(lambda state: state[0] < 5, body, start)


def lstm(params, xs):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros(params["u"].shape[0])
    return lax.scan(step, (zeros, zeros), xs)


LSTM = {"w": _normal(6, 20), "u": _normal(5, 20), "b": _normal(20)}


def mixture_of_experts(gate, experts, x):
    """Each token goes to the expert that it likes best: sorted, multiplied, brought back."""
    scores = jax.nn.softmax(x @ gate)
    weight, expert = lax.top_k(scores, 1)
    order = jnp.argsort(expert[:, 0])
    sizes = jnp.bincount(expert[:, 0], length=experts.shape[0])
    outputs = lax.ragged_dot(x[order], experts, sizes.astype(jnp.int32))
    return jnp.zeros_like(outputs).at[order].set(outputs) * weight


def attention(q, k, v, mask):
    """With heads, a mask and a bias by distance."""
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / jnp.sqrt(q.shape[-1])
    distance = jnp.abs(jnp.arange(q.shape[1])[:, None] - jnp.arange(k.shape[1]))
    scores = jnp.where(mask[:, None, None, :], scores - 0.1 * distance, -jnp.inf)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


def quantised_matmul(x, w):
    """Products of int8 in int32, scaled back."""
    scale = jnp.max(jnp.abs(w), axis=0) / 127
    w8 = jnp.round(w / scale).astype(jnp.int8)
    x_scale = jnp.max(jnp.abs(x)) / 127
    x8 = jnp.round(x / x_scale).astype(jnp.int8)
    product = lax.dot(x8, w8, preferred_element_type=jnp.int32)
    return product.astype(jnp.float32) * scale * x_scale, product


def kalman_filter(observations):
    transition = jnp.array([[1.0, 0.1], [0.0, 1.0]])

    def step(state, z):
        x, p = state
        x, p = transition @ x, transition @ p @ transition.T + 0.01 * jnp.eye(2)
        gain = p[:, :1] / (p[0, 0] + 0.5)
        x = x + gain[:, 0] * (z - x[0])
        p = p - gain @ p[:1]
        return (x, p), x

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), observations)


def gaussian_process(x, y):
    kernel = jnp.exp(-0.5 * (x[:, None] - x[None, :]) ** 2) + 0.1 * jnp.eye(x.size)
    factor = jax.scipy.linalg.cho_factor(kernel, lower=True)
    weights = jax.scipy.linalg.cho_solve(factor, y)
    return weights, -0.5 * y @ weights - jnp.log(jnp.diagonal(factor[0])).sum()


def graph_network(nodes, senders, receivers):
    """Messages along edges, summed and maximised at their ends."""
    messages = jax.nn.relu(nodes[senders] * 2 - nodes[receivers])
    total = jax.ops.segment_sum(messages, receivers, nodes.shape[0])
    highest = jax.ops.segment_max(messages, receivers, nodes.shape[0])
    return total, jnp.where(jnp.isfinite(highest), highest, 0)


def distinct_words(words):
    values, index, inverse, counts = jnp.unique(
        words, return_index=True, return_inverse=True, return_counts=True, size=6, fill_value=-1
    )
    return values, index, inverse, counts, jnp.nonzero(words > 2, size=4, fill_value=99)


def power_iteration(a):
    """A loop until something converges, around a branch."""

    def body(state):
        v, _, new, i = state
        w = a @ v
        w = lax.cond(i % 2 == 0, lambda w: w / jnp.linalg.norm(w), lambda w: w / w.max(), w)
        return w, new, jnp.linalg.norm(a @ w) / jnp.linalg.norm(w), i + 1

    def unfinished(state):
        _, old, new, i = state
        return (jnp.abs(new - old) > 1e-4) & (i < 50)

    return lax.while_loop(unfinished, body, (jnp.ones(a.shape[0]), 0.0, 1.0, 0))[2:]


def taylor_coefficients(x):
    primal, series = jet(lambda x: jnp.sin(x) * jnp.exp(x), (x,), ((1.0, 0.0, 0.0),))
    return primal, series


def second_derivatives(x):
    def energy(x):
        return jnp.sum(jnp.sin(x) ** 2 * jnp.roll(x, 1))

    return jax.hessian(energy)(x), jax.jacrev(jax.jacfwd(energy))(x)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _clip_gradient(x, limit):
    return x


_clip_gradient.defvjp(lambda x, limit: (x, None), lambda limit, _, g: (jnp.clip(g, -limit, limit),))


def checkpointed_gradient(params, x):
    @partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def block(x, w):
        return _clip_gradient(jnp.tanh(x @ w), 0.01)

    return jax.grad(lambda ws: lax.scan(lambda x, w: (block(x, w), None), x, ws)[0].sum())(params)


def game_of_life(board):
    neighbours = lax.reduce_window(board, 0, lax.add, (3, 3), (1, 1), "SAME") - board
    alive = (neighbours == 3) | ((board == 1) & (neighbours == 2))
    return alive.astype(board.dtype)


def long_filter(signal, taps):
    n = signal.size + taps.size - 1
    product = jnp.fft.rfft(signal, n) * jnp.fft.rfft(taps, n)
    return jnp.fft.irfft(product, n)


def image_warp(image, angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    rows, columns = jnp.meshgrid(jnp.arange(6.0), jnp.arange(6.0), indexing="ij")
    places = [c * rows - s * columns, s * rows + c * columns]
    warped = jax.scipy.ndimage.map_coordinates(image, places, order=1, mode="nearest")
    return warped, jax.image.resize(image, (9, 4), "bicubic")


def metropolis(key):
    """A chain for each key, with vmap over keys."""

    def chain(key):
        def step(x, key):
            a, b = jax.random.split(key)
            proposal = x + jax.random.normal(a)
            accept = jnp.log(jax.random.uniform(b)) < 0.5 * (x**2 - proposal**2)
            return jnp.where(accept, proposal, x), accept

        return lax.scan(step, 0.0, jax.random.split(key, 6))

    return jax.vmap(chain)(jax.random.split(jax.random.wrap_key_data(key), 3))


def mixed_precision(x, w):
    h = jax.nn.gelu(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16))
    # Compiled, XLA rounds less often to bfloat16 than op by op.
    return jnp.float32(h).std(axis=-1).astype(jnp.bfloat16)


def empty(x):
    nothing = x[:0]
    return nothing.sum(axis=0), jnp.concatenate([nothing, x]), lax.map(jnp.sum, nothing)


def matrix_functions(a):
    a = a @ a.T / 6 + jnp.eye(a.shape[0])
    return jax.scipy.linalg.sqrtm(a).real, jax.scipy.linalg.expm(a), jnp.linalg.slogdet(a)


PROGRAMS = {
    "attention": (attention, (*(_normal(2, 5, 2, 4) for _ in range(3)), _RNG.random((2, 5)) < 0.8)),
    "beam search": (beam_search, (_normal(6, 6),)),
    "checkpointed gradient": (checkpointed_gradient, (_normal(3, 6, 6), X)),
    "diffusion sampler": (diffusion_sampler, (KEY, X)),
    "distinct words": (distinct_words, (np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], np.int32),)),
    "empty": (empty, (X,)),
    "game of life": (game_of_life, (_RNG.integers(0, 2, (6, 7)).astype(np.int32),)),
    "gaussian process": (gaussian_process, (_normal(6), _normal(6))),
    "graph network": (
        graph_network,
        (X, np.array([0, 1, 2, 3, 0], np.int32), np.array([1, 0, 1, 2, 2], np.int32)),
    ),
    "image warp": (image_warp, (_normal(6, 6), np.float32(0.3))),
    "kalman filter": (kalman_filter, (_normal(7),)),
    "long filter": (long_filter, (_normal(40), _normal(9))),
    "lstm": (lstm, (LSTM, _normal(5, 6))),
    "matrix functions": (matrix_functions, (_normal(4, 4),)),
    "metropolis": (metropolis, (KEY,)),
    "mixed precision": (mixed_precision, (X, _normal(6, 3))),
    "mixture of experts": (mixture_of_experts, (_normal(6, 3), _normal(3, 6, 5), _normal(8, 6))),
    "pendulum": (pendulum, (np.float32([1.0, 0.3]),)),
    "power iteration": (power_iteration, (np.abs(_normal(4, 4)),)),
    "quantised matmul": (quantised_matmul, (X, _normal(6, 3))),
    "second derivatives": (second_derivatives, (_normal(4),)),
    "taylor coefficients": (taylor_coefficients, (np.float32(0.7),)),
}
# ULPs of the largest element, where rounding is carried further than in one expression.
ULPS = {"matrix functions": 128, "gaussian process": 64, "pendulum": 64, "mixed precision": 2}


@each_lowering
@each_mode
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_jax_gives(name, mode, lowering):
    fun, args = PROGRAMS[name]
    check(fun, args, mode, lowering, ULPS.get(name, 16))
