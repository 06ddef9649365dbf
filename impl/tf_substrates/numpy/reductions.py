"""Reductions, cumulative operations, segments and what sorts."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.math.derivatives import sqrt
from tf_substrates.numpy.math.dtype_groups import (
    BOOL,
    FLOATS,
    NUMBERS,
    REAL_FLOATS,
    REALS,
    like,
)
from tf_substrates.numpy.namespaces import named, op
from tf_substrates.numpy.tensors import convert, has_dtype, operands, require, static_value

JAX_MODE = False
if JAX_MODE:
    import jax


def axes_of(axis: Any, rank: int, op_name: str) -> tuple[int, ...]:
    """The axes that an argument names, each at least 0; all of them for None."""
    if axis is None:
        return tuple(range(rank))
    axes = [int(a) for a in np.ravel(static_value(axis, "An axis"))]
    for a in axes:
        if not -rank <= a < rank:
            raise invalid_argument(
                f"Invalid reduction dimension ({a} for input with {rank} dimension(s)"
                f" [Op:{op_name}]"
            )
    positive = tuple(a % rank for a in axes)
    if len(set(positive)) != len(positive):
        twice = next(a for a in positive if positive.count(a) > 1)
        raise invalid_argument(
            f"Invalid reduction arguments: Axes contains duplicate dimension: {twice}"
            f" [Op:{op_name}]"
        )
    return positive


def one_axis(axis: Any, rank: int, what: str) -> int:
    """One axis, at least 0."""
    number = int(static_value(axis, "An axis"))
    if not -rank <= number < rank:
        raise invalid_argument(f"{what}: axis {number} is out of range of [{-rank}, {rank})")
    return number % rank


def _sum(x: Any, axes: tuple, keepdims: bool) -> Any:
    return xp.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _prod(x: Any, axes: tuple, keepdims: bool) -> Any:
    return xp.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _extremum(function: Callable, empty: str) -> Callable:
    def call(x: Any, axes: tuple, keepdims: bool) -> Any:
        limit = getattr(dtypes.dtype_of(x), empty)
        if x.dtype.kind not in "iu":
            limit = np.inf if empty == "max" else -np.inf
        if JAX_MODE and 0 in [x.shape[axis] for axis in axes]:
            # A constant; JAX's derivative of the extremum of nothing is NaN.
            return _sum(x, axes, keepdims) + np.asarray(limit, x.dtype)
        if JAX_MODE:
            # An initial value that is no less than the extremum would take a part of its gradient.
            return function(x, axis=axes, keepdims=keepdims)
        return function(x, axis=axes, keepdims=keepdims, initial=np.asarray(limit, x.dtype))

    return call


def _mean(x: Any, axes: tuple, keepdims: bool) -> Any:
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if x.dtype.kind in "iu":
        # TensorFlow's mean of integers is their sum, divided toward zero; that of none is 0.
        wide = dtypes.numpy_dtype("int64" if x.dtype.kind == "i" else "uint64")
        total = xp.sum(x, axis=axes, keepdims=keepdims, dtype=wide)
        size = np.asarray(max(count, 1), wide)
        return like((total - xp.fmod(total, size)) // size, x)
    total = _sum(x, axes, keepdims)
    return like(total / np.asarray(count, x.dtype), x)


def _euclidean_norm(x: Any, axes: tuple, keepdims: bool) -> Any:
    if x.dtype.kind in "iu":
        # The sum of squares wraps around, as TensorFlow's does.
        total = _sum(xp.square(x), axes, keepdims)
        return xp.sqrt(total.astype(dtypes.numpy_dtype("float64"))).astype(x.dtype)
    if x.dtype.kind == "c":
        return xp.sqrt(_sum(xp.square(xp.abs(x)).astype(x.dtype), axes, keepdims))
    return xp.sqrt(_sum(xp.square(x), axes, keepdims))


def logsumexp(x: Any, axes: tuple, keepdims: bool) -> Any:
    largest = _extremum(xp.max, "min")(x, axes, True)
    largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    if JAX_MODE:
        largest = jax.lax.stop_gradient(largest)
    total = xp.log(_sum(xp.exp(x - largest), axes, True)) + largest
    return total if keepdims else xp.squeeze(total, axis=axes)


_REDUCTIONS: list[tuple[str, Callable, tuple, str]] = [
    ("reduce_sum math.reduce_sum", _sum, NUMBERS, "Sum"),
    ("reduce_prod math.reduce_prod", _prod, NUMBERS, "Prod"),
    ("reduce_mean math.reduce_mean", _mean, NUMBERS, "Mean"),
    ("reduce_max math.reduce_max", _extremum(xp.max, "min"), REALS, "Max"),
    ("reduce_min math.reduce_min", _extremum(xp.min, "max"), REALS, "Min"),
    ("reduce_logsumexp math.reduce_logsumexp", logsumexp, REAL_FLOATS, "LogSumExp"),
    ("math.reduce_euclidean_norm", _euclidean_norm, NUMBERS, "EuclideanNorm"),
    (
        "reduce_all math.reduce_all",
        lambda x, axes, keepdims: xp.all(x, axis=axes, keepdims=keepdims),
        BOOL,
        "All",
    ),
    (
        "reduce_any math.reduce_any",
        lambda x, axes, keepdims: xp.any(x, axis=axes, keepdims=keepdims),
        BOOL,
        "Any",
    ),
]


def _reduction(names: str, function: Callable, allowed: tuple, op_name: str) -> None:
    first, *others = names.split()

    def call(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Any:
        if allowed is BOOL and not has_dtype(input_tensor):
            input_tensor = convert(input_tensor, dtype=np.bool_)
        x = convert(input_tensor)
        if allowed is BOOL and x.dtype != np.bool_:
            raise invalid_argument(
                f"cannot compute {op_name} as input #0(zero-based) was expected to be a bool tensor"
                f" but is a {dtypes.dtype_of(x).name} tensor [Op:{op_name}]"
            )
        require(op_name, x, allowed)
        return function(x, axes_of(axis, len(x.shape), op_name), bool(keepdims))

    named(
        call,
        first.rpartition(".")[2],
        f"tf.{first}: over `axis`, or all of it, of {', '.join(allowed)}.",
    )
    op(first, *others, static=first not in ("reduce_logsumexp",))(call)


for _names, _function, _allowed, _op_name in _REDUCTIONS:
    _reduction(_names, _function, _allowed, _op_name)


@op("math.reduce_variance")
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None
) -> Any:
    """The mean of squared distances to the mean; of complex numbers it is real.

    Raises:
      TypeError: of integers.
    """
    x = require("Mean", convert(input_tensor), NUMBERS)
    axes = axes_of(axis, len(x.shape), "Mean")
    if x.dtype.kind in "iu":
        raise TypeError(
            f"Input must be either real or complex. Received integer type {dtypes.dtype_of(x)}."
        )
    difference = x - _mean(x, axes, True)
    if x.dtype.kind == "c":
        squares = xp.real(difference * xp.conj(difference))
    else:
        squares = xp.square(difference)
    return _mean(squares, axes, bool(keepdims))


@op("math.reduce_std")
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None
) -> Any:
    """The root of tf.math.reduce_variance."""
    return sqrt(convert(reduce_variance(input_tensor, axis, keepdims)))


@op("math.count_nonzero", static=True)
def count_nonzero(
    input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = dtypes.int64, name: Any = None
) -> Any:
    x = convert(input)
    axes = axes_of(axis, len(x.shape), "Sum")
    nonzero = (x != b"") if x.dtype.kind == "O" else (x != 0)
    return xp.sum(nonzero, axis=axes, keepdims=bool(keepdims), dtype=dtypes.numpy_dtype(dtype))


def _arg(function: Callable, op_name: str) -> Callable:
    def call(
        input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: Any = None
    ) -> Any:
        x = require(op_name, convert(input), (*NUMBERS, *BOOL))
        axis = one_axis(0 if axis is None else axis, len(x.shape), f"tf.{op_name.lower()}")
        if x.shape[axis] == 0:
            raise invalid_argument(
                f"Reduction axis {axis} is empty in shape {list(x.shape)} [Op:{op_name}]"
            )
        if dtypes.dtype_of(x).is_floating:
            # NaN is never the largest or smallest, where NumPy's is both.
            worst = np.asarray(-np.inf if op_name == "ArgMax" else np.inf, x.dtype)
            x = xp.where(xp.isnan(x), worst, x)
        return function(x, axis=axis).astype(dtypes.numpy_dtype(output_type))

    named(call, op_name.lower(), f"The index of the first {op_name[3:].lower()}imum along an axis.")
    return call


op("argmax", "math.argmax", static=True)(_arg(xp.argmax, "ArgMax"))
op("argmin", "math.argmin", static=True)(_arg(xp.argmin, "ArgMin"))


# Cumulative.


def _cumulative(scan: Callable, identity: float) -> Callable:
    """TensorFlow's exclusive and reversed scans of an inclusive one."""

    def call(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        if reverse:
            x = xp.flip(x, axis)
        if exclusive and x.shape[axis]:
            lead = xp.full_like(x[_at(axis, slice(0, 1))], identity)
            x = xp.concatenate([lead, x[_at(axis, slice(0, -1))]], axis)
        result = like(scan(x, axis), x)
        return xp.flip(result, axis) if reverse else result

    return call


def _at(axis: int, index: Any) -> tuple:
    return (slice(None),) * axis + (index,)


def _log_add_exp_scan(x: Any, axis: int) -> Any:
    if JAX_MODE:
        on_device: Any = xp.asarray(x)
        return jax.lax.cumlogsumexp(on_device, axis)
    return np.logaddexp.accumulate(x, axis=axis)


_cumsum = _cumulative(lambda x, axis: xp.cumsum(x, axis, dtype=x.dtype), 0)
_cumprod = _cumulative(lambda x, axis: xp.cumprod(x, axis, dtype=x.dtype), 1)
_cumulative_logsumexp = _cumulative(_log_add_exp_scan, -np.inf)


@op("cumsum", "math.cumsum", static=True)
def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Any = None
) -> Any:
    """Sums of the elements up to each; `exclusive` leaves it out, `reverse` begins at the end."""
    x = require("Cumsum", convert(x), NUMBERS)
    return _cumsum(x, one_axis(axis, len(x.shape), "tf.cumsum"), exclusive, reverse)


