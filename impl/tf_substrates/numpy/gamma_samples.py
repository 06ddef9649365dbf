"""tf.random.stateless_gamma, with TensorFlow's own samples.

Each sample is drawn by rejection (Marsaglia and Tsang, "A simple method for generating gamma
variables", 2000) from a part of the stream of its own, so that it does not depend on how many draws
the others take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.random import _GENERATORS, blocks_of_seed
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, require, static_shape

JAX_MODE = False
if JAX_MODE:
    import jax

# Blocks of four words that TensorFlow reserves for a sample.
_RESERVED = 256


@op("random.stateless_gamma")
def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
) -> Any:
    """Samples of Gamma(alpha, rate beta), in a shape that ends as `alpha` and `beta` broadcast.

    On JAX they have derivatives in `alpha` and `beta`, as TensorFlow's do.

    Raises:
      tf.errors.InvalidArgumentError: the seed is not two integers, or `shape` does not end so.
    """
    wanted, dims = dtypes.numpy_dtype(dtype), static_shape(shape)
    require("StatelessRandomGammaV3", np.zeros((), wanted), ("float16", "float32", "float64"))
    alpha = convert(alpha, dtype=wanted)
    beta = convert(1 if beta is None else beta, dtype=wanted)
    below = broadcast_shapes(alpha.shape, beta.shape, "BroadcastTo")
    check_ends(dims, below)
    shapes = xp.broadcast_to(alpha, below)
    samples = _differentiable(seed, dims, shapes)
    return xp.maximum(np.asarray(np.finfo(wanted).tiny, wanted), samples / beta)


@op("random.gamma")
def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: Any = None,
) -> Any:
    """Samples of Gamma(alpha, rate beta), of each alpha and beta `shape` of them.

    With `seed` or tf.random.set_seed they are TensorFlow's own, call after call.

    Raises:
      ValueError: inside jax.jit there is no seed.
    """
    wanted = dtypes.numpy_dtype(dtype)
    alpha = convert(alpha, dtype=wanted)
    beta = convert(1 if beta is None else beta, dtype=wanted)
    below = broadcast_shapes(alpha.shape, beta.shape, "BroadcastTo")
    dims = (*static_shape(shape), *below)
    stream = _GENERATORS.next("gamma", dtype, seed, math.prod(dims))
    return stateless_gamma(dims, stream, alpha, beta, dtype)


def _differentiable(seed: Any, dims: tuple, alpha: Any) -> Any:
    if not JAX_MODE:
        return _samples(seed, dims, alpha)
    drawn = jax.custom_jvp(lambda alpha: _samples(seed, dims, alpha))

    @drawn.defjvp
    def tangent(primals: tuple, tangents: tuple) -> tuple:
        samples = drawn(primals[0])
        slope = jax.lax.random_gamma_grad(xp.broadcast_to(primals[0], dims), samples)
        return samples, slope * tangents[0]

    return drawn(alpha)


def _samples(seed: Any, dims: tuple, alpha: Any) -> Any:
    count, each = math.prod(dims), math.prod(alpha.shape)
    if count == 0:
        return xp.zeros(dims, alpha.dtype)
    wide = alpha.astype(xp.zeros((), float).dtype)  # without 64-bit types JAX has float32
    drawn = _rejected(
        seed, (positions(count, each) * _RESERVED).astype(np.uint32), _tiled(wide, count, each)
    )
    return drawn.astype(alpha.dtype).reshape(dims)


def check_ends(dims: Sequence[int], below: Sequence[int]) -> None:
    """Refuses a shape of samples that does not end as that of the parameters.

    Raises:
      tf.errors.InvalidArgumentError: it does not.
    """
    if tuple(dims[len(dims) - len(below) :]) != tuple(below):
        raise invalid_argument(
            f"Shape passed in must end with broadcasted shape {list(below)}, got {list(dims)}"
        )


def positions(count: int, each: int) -> np.ndarray:
    """The places of samples in the stream, int64, in the order of the result.

    The samples of one parameter follow each other in the stream, and lie `each` apart in the
    result.
    """
    index = np.arange(count, dtype=np.int64)
    return (index % each) * (count // each) + index // each


def _tiled(alpha: Any, count: int, each: int) -> Any:
    return xp.tile(alpha.reshape(-1), count // each)


def _rejected(seed: Any, first: Any, alpha: Any) -> Any:
    """One sample for each alpha, from the blocks that begin at `first`."""
    small = alpha < 1
    d = alpha + xp.where(small, 2 / 3, -1 / 3)
    c = 1 / 3 / xp.sqrt(d)

    def step(state: tuple) -> tuple:
        at, normals, normals_left, uniforms, uniforms_left, done, value = state
        # A pair is taken from its end, and a new one drawn when it is used up.
        fresh = ~done & (normals_left == 0)
        normals = xp.where(fresh, _normals(seed, at), normals)
        at, normals_left = at + fresh.astype(np.uint32), xp.where(fresh, 2, normals_left)
        normals_left = normals_left - (~done).astype(np.int32)
        x = xp.where(normals_left == 1, normals[1], normals[0])
        v = 1 + c * x
        tried = ~done & (v > 0)
        v = xp.where(v > 0, v * v * v, 1)
        at, uniforms, uniforms_left, u = _next(seed, at, uniforms, uniforms_left, tried)
        squared = x * x
        accepted = u < 1 - 0.0331 * squared * squared
        accepted = accepted | (xp.log(u) < 0.5 * squared + d * (1 - v + xp.log(v)))
        taken = tried & accepted
        value = xp.where(taken, d * v, value)
        return at, normals, normals_left, uniforms, uniforms_left, done | taken, value

    zeros = xp.zeros(alpha.shape, np.int32)
    pair = xp.zeros((2, *alpha.shape), alpha.dtype)
    # TensorFlow never accepts what is no positive number; here it is NaN.
    settled = ~(alpha > 0)
    value = xp.where(settled, np.nan, xp.zeros_like(alpha))
    # Exponential samples are a logarithm each.
    exponential = alpha == 1
    value = xp.where(exponential, -xp.log1p(-_uniforms(seed, first)[1]), value)
    settled = settled | exponential
    state: tuple = (xp.asarray(first), pair, zeros, pair, zeros, settled, value)
    if JAX_MODE:
        state = jax.lax.while_loop(lambda s: ~xp.all(s[5]), step, state)
    else:
        while not state[5].all():
            state = step(state)
    at, _, _, uniforms, uniforms_left, _, value = state
    boost = _next(seed, at, uniforms, uniforms_left, small)[3]
    return xp.where(small, value * xp.power(boost, 1 / alpha), value)


def _next(seed: Any, at: Any, uniforms: Any, left: Any, wanted: Any) -> tuple:
    fresh = wanted & (left == 0)
    uniforms = xp.where(fresh, _uniforms(seed, at), uniforms)
    at, left = at + fresh.astype(np.uint32), xp.where(fresh, 2, left)
    left = left - wanted.astype(np.int32)
    return at, uniforms, left, xp.where(left == 1, uniforms[1], uniforms[0])


def _uniforms(seed: Any, blocks: Any) -> Any:
    """Two doubles of each block."""
    words = blocks_of_seed(seed, blocks).reshape(-1, 4)
    dtype = xp.zeros((), float).dtype  # without 64-bit types JAX has float32
    high, low = words[:, 0::2] & np.uint32(0xFFFFF), words[:, 1::2]
    return (high.astype(dtype) * 2.0**-20 + low.astype(dtype) * 2.0**-52).T


def _normals(seed: Any, blocks: Any) -> Any:
    first, second = _uniforms(seed, blocks)
    radius = xp.sqrt(-2 * xp.log(xp.maximum(first, np.asarray(1e-7, first.dtype))))
    angle = np.asarray(2 * np.pi, first.dtype) * second
    return xp.stack([xp.sin(angle) * radius, xp.cos(angle) * radius])
