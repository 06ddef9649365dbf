"""tf.nn: moments with weights and in parts, normalization of responses, clipping by a norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.linalg import global_norm
from tf_substrates.numpy.math.dtype_groups import FLOATS, NUMBERS
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.neural_networks import batch_normalization
from tf_substrates.numpy.reductions import axes_of
from tf_substrates.numpy.tensors import convert, is_tensor, listed, operands, require, wrap


@op("math.zero_fraction", "nn.zero_fraction")
def zero_fraction(value: Any, name: Any = None) -> Any:
    """The share of zeros among all elements, float32; NaN of none."""
    x = require("NotEqual", convert(value), NUMBERS)
    size = int(np.prod(x.shape))
    zeros = xp.sum(x == np.zeros((), x.dtype), dtype=np.int32).astype(np.float32)
    return zeros / np.asarray(size, np.float32)


@op("nn.weighted_moments")
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: Any = None
) -> Any:
    """Mean and variance with a weight for each element; weights are broadcast."""
    array = require("Mul", convert(x), FLOATS)
    weights = convert(frequency_weights, hint=array.dtype)
    weights = weights if weights.dtype == array.dtype else weights.astype(array.dtype)
    wide = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype
    values, weights = array.astype(wide), weights.astype(wide)
    over = axes_of(axes, len(array.shape), "Sum")
    total = xp.sum(xp.broadcast_to(weights, array.shape), axis=over, keepdims=True)
    mean = xp.sum(values * weights, axis=over, keepdims=True) / total
    variance = xp.sum(weights * xp.square(values - mean), axis=over, keepdims=True) / total
    results = [mean, variance] if keepdims else [xp.squeeze(m, over) for m in (mean, variance)]
    return tuple(result.astype(array.dtype) for result in results)


@op("nn.sufficient_statistics")
def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: Any = None
) -> Any:
    """The number of elements, their sum and that of their squares, about `shift` or about 0."""
    array = require("Sum", convert(x), FLOATS)
    over = axes_of(axes, len(array.shape), "Sum")
    count = np.asarray(int(np.prod([array.shape[axis] for axis in over])), array.dtype)
    about = None if shift is None else operands("Sub", wrap(array), wrap(convert(shift)))[1]
    moved = array if about is None else array - about
    sums = [xp.sum(moved, axis=over, keepdims=keepdims)]
    sums.append(xp.sum(moved * moved, axis=over, keepdims=keepdims))
    return (count, *sums, about)


@op("nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: Any = None
) -> Any:
    """Mean and variance of sums, as of tf.nn.sufficient_statistics."""
    share = 1 / convert(counts)
    sums, squares = (listed("Mul", (given, wrap(share)))[0] for given in (mean_ss, variance_ss))
    mean = shifted = sums * share
    if shift is not None:
        mean = shifted + convert(shift, dtype=sums.dtype)
    return mean, squares * share - shifted * shifted


@op("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: Any = None,
) -> Any:
    """tf.nn.batch_normalization by another order of arguments; gamma only if asked for."""
    scale = gamma if scale_after_normalization else None
    return convert(batch_normalization(input, mean, variance, beta, scale, variance_epsilon))


@op("nn.local_response_normalization", "nn.lrn")
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: Any = None,
) -> Any:
    """Divided by (bias + alpha * the sum of squares of neighbouring channels) to the power beta.

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.
    An array of another dtype, which is no tensor, becomes float32.

    Raises:
      tf.errors.InvalidArgumentError: the input has not four axes.
    """
    allowed = ("bfloat16", "float16", "float32")
    x = convert(input)
    if x.dtype.name not in allowed and not is_tensor(input):
        x = x.astype(np.float32)
    x = require("LRN", x, allowed)
    if len(x.shape) != 4:
        raise invalid_argument("in must be 4-dimensional [Op:LRN]")
    radius = int(depth_radius)
    channels = x.shape[-1]
    squares = xp.pad(xp.square(x.astype(np.float32)), [(0, 0)] * 3 + [(radius, radius)])
    sums = sum(squares[..., k : k + channels] for k in range(2 * radius + 1))
    scale = np.float32(bias) + np.float32(alpha) * sums
    return (x.astype(np.float32) * scale ** np.float32(-beta)).astype(x.dtype)


@op("clip_by_global_norm")
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: Any = None) -> Any:
    """Tensors scaled down together, so that their common Euclidean norm is at most `clip_norm`.

    Args:
      t_list: tensors, and None where there is none.
      clip_norm: the limit, a scalar.
      use_norm: the norm, if it is known.

    Returns:
      The list of scaled tensors, and the norm. All are NaN where the norm is infinite.

    Raises:
      TypeError: `t_list` is no sequence.
    """
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
    tensors = list(t_list)
    if use_norm is None and all(tensor is None for tensor in tensors):
        return tensors, np.float32(0)
    norm = convert(global_norm(tensors) if use_norm is None else use_norm)
    limit = convert(clip_norm, dtype=norm.dtype)
    one = np.ones((), norm.dtype)
    scale = limit * xp.minimum(one / norm, one / limit)
    scale = xp.where(xp.isfinite(norm), scale, np.asarray(np.nan, norm.dtype))
    clipped = [
        None if tensor is None else convert(tensor) * scale.astype(convert(tensor).dtype)
        for tensor in tensors
    ]
    return clipped, norm