@op("math.cumprod", static=True)
def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Any = None
) -> Any:
    """Products of the elements up to each; the same options as tf.cumsum."""
    x = require("Cumprod", convert(x), NUMBERS)
    return _cumprod(x, one_axis(axis, len(x.shape), "tf.math.cumprod"), exclusive, reverse)


@op("math.cumulative_logsumexp")
def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Any = None
) -> Any:
    """log(cumsum(exp(x))); the exclusive one begins with -inf."""
    x = require("CumulativeLogsumexp", convert(x), REAL_FLOATS)
    axis = one_axis(axis, len(x.shape), "tf.math.cumulative_logsumexp")
    return _cumulative_logsumexp(x, axis, exclusive, reverse)


# Segments.


def _unsorted(initial: Callable, reduce: str) -> Callable:
    def call(data: Any, ids: Any, count: int) -> Any:
        rank = len(ids.shape)
        shape = (count, *data.shape[rank:])
        start = xp.full(shape, initial(dtypes.dtype_of(data)), data.dtype)
        ids = ids.reshape(-1)
        rows = data.reshape((-1, *data.shape[rank:]))
        if isinstance(ids, np.ndarray) and ids.size and ids.max() >= count:
            raise invalid_argument(f"segment_ids[..] = {ids.max()} is out of range [0, {count})")
        if JAX_MODE:
            # Negative segments are dropped, as TensorFlow does; JAX would count from the end.
            ids = xp.where(ids < 0, count, ids)
            on_device: Any = xp.asarray(start)
            if reduce == "multiply":
                return _products(on_device, ids, xp.asarray(rows))
            return getattr(on_device.at[ids], reduce)(rows, mode="drop")
        kept = ids >= 0
        _AT[reduce].at(start, ids[kept], rows[kept])
        return start

    return call


