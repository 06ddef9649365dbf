"""tf.nn: activations, softmax, losses, moments; and clipping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import special
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.derivatives import maximum, minimum, with_tangent
from tf_substrates.numpy.math.dtype_groups import FLOATS, NUMBERS, REAL_FLOATS, REALS, widened
from tf_substrates.numpy.math.elementwise import sigmoid, softplus
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.reductions import axes_of, logsumexp, one_axis
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, has_dtype, operands, require

JAX_MODE = False
if JAX_MODE:
    import jax


def _relu(x: Any) -> Any:
    return jax.nn.relu(x) if JAX_MODE else xp.maximum(x, np.zeros((), x.dtype))


_relu6 = with_tangent(
    # NumPy's clip makes float32 of bfloat16.
    lambda x: xp.minimum(xp.maximum(x, np.zeros((), x.dtype)), np.asarray(6, x.dtype)),
    lambda x, dx: xp.where((x > 0) & (x < 6), dx, xp.zeros_like(dx)),
)


def _elu(x: Any) -> Any:
    # What is not chosen must be finite, so that derivatives are.
    negative = xp.where(x < 0, x, np.zeros((), x.dtype))
    return xp.where(x < 0, xp.expm1(negative), x)


def _selu(x: Any) -> Any:
    # Klambauer et al., "Self-normalizing neural networks", 2017.
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    negative = xp.where(x < 0, x, np.zeros((), x.dtype))
    scaled = np.asarray(scale * alpha, x.dtype) * xp.expm1(negative)
    return xp.where(x < 0, scaled, np.asarray(scale, x.dtype) * x)


_ACTIVATIONS: list[tuple[str, Callable, tuple, str]] = [
    ("relu", _relu, REALS, "Relu"),
    ("relu6", _relu6, REALS, "Relu6"),
    ("elu", _elu, REAL_FLOATS, "Elu"),
    ("selu", _selu, REAL_FLOATS, "Selu"),
]


def _activation(name_of: str, function: Callable, allowed: tuple, op_name: str) -> None:
    def call(features: Any, name: Any = None) -> Any:
        return function(require(op_name, convert(features), allowed))

    named(call, name_of, f"tf.nn.{name_of}: elementwise, of {', '.join(allowed)}.")
    op(f"nn.{name_of}")(call)


for _name, _function, _allowed, _op_name in _ACTIVATIONS:
    _activation(_name, _function, _allowed, _op_name)


@op("nn.leaky_relu")
def leaky_relu(features: Any, alpha: Any = 0.2, name: Any = None) -> Any:
    x = convert(features)
    x = x.astype(np.float32) if x.dtype.kind in "iu" else x
    # TensorFlow's operation keeps the slope as float32, for float64 too.
    slope = np.float32(alpha) if isinstance(alpha, (int, float)) else convert(alpha)
    return xp.where(x > 0, x, slope.astype(x.dtype) * x)


@op("nn.crelu")
def crelu(features: Any, axis: Any = -1, name: Any = None) -> Any:
    """relu of x and of -x along an axis."""
    x = require("Relu", convert(features), REAL_FLOATS)
    return _relu(xp.concatenate([x, -x], axis))


@op("nn.gelu")
def gelu(features: Any, approximate: bool = False, name: Any = None) -> Any:
    """x times the normal distribution's probability of less than x, or its tanh approximation.

    Raises:
      ValueError: `features` is no float.
    """
    x = convert(features)
    if x.dtype.name not in REAL_FLOATS:
        raise ValueError(f"`features.dtype` must be a floating point tensor. Received: {x.dtype}")
    half, one = np.asarray(0.5, x.dtype), np.asarray(1, x.dtype)
    if approximate:
        # TensorFlow rounds this constant to float32, and the root below, for float64 too.
        inner = x + np.asarray(np.float32(0.044715), x.dtype) * x * x * x
        return half * x * (one + xp.tanh(np.asarray(np.sqrt(2 / np.pi), x.dtype) * inner))
    erf = widened(special.erf, x * np.asarray(np.float32(np.sqrt(0.5)), x.dtype))
    return half * x * (one + erf)


def _silu(features: Any, beta: Any = 1.0) -> Any:
    """x * sigmoid(beta * x)."""
    x = require("Sigmoid", convert(features), FLOATS)
    return x * sigmoid(convert(beta, dtype=x.dtype) * x)


_silu.__name__ = _silu.__qualname__ = "swish"
op("nn.silu", "nn.swish")(_silu)


def _log_softmax(x: Any, axis: int) -> Any:
    return x - logsumexp(x, (axis,), True)


@op("nn.softmax", "math.softmax")
def softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    x = require("Softmax", convert(logits), REAL_FLOATS)
    axis = one_axis(-1 if axis is None else axis, len(x.shape), "tf.nn.softmax")
    if JAX_MODE:
        return jax.nn.softmax(x, axis)
    powers = xp.exp(x - xp.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / xp.sum(powers, axis=axis, keepdims=True)


@op("nn.log_softmax", "math.log_softmax")
def log_softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    x = require("LogSoftmax", convert(logits), REAL_FLOATS)
    axis = one_axis(-1 if axis is None else axis, len(x.shape), "tf.nn.log_softmax")
    return _log_softmax(x, axis)


@op("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: Any = None
) -> Any:
    """Cross entropies of distributions `labels` and softmax(logits) along an axis."""
    x, p = operands("SoftmaxCrossEntropyWithLogits", logits, labels)
    broadcast_shapes(x.shape, p.shape, "SoftmaxCrossEntropyWithLogits")
    axis = one_axis(axis, len(x.shape), "tf.nn.softmax_cross_entropy_with_logits")
    terms = _log_softmax(x, axis)
    return -xp.sum(xp.where(p == 0, np.zeros((), x.dtype), p * terms), axis=axis)


@op("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: Any = None) -> Any:
    """Cross entropies of classes and softmax(logits) along the last axis.

    Raises:
      tf.errors.InvalidArgumentError: a label that is known is no class.
    """
    x, at = convert(logits), convert(labels)
    if isinstance(at, np.ndarray) and at.size and not (at.min() >= 0 and at.max() < x.shape[-1]):
        raise invalid_argument(
            f"Received a label value outside the valid range of [0, {x.shape[-1]}): {at.tolist()}"
        )
    terms = _log_softmax(x, len(x.shape) - 1)
    return -xp.take_along_axis(terms, at[..., None], -1)[..., 0]


@op("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: Any = None
) -> Any:
    """Cross entropies of probabilities `labels` and sigmoid(logits), elementwise.

    Raises:
      ValueError: the shapes differ.
    """
    x = require("Softplus", convert(logits), REAL_FLOATS)
    p = convert(labels, dtype=x.dtype)
    if x.shape != p.shape:
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({x.shape} vs {p.shape})."
        )
    return softplus(x) - x * p


@op("nn.l2_loss")
def l2_loss(t: Any, name: Any = None) -> Any:
    """Half the sum of squares."""
    x = require("L2Loss", convert(t), REAL_FLOATS)
    return xp.sum(x * x) / np.asarray(2, x.dtype)


@op("nn.moments")
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: Any = None) -> Any:
    """Mean and variance, computed in float32 for float16."""
    array = require("Mean", convert(x), FLOATS)
    wide = array.astype(np.float32) if array.dtype == np.float16 else array
    over = axes_of(axes, len(array.shape), "Mean")
    mean = xp.mean(wide, axis=over, keepdims=True)
    variance = xp.mean(xp.square(wide - mean), axis=over, keepdims=True)
    results = [mean, variance] if keepdims else [xp.squeeze(m, over) for m in (mean, variance)]
    return tuple(result.astype(array.dtype) for result in results)


@op("nn.batch_normalization")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: Any = None,
) -> Any:
    """(x - mean) / sqrt(variance + epsilon), scaled and moved; scale and offset may be None."""
    x = require("Rsqrt", convert(x), FLOATS)
    center, spread = convert(mean, dtype=x.dtype), convert(variance, dtype=x.dtype)
    inverse = 1 / xp.sqrt(spread + convert(variance_epsilon, hint=x.dtype))
    if scale is not None:
        inverse = inverse * convert(scale, dtype=x.dtype)
    moved = (
        -center * inverse if offset is None else convert(offset, dtype=x.dtype) - center * inverse
    )
    return (x * inverse + moved).astype(x.dtype)


@op("clip_by_value")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None) -> Any:
    """Between two limits; the larger one wins where they cross.

    Raises:
      ValueError: a limit would widen the shape.
      tf.errors.InvalidArgumentError: a limit has another dtype.
    """
    x = require("Minimum", convert(t), REALS)
    high, low = _limit("Minimum", x, clip_value_max), _limit("Maximum", x, clip_value_min)
    for limit in (low, high):
        if broadcast_shapes(x.shape, limit.shape, "ClipByValue") != x.shape:
            raise ValueError(f"Dimensions {x.shape} and {limit.shape} are not compatible")
    return maximum(minimum(x, high), low)


def _limit(op_name: str, x: Any, limit: Any) -> Any:
    """A limit in the dtype of x, which a tensor must have and a Python number must take."""
    return operands(op_name, x, limit if has_dtype(limit) else convert(limit, dtype=x.dtype))[1]


@op("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Any = None) -> Any:
    """Scaled down so that the Euclidean norm over the axes is at most `clip_norm`."""
    x = require("Sqrt", convert(t), FLOATS)
    over = axes_of(axes, len(x.shape), "Sum")
    squares = xp.sum(x * x, axis=over, keepdims=True)
    some = squares > 0
    norm = xp.where(some, xp.sqrt(xp.where(some, squares, xp.ones_like(squares))), squares)
    limit = convert(clip_norm, dtype=x.dtype)
    return x * limit / maximum(norm, limit)


@op("math.polyval")
def polyval(coeffs: Any, x: Any, name: Any = None) -> Any:
    """A polynomial of a list of coefficients, that of the highest power first.

    Raises:
      ValueError: the coefficients are no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = convert(x)
    if not coeffs:
        return xp.zeros_like(x)
    total = convert(coeffs[0], hint=x.dtype)
    for coefficient in coeffs[1:]:
        total = convert(coefficient, hint=x.dtype) + total * x
    return total


