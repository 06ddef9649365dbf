"""Those of tf.raw_ops that libraries call where no other function has what they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes, linalg
from tf_substrates.numpy.arrays.selection import UniqueWithCounts, unique_along
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.gamma_derivatives import igamma_grad_a, random_gamma_grad
from tf_substrates.numpy.namespaces import EXPORTS, export, op
from tf_substrates.numpy.reductions import one_axis
from tf_substrates.numpy.shapes import broadcast_shapes
from tf_substrates.numpy.tensors import convert, operands, require, static_value, wrap

JAX_MODE = False
if JAX_MODE:
    import jax


@export("raw_ops.MatrixDiagPartV2")
def MatrixDiagPartV2(input: Any, k: Any, padding_value: Any, name: Any = None) -> Any:
    return linalg.diag_part(input, k=k, padding_value=padding_value)


@op("raw_ops.BroadcastGradientArgs", static=True)
def BroadcastGradientArgs(s0: Any, s1: Any, name: Any = None) -> tuple:
    """The axes over which gradients of two operands are summed, which broadcast to one shape."""
    shapes = [static_value(convert(s), "A shape").astype(int).tolist() for s in (s0, s1)]
    if shapes[0] == shapes[1]:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(shape)) + shape for shape in shapes]
    axes: list[list[int]] = [[], []]
    for axis, sizes in enumerate(zip(*padded, strict=True)):
        for side, size in enumerate(sizes):
            missing = axis < rank - len(shapes[side])
            if missing or (size == 1 and (sizes[1 - side] != 1 or len(set(sizes)) == 1)):
                axes[side].append(axis)
    return tuple(np.array(found, np.int32) for found in axes)


@op("raw_ops.UniqueWithCountsV2")
def UniqueWithCountsV2(x: Any, axis: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    """The different slices along an axis in order of appearance, and how often each is there.

    Without an axis (an empty vector) they are the elements of a vector.

    Raises:
      tf.errors.InvalidArgumentError: there is no axis, and `x` is no vector.
    """
    along = np.ravel(static_value(convert(axis, hint=np.int64), "An axis"))
    if not along.size:
        return EXPORTS["unique_with_counts"](x, out_idx)
    values = static_value(convert(x), "The number of slices that UniqueWithCountsV2 gives")
    y, index, counts = unique_along(values, one_axis(along[0], values.ndim, "UniqueWithCountsV2"))
    wanted = dtypes.numpy_dtype(out_idx)
    return UniqueWithCounts(y, index.astype(wanted), counts.astype(wanted))


@op("raw_ops.IgammaGradA")
def IgammaGradA(a: Any, x: Any, name: Any = None) -> Any:
    """The derivative of tf.math.igamma in `a`, of float32 and float64."""
    return _gamma_derivative("IgammaGradA", a, x)


@op("raw_ops.RandomGammaGrad")
def RandomGammaGrad(alpha: Any, sample: Any, name: Any = None) -> Any:
    """The derivative of a sample of the gamma distribution in `alpha`, of float32 and float64."""
    return _gamma_derivative("RandomGammaGrad", alpha, sample)


def _gamma_derivative(op_name: str, a: Any, x: Any) -> Any:
    a, x = operands(op_name, a, x)
    dtype = require(op_name, a, ("float32", "float64")).dtype
    broadcast_shapes(a.shape, x.shape, op_name)
    a, x = xp.broadcast_arrays(a, x)
    if JAX_MODE:
        names = {"IgammaGradA": "igamma_grad_a", "RandomGammaGrad": "random_gamma_grad"}
        found = getattr(jax.lax, names[op_name])(a, x)
    else:
        functions = {"IgammaGradA": igamma_grad_a, "RandomGammaGrad": random_gamma_grad}
        found = functions[op_name](a.astype(np.float64), x.astype(np.float64)).astype(dtype)
    # TensorFlow's limits, where JAX and the series have NaN.
    return xp.where(xp.isinf(a) ^ xp.isinf(x), xp.zeros_like(found), found)


@export("raw_ops.ResourceApplyGradientDescent")
def ResourceApplyGradientDescent(
    var: Any, alpha: Any, delta: Any, use_locking: bool = False, name: Any = None
) -> None:
    """Takes `alpha * delta` from a tf.Variable; `var` is its handle, which is the variable here.

    Raises:
      tf.errors.InvalidArgumentError: `delta` has another shape.
    """
    step = convert(delta, var.dtype)
    if step.shape != tuple(var.shape):
        raise invalid_argument(
            "var and delta do not have the same shape"
            f" {list(var.shape)} {list(step.shape)} [Op:ResourceApplyGradientDescent]"
        )
    var.assign_sub(wrap(step * convert(alpha, var.dtype)))