if JAX_MODE:

    @jax.custom_jvp
    def _products(start: Any, ids: Any, rows: Any) -> Any:
        """The products of the rows of each segment, which JAX does not differentiate itself."""
        return start.at[ids].multiply(rows, mode="drop")

    @_products.defjvp
    def _derivative_of_products(primals: tuple, tangents: tuple) -> tuple:
        start, ids, rows = primals
        zero = rows == 0
        none: Any = xp.zeros(start.shape, np.int32)
        zeros = none.at[ids].add(zero, mode="drop")
        nonzero = xp.where(zero, xp.ones_like(rows), rows)
        product = _products(start, ids, nonzero)
        at = xp.clip(ids, 0, max(start.shape[0] - 1, 0))
        # The product of the other rows of a row's segment, of which none may be zero.
        others = xp.where(zeros[at] == zero, product[at] / nonzero, xp.zeros_like(rows))
        tangent = xp.zeros_like(start).at[ids].add(tangents[2] * others, mode="drop")
        return _products(start, ids, rows), tangent


_AT = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
_segment = {
    "sum": _unsorted(lambda dtype: 0, "add"),
    "prod": _unsorted(lambda dtype: 1, "multiply"),
    "max": _unsorted(lambda dtype: dtype.min, "max"),
    "min": _unsorted(lambda dtype: dtype.max, "min"),
}
# Sorted segments have rows, of which all may be infinite.
_sorted_segments = {
    **_segment,
    "max": _unsorted(lambda dtype: -np.inf if dtype.is_floating else dtype.min, "max"),
    "min": _unsorted(lambda dtype: np.inf if dtype.is_floating else dtype.max, "min"),
}