@op("math.lbeta")
def lbeta(x: Any, name: Any = None) -> Any:
    """The logarithm of the multivariate beta function over the last axis."""
    array = require("Lgamma", convert(x), REAL_FLOATS)
    parts = xp.sum(widened(special.gammaln, array), axis=-1)
    return parts - widened(special.gammaln, xp.sum(array, axis=-1))


@op("nn.bias_add")
def bias_add(value: Any, bias: Any, data_format: Any = None, name: Any = None) -> Any:
    """A vector added along the last axis, or along the second if `data_format` begins with "NC".

    Raises:
      ValueError: there is no such data format.
      tf.errors.InvalidArgumentError: the sizes or the numbers of axes do not go together.
    """
    if data_format is not None and not data_format.startswith("N"):
        raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`: {data_format!r}")
    x, vector = operands("BiasAdd", value, bias)
    require("BiasAdd", x, NUMBERS)
    if len(x.shape) < 2 or len(vector.shape) != 1:
        raise invalid_argument(
            f"Must provide a value of at least two axes and a vector: {list(x.shape)},"
            f" {list(vector.shape)} [Op:BiasAdd]"
        )
    axis = 1 if data_format is not None and data_format.startswith("NC") else len(x.shape) - 1
    if x.shape[axis] != vector.shape[0]:
        raise invalid_argument(
            f"Must provide as many biases as the last dimension of the input tensor:"
            f" {list(vector.shape)} vs. {x.shape[axis]} in {list(x.shape)} [Op:BiasAdd]"
        )
    return x + vector.reshape([-1 if i == axis else 1 for i in range(len(x.shape))])
