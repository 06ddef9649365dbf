"""tf.random.stateless_binomial, with TensorFlow's own samples.

Where few successes are expected, geometric waiting times are summed until they exceed the count;
above ten it is transformed rejection (Hörmann, "The generation of binomial random variates", 1993).
Each sample has a part of the stream of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.gamma_samples import (
    _RESERVED,
    _next,
    _tiled,
    check_ends,
    positions,
)
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, operands, require, static_shape, wrap

JAX_MODE = False
if JAX_MODE:
    import jax

_DTYPES = ("float16", "float32", "float64", "int32", "int64")
_WAITING_BELOW = 10
# Blocks of four words that TensorFlow reserves for a sample that is a number of waiting times.
_RESERVED_WAITING = 42

# log(k!) less Stirling's approximation to it, for k = 0, 1, ... 9.
_TAILS = np.array([
    0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
    0.01664469118982119, 0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
    0.009255462182712733, 0.008330563433362871,
])  # fmt: skip


@op("random.stateless_binomial")
def stateless_binomial(
    shape: Any,
    seed: Any,
    counts: Any,
    probs: Any,
    output_dtype: Any = dtypes.int32,
    name: Any = None,
) -> Any:
    """Samples of Binomial(counts, probs), in a shape that ends as these broadcast.

    They are TensorFlow's own. Without 64-bit types, JAX computes in float32, where a sample may
    differ by one.

    Raises:
      tf.errors.InvalidArgumentError: the seed is not two integers, `shape` does not end so, or
        `counts` and `probs` have two dtypes.
    """
    wanted, dims = dtypes.numpy_dtype(output_dtype), static_shape(shape)
    require("StatelessRandomBinomial", np.zeros((), wanted), _DTYPES)
    probability = convert(probs, hint=np.float32)
    count, probability = operands(
        "StatelessRandomBinomial", wrap(convert(counts, hint=probability.dtype)), wrap(probability)
    )
    require("StatelessRandomBinomial", count, _DTYPES)
    below = broadcast_shapes(count.shape, probability.shape, "StatelessRandomBinomial")
    check_ends(dims, below)
    size, each = math.prod(dims), math.prod(below)
    if size == 0:
        return xp.zeros(dims, wanted)
    position = xp.asarray(positions(size, each).astype(np.uint32))
    wide = xp.zeros((), float).dtype  # without 64-bit types JAX has float32
    n, p = (
        _tiled(xp.broadcast_to(x, below).astype(wide), size, each) for x in (count, probability)
    )
    return _drawn(seed, position, n, p).astype(wanted).reshape(dims)


def _drawn(seed: Any, position: Any, n: Any, p: Any) -> Any:
    """One sample for each count and probability, by its position in the stream."""
    turned = p > 0.5
    p = xp.where(turned, 1 - p, p)
    waiting = n * p < _WAITING_BELOW
    reserved = xp.where(waiting, np.uint32(_RESERVED_WAITING), np.uint32(_RESERVED))
    # Hörmann's coefficients, of arguments that they are meant for.
    many, chance = xp.where(waiting, 40.0, n), xp.where(waiting, 0.5, p)
    deviation = xp.sqrt(many * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    c = many * chance + 0.5
    surely = 0.92 - 4.2 / b
    odds = chance / (1 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = xp.floor((many + 1) * chance)
    log_failure = xp.log1p(-p)

    def step(state: tuple) -> tuple:
        at, uniforms, left, waited, done, value = state
        at, uniforms, left, u = _next(seed, at, uniforms, left, ~done)
        at, uniforms, left, v = _next(seed, at, uniforms, left, ~done & ~waiting)
        # Waiting times.
        waited = xp.where(waiting, waited + xp.ceil(xp.log(u) / log_failure), waited)
        exceeded = waiting & ~(waited <= n)
        value = xp.where(waiting & ~done & ~exceeded, value + 1, value)
        # Transformed rejection.
        u = u - 0.5
        shifted = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / shifted + b) * u + c)
        quickly = (shifted >= 0.07) & (v <= surely)
        inside = (k >= 0) & (k <= many)
        k_inside = xp.where(inside, k, 0)
        ratio = xp.log(v * alpha / (a / (shifted * shifted) + b))
        accepted = inside & (ratio <= _log_ratio(k_inside, many, mode, odds))
        taken = ~waiting & ~done & (quickly | accepted)
        value = xp.where(taken, k, value)
        return at, uniforms, left, waited, done | exceeded | taken, value

    pair = xp.zeros((2, *p.shape), p.dtype)
    impossible = (n <= 0) | (p <= 0) | ~(p >= 0)
    start = (position * reserved, pair, xp.zeros(p.shape, np.int32), xp.zeros_like(p), impossible)
    state: tuple = (*start, xp.zeros_like(p))
    if JAX_MODE:
        value = jax.lax.while_loop(lambda s: ~xp.all(s[4]), step, state)[5]
    else:
        with np.errstate(all="ignore"):
            while not state[4].all():
                state = step(state)
        value = state[5]
    value = xp.where(turned & (n > 0), n - value, value)
    return xp.where(xp.isnan(p), xp.nan, value)


def _log_ratio(k: Any, n: Any, mode: Any, odds: Any) -> Any:
    """The logarithm of the probability of k successes over that of the most frequent number."""
    return (
        (mode + 0.5) * xp.log((mode + 1) / (odds * (n - mode + 1)))
        + (n + 1) * xp.log((n - mode + 1) / (n - k + 1))
        + (k + 0.5) * xp.log(odds * (n - k + 1) / (k + 1))
        + _tail(mode)
        + _tail(n - mode)
        - _tail(k)
        - _tail(n - k)
    )


def _tail(k: Any) -> Any:
    squared = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / squared) / squared) / (k + 1)
    small = xp.asarray(_TAILS, series.dtype)[xp.clip(k, 0, 9).astype(np.int32)]
    return xp.where(k <= 9, small, series)