def _counts(ids: Any, count: int, like_data: Any, rank: int) -> Any:
    ones = xp.ones(ids.shape, like_data.dtype)
    counts = _segment["sum"](ones, ids, count)
    return counts.reshape((count,) + (1,) * (len(like_data.shape) - rank))


def _unsorted_segment(kind: str) -> None:
    def call(data: Any, segment_ids: Any, num_segments: Any, name: Any = None) -> Any:
        data, ids = convert(data), convert(segment_ids)
        require(
            f"UnsortedSegment{kind.title()}", data, NUMBERS if kind in ("sum", "prod") else REALS
        )
        if data.shape[: len(ids.shape)] != ids.shape:
            raise invalid_argument(
                f"data.shape = {list(data.shape)} does not start with segment_ids.shape ="
                f" {list(ids.shape)} [Op:UnsortedSegment{kind.title()}]"
            )
        return _segment[kind](data, ids, int(static_value(num_segments, "num_segments")))

    named(
        call,
        f"unsorted_segment_{kind}",
        f"The {kind} of the rows of each segment; negative segments are left out.",
    )
    op(f"math.unsorted_segment_{kind}")(call)


for _kind in ("sum", "prod", "max", "min"):
    _unsorted_segment(_kind)


def _by_counts(data: Any, segment_ids: Any, num_segments: Any, root: bool) -> Any:
    data, ids = convert(data), convert(segment_ids)
    count = int(static_value(num_segments, "num_segments"))
    sums = _segment["sum"](data, ids, count)
    counts = xp.maximum(_counts(ids, count, data, len(ids.shape)), np.asarray(1, data.dtype))
    return like(sums / (xp.sqrt(counts) if root else counts), data)


@op("math.unsorted_segment_mean")
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: Any = None) -> Any:
    """The mean of the rows of each segment; 0 for one without rows."""
    return _by_counts(data, segment_ids, num_segments, root=False)


@op("math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: Any = None
) -> Any:
    """The sum of the rows of each segment over the root of their number."""
    return _by_counts(data, segment_ids, num_segments, root=True)


