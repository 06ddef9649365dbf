"""tf.random.stateless_poisson and samples of truncated normal distributions.

Poisson samples are TensorFlow's own: below a rate of 10 by products of uniform numbers (Knuth, "The
art of computer programming", volume 2), above by transformed rejection (Hörmann, "The transformed
rejection method for generating Poisson random variables", 1993). Each sample has a part of the
stream of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.gamma_samples import (
    _RESERVED,
    _next,
    _tiled,
    check_ends,
    positions,
)
from tf_substrates.numpy.namespaces import EXPORTS, op
from tf_substrates.numpy.random import _GENERATORS, _uniform
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, require, static_shape

JAX_MODE = False
if JAX_MODE:
    import jax

_KNUTH_BELOW = 10


@op("random.stateless_poisson")
def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: Any = None
) -> Any:
    """Samples of Poisson(lam), in a shape that ends as `lam`'s; TensorFlow's own.

    Without 64-bit types, JAX computes in float32, where a sample may differ by one.

    Raises:
      tf.errors.InvalidArgumentError: the seed is not two integers, or `shape` does not end so.
    """
    wanted, dims = dtypes.numpy_dtype(dtype), static_shape(shape)
    require(
        "StatelessRandomPoisson",
        np.zeros((), wanted),
        ("float16", "float32", "float64", "int32", "int64"),
    )
    rates = convert(lam)
    below = tuple(rates.shape)
    check_ends(dims, below)
    count, each = math.prod(dims), math.prod(below)
    if count == 0:
        return xp.zeros(dims, wanted)
    wide = xp.zeros((), float).dtype
    first = xp.asarray((positions(count, each) * _RESERVED).astype(np.uint32))
    drawn = _drawn(seed, first, _tiled(rates.astype(wide), count, each))
    return drawn.astype(wanted).reshape(dims)


@op("random.poisson")
def poisson(
    shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Any = None, name: Any = None
) -> Any:
    """Samples of Poisson(lam), of each rate `shape` of them.

    With `seed` or tf.random.set_seed they are TensorFlow's own, call after call.

    Raises:
      ValueError: inside jax.jit there is no seed.
    """
    rates = convert(lam, hint=np.float32)
    dims = (*static_shape(shape), *rates.shape)
    stream = _GENERATORS.next("poisson", dtype, seed, math.prod(dims))
    return stateless_poisson(dims, stream, rates, dtype)


def _drawn(seed: Any, first: Any, rate: Any) -> Any:
    """One sample for each rate, from the blocks that begin at `first`."""
    small = rate < _KNUTH_BELOW
    limit = xp.exp(-rate)
    large = xp.where(small, _KNUTH_BELOW, rate)
    log_rate = xp.log(large)
    b = 0.931 + 2.53 * xp.sqrt(large)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    surely = 0.9277 - 3.6224 / (b - 2)
    lgamma = EXPORTS["math.lgamma"]

    def step(state: tuple) -> tuple:
        at, uniforms, left, product, done, value = state
        at, uniforms, left, u = _next(seed, at, uniforms, left, ~done)
        at, uniforms, left, v = _next(seed, at, uniforms, left, ~done & ~small)
        # Knuth: how many factors until the product falls below exp(-rate).
        product = xp.where(small, product * u, product)
        finished = small & (product <= limit)
        value = xp.where(small & ~done & ~finished, value + 1, value)
        # Hörmann.
        u = u - 0.5
        shifted = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / shifted + b) * u + large + 0.43)
        quickly = (shifted >= 0.07) & (v <= surely)
        refused = (k < 0) | ((shifted < 0.013) & (v > shifted))
        s = xp.log(v * inverse_alpha / (a / (shifted * shifted) + b))
        t = -large + k * log_rate - convert(lgamma(xp.maximum(k, 0) + 1))
        taken = ~small & ~done & (quickly | (~refused & (s <= t)))
        value = xp.where(taken, k, value)
        return at, uniforms, left, product, done | finished | taken, value

    pair = xp.zeros((2, *rate.shape), rate.dtype)
    # TensorFlow gives no sample of what is no rate; here it is 0.
    settled = ~((rate >= 0) & xp.isfinite(rate))
    start = (first, pair, xp.zeros(rate.shape, np.int32), xp.ones_like(rate), settled)
    state: tuple = (*start, xp.zeros_like(rate))
    if JAX_MODE:
        return jax.lax.while_loop(lambda s: ~xp.all(s[4]), step, state)[5]
    with np.errstate(all="ignore"):
        while not state[4].all():
            state = step(state)
    return state[5]


@op("random.stateless_parameterized_truncated_normal")
def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: Any = None,
) -> Any:
    """Samples of normal distributions within limits, by the inverse of their distribution function.

    They are not TensorFlow's own, which draws by rejection.

    Raises:
      tf.errors.InvalidArgumentError: the seed is not two integers.
    """
    loc = convert(means)
    scale, low, high = (convert(x, dtype=loc.dtype) for x in (stddevs, minvals, maxvals))
    dims = static_shape(shape)
    below: tuple = ()
    for x in (loc, scale, low, high):
        below = broadcast_shapes(below, tuple(x.shape), "BroadcastTo")
    if dims[len(dims) - len(below) :] != tuple(below):
        raise invalid_argument(f"Shape must end with {list(below)}, got {list(dims)}")
    ndtr, ndtri = EXPORTS["math.erfc"], EXPORTS["math.ndtri"]
    # In the tail that is nearer, where probabilities are small and exact.
    a, b = (low - loc) / scale, (high - loc) / scale
    turned = a + b > 0
    a, b = xp.where(turned, -b, a), xp.where(turned, -a, b)
    half = np.asarray(np.sqrt(0.5), loc.dtype)
    below_a, below_b = (convert(ndtr(-x * half)) / 2 for x in (a, b))
    unit = _uniform(seed, dims, np.dtype(loc.dtype))
    drawn = convert(ndtri(below_a + unit * (below_b - below_a)))
    drawn = xp.clip(drawn, a, b)
    return xp.where(turned, -drawn, drawn) * scale + loc
