"""tf.nn: losses of logits and rates, dropout, lookups of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.arrays.gathering import gather
from tf_substrates.numpy.math.dtype_groups import REAL_FLOATS
from tf_substrates.numpy.namespaces import EXPORTS, op
from tf_substrates.numpy.neural_networks import clip_by_norm
from tf_substrates.numpy.tensors import convert, listed, require, static_shape


@op("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: Any = None
) -> Any:
    """Cross entropies of probabilities `labels` and sigmoid(logits), positive ones weighted.

    Raises:
      ValueError: the shapes differ.
    """
    x = require("Softplus", convert(logits), REAL_FLOATS)
    p = convert(labels, dtype=x.dtype)
    _require_same_shape("logits", x, "labels", p)
    weight = 1 + (convert(pos_weight, dtype=x.dtype) - 1) * p
    rest = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, np.zeros((), x.dtype))
    return (1 - p) * x + weight * rest


def _require_same_shape(name: str, x: Any, other: str, y: Any) -> None:
    if x.shape != y.shape:
        raise ValueError(
            f"`{name}` and `{other}` must have the same shape, received ({x.shape} vs {y.shape})."
        )


@op("nn.log_poisson_loss")
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: Any = None
) -> Any:
    """exp(c) - z c of log rates `c` and counts `z`, with Stirling's term of log z! if asked for.

    Raises:
      ValueError: the shapes differ.
    """
    c = require("Exp", convert(log_input), REAL_FLOATS)
    z = convert(targets, dtype=c.dtype)
    _require_same_shape("log_input", c, "targets", z)
    loss = xp.exp(c) - c * z
    if not compute_full_loss:
        return loss
    some = (z >= 0) & (z <= 1)
    inside = xp.where(some, xp.ones_like(z), z)
    half, two_pi = np.asarray(0.5, c.dtype), np.asarray(2 * np.pi, c.dtype)
    stirling = inside * xp.log(inside) - inside + half * xp.log(two_pi * inside)
    return loss + xp.where(some, xp.zeros_like(z), stirling)


@op("nn.embedding_lookup")
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: Any = None) -> Any:
    """Rows of a table, or of tables that hold its rows one after the other.

    Args:
      params: a table `[rows, ...]`, or a list of tables.
      ids: the rows wanted.
      max_norm: if given, rows are scaled down to this Euclidean norm.

    Raises:
      ValueError: there is no table.
    """
    tables = list(params) if isinstance(params, (list, tuple)) else [params]
    if not tables or params is None:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    table = tables[0] if len(tables) == 1 else xp.concatenate(listed("ConcatV2", tables), 0)
    at = convert(ids)
    rows = convert(gather(table, at))
    if max_norm is None:
        return rows
    return convert(clip_by_norm(rows, max_norm, axes=list(range(at.ndim, rows.ndim))))


def _dropped(x: Any, rate: Any, noise_shape: Any, draw: Callable[..., Any]) -> Any:
    """What is kept, scaled by 1 / (1 - rate); a rate of 0 keeps all.

    Args:
      x: the tensor.
      rate: the share that is dropped.
      noise_shape: that of the numbers drawn; by default the tensor's.
      draw: gives uniform numbers of a shape and a `dtype`.
    """
    array = convert(x)
    if array.dtype.name not in REAL_FLOATS:
        raise ValueError(
            "`x.dtype` must be a floating point tensor as `x` will be scaled. Received:"
            f" x.dtype={array.dtype}"
        )
    if isinstance(rate, (int, float)):
        if not 0 <= rate < 1:
            raise ValueError(
                "`rate` must be a scalar tensor or a float in the range [0, 1). Received:"
                f" rate={rate}"
            )
        if rate == 0:
            return array
    shape = array.shape if noise_shape is None else static_shape(noise_shape)
    noise = convert(draw(shape, dtype=array.dtype))
    share = convert(rate, dtype=array.dtype)
    scaled = array * (1 / (1 - share)).astype(array.dtype)
    return xp.where(noise >= share, scaled, xp.zeros_like(scaled))


@op("nn.dropout")
def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: Any = None) -> Any:
    """Each element 0 with probability `rate`; drawn as tf.random.uniform draws.

    Raises:
      ValueError: `x` is no float, or the rate is not in [0, 1).
    """
    draw = functools.partial(EXPORTS["random.uniform"], seed=seed)
    return _dropped(x, rate, noise_shape, draw)


@op("nn.experimental.stateless_dropout")
def stateless_dropout(
    x: Any,
    rate: Any,
    seed: Any,
    rng_alg: Any = None,
    noise_shape: Any = None,
    name: Any = None,
) -> Any:
    """The same of the numbers that tf.random.stateless_uniform gives for the seed."""
    alg = rng_alg or "auto_select"
    draw = functools.partial(EXPORTS["random.stateless_uniform"], seed=seed, alg=alg)
    return _dropped(x, rate, noise_shape, draw)