def _sorted_segment(kind: str) -> None:
    def call(data: Any, segment_ids: Any, name: Any = None) -> Any:
        data = convert(data)
        ids = static_value(
            segment_ids, "segment_ids of a sorted segment, which say how many there are,"
        )
        if ids.shape != data.shape[:1]:
            raise invalid_argument("segment_ids should be the same size as dimension 0 of input.")
        if ids.size and (np.diff(ids) < 0).any():
            raise invalid_argument("segment ids are not increasing")
        count = int(ids[-1]) + 1 if ids.size else 0
        if kind == "mean":
            return _by_counts(data, ids, count, root=False)
        result = _sorted_segments[kind](data, ids, count)
        if kind in ("max", "min"):
            # TensorFlow's sorted segments without rows are 0, the unsorted ones the dtype's limit.
            there = np.isin(np.arange(count), ids).reshape((count,) + (1,) * (len(data.shape) - 1))
            result = xp.where(there, result, np.asarray(0, data.dtype))
        return result

    named(
        call,
        f"segment_{kind}",
        f"The {kind} of the rows of each segment; the segments are sorted and known.",
    )
    op(f"math.segment_{kind}")(call)


for _kind in ("sum", "prod", "max", "min", "mean"):
    _sorted_segment(_kind)


@op("math.bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: Any = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Any:
    """How often each of 0, 1, 2 ... is in `arr`, or the sums of the weights there.

    On JAX under jit the length must be known: give minlength and maxlength the same value.
    """
    values = convert(arr)
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are supported."
        )
    low = 0 if minlength is None else int(static_value(minlength, "minlength"))
    high = None if maxlength is None else int(static_value(maxlength, "maxlength"))
    if high is not None and high == low:
        length = high
    else:
        largest = static_value(
            values, "The largest value that tf.math.bincount counts (see maxlength)"
        )
        length = max(low, int(largest.max()) + 1 if largest.size else 0)
        length = length if high is None else min(length, high)
    batch = values.reshape((-1, values.shape[-1])) if axis == -1 else values.reshape((1, -1))
    # The values beyond the length go to a bin that is cut off.
    inside = (batch >= 0) & (batch < length)
    rows = np.arange(batch.shape[0])[:, None] * (length + 1)
    bins = xp.where(inside, batch, length) + rows
    if weights is None:
        summed = xp.ones(batch.shape, dtypes.numpy_dtype(dtype))
    else:
        summed = convert(weights).reshape(batch.shape)
    counts = _segment["sum"](summed, bins, batch.shape[0] * (length + 1))
    counts = counts.reshape((batch.shape[0], length + 1))[:, :length]
    if binary_output:
        counts = (counts > 0).astype(counts.dtype)
    return counts.reshape((*values.shape[:-1], length)) if axis == -1 else counts[0]


@op("math.confusion_matrix")
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: Any = None,
) -> Any:
    """How often each class (row) was predicted as each (column)."""
    actual, predicted = convert(labels).reshape(-1), convert(predictions).reshape(-1)
    if num_classes is None:
        known = [
            static_value(v, "The number of classes (num_classes)") for v in (actual, predicted)
        ]
        num_classes = max(int(v.max()) for v in known) + 1
    count = int(static_value(num_classes, "num_classes"))
    wanted = dtypes.numpy_dtype(dtype)
    ones = xp.ones(actual.shape, wanted) if weights is None else convert(weights).astype(wanted)
    cells = actual.astype(np.int32) * count + predicted.astype(np.int32)
    return _segment["sum"](ones, cells, count * count).reshape((count, count))


# Order.

TopK = collections.namedtuple("TopK", ["values", "indices"])


@op("math.top_k", "nn.top_k")
def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: Any = None
) -> Any:
    """The k largest of the last axis and where they are; of equal ones the first."""
    x = require("TopKV2", convert(input), REALS)
    k = int(static_value(k, "k"))
    if not x.shape or x.shape[-1] < k:
        raise invalid_argument(
            f"input must have at least k columns. Had {x.shape[-1:]}, needed {k}"
        )
    order = _stable_order(x, descending=True)[..., :k]
    return TopK(xp.take_along_axis(x, order, -1), order.astype(dtypes.numpy_dtype(index_type)))


