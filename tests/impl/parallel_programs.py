"""Programs for meshes as their users write them: what each device does, and what they exchange.

Each maker takes the number of devices and gives the program and its arguments. A program of a mesh
of one device, or of a mesh that no machine has, is made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def mesh_of(**axes: int) -> Mesh:
    """A mesh of the first devices, with these axes."""
    sizes, names = tuple(axes.values()), tuple(axes)
    devices = jax.devices()[: int(np.prod(sizes))]
    return jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names), devices=devices)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def _mlp(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


def data_parallel(n: int) -> Program:
    """A training step by pmap: a part of the batch for each device, gradients by pmean."""

    def step(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((_mlp(params, x) - y) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        gradients = lax.pmean(gradients, "batch")
        updated = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return updated, lax.pmean(value, "batch")

    params = {"w1": normal(4, 8), "b1": normal(8), "w2": normal(8, 2)}
    replicated = jax.tree.map(lambda p: np.stack([p] * n), params)
    return jax.pmap(step, axis_name="batch"), (replicated, normal(n, 3, 4), normal(n, 3, 2))


def tensor_parallel(n: int) -> Program:
    """An MLP whose hidden units are spread over devices, the batch over others."""
    mesh = mesh_of(data=n // 2, model=2) if n > 1 else mesh_of(data=1, model=1)

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(None, "model"), P("model"), P("model", None), P("data", None)),
        out_specs=P("data", None),
    )
    def mlp(w1: Any, b1: Any, w2: Any, x: Any) -> Any:
        return lax.psum(jax.nn.gelu(x @ w1 + b1) @ w2, "model")

    return mlp, (normal(4, 8), normal(8), normal(8, 4, seed=1), normal(2 * n, 4))


def ring_attention(n: int) -> Program:
    """Attention over a sequence in parts: keys and values go round, the softmax is kept running."""
    ring = [(i, (i + 1) % n) for i in range(n)]

    @partial(
        jax.shard_map,
        mesh=mesh_of(sequence=n),
        in_specs=P(None, "sequence"),
        out_specs=P(None, "sequence"),
    )
    def attention(q: Any, k: Any, v: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            total, largest, weight, k, v = carry
            scores = jnp.einsum("bqhd,bkhd->bqhk", q, k) / np.sqrt(q.shape[-1])
            larger = jnp.maximum(largest, scores.max(-1))
            scale, part = jnp.exp(largest - larger), jnp.exp(scores - larger[..., None])
            total = total * scale[..., None] + jnp.einsum("bqhk,bkhd->bqhd", part, v)
            k, v = (lax.ppermute(x, "sequence", ring) for x in (k, v))
            return (total, larger, weight * scale + part.sum(-1), k, v), None

        zeros = jnp.zeros_like(q)
        start = (zeros, zeros[..., 0] - jnp.inf, zeros[..., 0], k, v)
        (total, _, weight, *_), _ = lax.scan(step, start, None, length=n)
        return total / weight[..., None]

    return attention, tuple(normal(2, 2 * n, 2, 4, seed=i) for i in range(3))


def mixture_of_experts(n: int) -> Program:
    """An expert on each device: tokens go to their experts and back by all_to_all."""
    capacity = 4

    @partial(
        jax.shard_map,
        mesh=mesh_of(expert=n),
        in_specs=(P(), P("expert"), P("expert")),
        out_specs=P("expert"),
    )
    def layer(gate: Any, w: Any, x: Any) -> Any:
        scores = jax.nn.softmax(x @ gate)
        expert = scores.argmax(-1)
        chosen = jax.nn.one_hot(expert, n)
        place = (jnp.cumsum(chosen, 0) * chosen - 1).astype(jnp.int32)
        dispatch = jax.nn.one_hot(place, capacity) * chosen[..., None]
        sent = jnp.einsum("tec,td->ecd", dispatch, x)
        received = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
        done = jax.nn.relu(received @ w[0])
        returned = lax.all_to_all(done, "expert", 0, 0, tiled=True)
        return jnp.einsum("tec,ecd,te->td", dispatch, returned, scores)

    return layer, (normal(4, n), normal(n, 4, 4), normal(6 * n, 4))


def pipeline(n: int) -> Program:
    """A layer on each device: microbatches move to the next device at each step."""
    forward = [(i, i + 1) for i in range(n - 1)]
    microbatches = 3

    @partial(
        jax.shard_map,
        mesh=mesh_of(stage=n),
        in_specs=(P("stage"), P()),
        out_specs=P(),
        check_vma=False,
    )
    def run(w: Any, x: Any) -> Any:
        stage = lax.axis_index("stage")

        def step(state: Any, i: Any) -> Any:
            entering = x[jnp.minimum(i, microbatches - 1)]
            state = jnp.where(stage == 0, entering, state)
            state = jnp.tanh(state @ w[0])
            return lax.ppermute(state, "stage", forward) if forward else state, state

        _, states = lax.scan(step, jnp.zeros_like(x[0]), jnp.arange(microbatches + n - 1))
        done = jnp.where(stage == n - 1, states[n - 1 :], 0)
        return lax.psum(done, "stage")

    return run, (normal(n, 4, 4), normal(microbatches, 2, 4))


def fully_sharded(n: int) -> Program:
    """A training step whose parameters are in parts: gathered to compute, gradients scattered."""

    @partial(
        jax.shard_map,
        mesh=mesh_of(fsdp=n),
        in_specs=(P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P("fsdp"), P()),
        check_vma=False,
    )
    def step(w: Any, x: Any, y: Any) -> Any:
        whole = lax.all_gather(w, "fsdp", tiled=True)
        value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(whole)
        part = lax.psum_scatter(gradient, "fsdp", scatter_dimension=0, tiled=True) / n
        return w - 0.1 * part, lax.pmean(value, "fsdp")

    return step, (normal(2 * n, 3), normal(2 * n, 2 * n), normal(2 * n, 3, seed=1))


def halo_exchange(n: int) -> Program:
    """A stencil: the rows at the border of a part come from the neighbours."""
    down, up = [(i, (i + 1) % n) for i in range(n)], [(i, (i - 1) % n) for i in range(n)]

    @partial(jax.shard_map, mesh=mesh_of(rows=n), in_specs=P("rows"), out_specs=P("rows"))
    def diffuse(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            above = lax.ppermute(u[-1:], "rows", down)
            below = lax.ppermute(u[:1], "rows", up)
            padded = jnp.concatenate([above, u, below])
            return u + 0.1 * (padded[:-2] + padded[2:] - 2 * u)

        return lax.fori_loop(0, 5, step, u)

    return diffuse, (normal(3 * n, 5),)


PROGRAMS = {
    maker.__name__: maker
    for maker in (
        data_parallel,
        tensor_parallel,
        ring_attention,
        mixture_of_experts,
        pipeline,
        fully_sharded,
        halo_exchange,
    )
}