def _stable_order(x: Any, descending: bool) -> Any:
    if not descending:
        return xp.argsort(x, axis=-1, stable=True)
    flipped = xp.argsort(xp.flip(x, -1), axis=-1, stable=True)
    return xp.flip(x.shape[-1] - 1 - flipped, -1)


def _direction(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            "Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'."
            f" Received: {direction}"
        )
    return direction == "DESCENDING"


def _order(values: Any, axis: Any, direction: str) -> tuple:
    x = require("TopKV2", convert(values), REALS)
    axis = one_axis(axis, len(x.shape), "tf.sort")
    order = _stable_order(xp.moveaxis(x, axis, -1), _direction(direction))
    return x, axis, xp.moveaxis(order, -1, axis)


@op("sort", static=True)
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: Any = None) -> Any:
    x, axis, order = _order(values, axis, direction)
    return xp.take_along_axis(x, order, axis)


@op("argsort", static=True)
def argsort(
    values: Any,
    axis: Any = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: Any = None,
) -> Any:
    """The indices that sort, as int32; equal elements keep their order."""
    return _order(values, axis, direction)[2].astype(np.int32)


@op("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: Any = None,
) -> Any:
    """Where each value goes in the sorted last axis. Leading axes are batch axes.

    Raises:
      ValueError: side is neither 'left' nor 'right'.
      tf.errors.InvalidArgumentError: the batch axes differ.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'. Got {side}.")
    sequence, wanted = operands("LowerBound", sorted_sequence, values)
    if sequence.shape[:-1] != wanted.shape[:-1]:
        raise invalid_argument(
            "Leading dim_size of both tensors must match:"
            f" {list(sequence.shape)} and {list(wanted.shape)} [Op:LowerBound]"
        )
    count = math.prod(sequence.shape[:-1])
    rows = sequence.reshape((count, sequence.shape[-1]))
    asked = wanted.reshape((count, wanted.shape[-1]))
    if JAX_MODE:
        found = jax.vmap(lambda row, value: xp.searchsorted(row, value, side=side))(
            xp.asarray(rows), xp.asarray(asked)
        )
    else:
        found = np.array(
            [np.searchsorted(r, v, side=side) for r, v in zip(rows, asked, strict=True)], np.int64
        )
    kind = dtypes.int32 if out_type is None else out_type
    return found.reshape(wanted.shape).astype(dtypes.numpy_dtype(kind))


@op("math.in_top_k", "nn.in_top_k")
def in_top_k(targets: Any, predictions: Any, k: Any, name: Any = None) -> Any:
    """Whether the prediction of each target is among the k largest of its row, ties included."""
    targets, predictions = convert(targets), convert(predictions)
    inside = (targets >= 0) & (targets < predictions.shape[-1])
    at = xp.where(inside, targets, 0)
    of_target = xp.take_along_axis(predictions, at[:, None], -1)
    larger = xp.sum(predictions > of_target, axis=-1)
    finite = xp.all(xp.isfinite(predictions) | (predictions <= of_target), -1)
    return inside & xp.isfinite(of_target[:, 0]) & finite & (larger < k)


@op("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: Any = None
) -> Any:
    """The bin of each value among `nbins` of equal width; the outer ones are open."""
    x = require("Sub", convert(values), REALS)
    low, high = xp.split(convert(value_range, dtype=x.dtype), 2)
    count = int(static_value(nbins, "nbins"))
    real = dtypes.numpy_dtype("float64" if x.dtype.kind in "iu" else x.dtype)
    scaled = (x - low).astype(real) / (high - low).astype(real)
    indices = xp.floor(scaled * np.asarray(count, real))
    return xp.clip(indices, 0, count - 1).astype(dtypes.numpy_dtype(dtype))


@op("histogram_fixed_width")
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: Any = None
) -> Any:
    bins = convert(histogram_fixed_width_bins(values, value_range, nbins)).reshape(-1)
    count = int(static_value(nbins, "nbins"))
    return _segment["sum"](xp.ones(bins.shape, dtypes.numpy_dtype(dtype)), bins, count)


__all__ = ["FLOATS", "TopK", "axes_of", "logsumexp", "one_axis"]
