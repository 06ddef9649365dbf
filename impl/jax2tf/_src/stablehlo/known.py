"""Numbers that are known while a program is evaluated: constants, and sizes of open dimensions.

A size is an int, or an expression of JAX's symbolic dimensions while a function with open
dimensions is traced. What is computed from sizes (the shape of a dynamic reshape) stays known.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jax2tf._src.stablehlo.program import Function, Op, TensorType
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import PyTree

_MOST_ELEMENTS = 1024
# The number that stands for each open size where a function of a program is tried.
OPEN_SIZE_TRIED = 3


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Known integers, of which at least one is a symbolic expression.

    Attributes:
      values: an array of objects.
      dtype: the dtype that the program gives them.
    """

    values: np.ndarray
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def as_array(self) -> jax.Array:
        """The sizes as a traced array."""
        dtype = jax.dtypes.canonicalize_dtype(self.dtype)
        flat = [jnp.asarray(size).astype(dtype) for size in self.values.reshape(-1)]
        if not self.shape:
            return flat[0]
        return jnp.stack(flat).reshape(self.shape) if flat else jnp.zeros(self.shape, dtype)


def is_known(value: object) -> bool:
    """Whether the value is a small array of integers or truth values, or sizes."""
    if isinstance(value, Sizes):
        return True
    return (
        isinstance(value, np.ndarray) and value.dtype.kind in "iub" and value.size <= _MOST_ELEMENTS
    )


def as_sizes(value: PyTree) -> tuple[Size, ...]:
    """The elements of a known vector."""
    values = value.values if isinstance(value, Sizes) else value
    return tuple(_plain(size) for size in np.asarray(values).reshape(-1))


def of_sizes(values: PyTree, dtype: np.dtype) -> PyTree:
    """Sizes, or a plain array if all are ints."""
    array = np.asarray(values, object)
    if all(isinstance(size, (int, np.integer, bool, np.bool_)) for size in array.reshape(-1)):
        return array.astype(dtype)
    return Sizes(array, dtype)


def fold(op: Op, operands: Sequence[PyTree]) -> PyTree:
    """The known result of an op whose operands are known; None for another op or result."""
    if op.is_quantized:
        return None
    if op.name in ("stablehlo.and", "stablehlo.or"):
        return _fold_truth(op, operands)
    does_nothing = op.name in _MAY_DO_NOTHING and op.operand_types[0] == op.types[0]
    if does_nothing and isinstance(operands[0], np.ndarray):
        return operands[0]
    folded = _FOLDED.get(op.name)
    if folded is None or not all(is_known(operand) for operand in operands):
        return None
    (result,) = op.types
    assert isinstance(result, TensorType)
    if result.dtype.kind not in "iub" or np.prod([n or 1 for n in result.shape]) > _MOST_ELEMENTS:
        return None
    try:
        return folded(op, result, *operands)
    except jax.errors.InconclusiveDimensionOperation:
        return None  # the sizes become arrays: their values decide at run time


def fold_call(function: Function, operands: Sequence[PyTree]) -> PyTree:
    """The known result of JAX's helpers for symbolic sizes; None for another function.

    They round towards minus infinity, which their ops do by cases that a symbolic size leaves open.
    """
    compute = {"floor_divide": operator.floordiv, "remainder": operator.mod}.get(
        function.name.rstrip("_0123456789")
    )
    if compute is None or not any(isinstance(x, Sizes) for x in operands):
        return None
    names = {op.name.removeprefix("stablehlo.") for op in function.body.ops}
    if not {"remainder", "compare"} <= names or len(operands) < 2:
        return None
    x, y = (np.asarray(as_sizes(value), object)[0] for value in operands[-2:])
    return of_sizes(compute(x, y), operands[-2].dtype) if bool(y > 0) else None


def _fold_truth(op: Op, operands: Sequence[PyTree]) -> PyTree:
    """`and` and `or`: one known operand can decide."""
    decides = op.name == "stablehlo.or"
    (result,) = op.types
    assert isinstance(result, TensorType)
    if result.dtype != np.bool_:
        known = all(isinstance(x, np.ndarray) and is_known(x) for x in operands)
        combine = np.bitwise_or if decides else np.bitwise_and
        return np.asarray(combine(*operands)) if known else None
    plain = [x for x in operands if isinstance(x, np.ndarray) and is_known(x)]
    if len(plain) == 2:
        return np.asarray((np.logical_or if decides else np.logical_and)(*plain))
    if not result.is_static:
        return None
    if any((x == decides).all() for x in plain):
        return np.full(_plain_shape(result), decides)
    others = [x for x in operands if not any(x is known for known in plain)]
    decided = plain and (plain[0] != decides).all() and tuple(others[0].shape) == result.shape
    return others[0] if decided else None


def _plain(size: Size) -> Size:
    return size.item() if isinstance(size, (np.integer, np.bool_)) else size


def _elementwise(compute: Callable[..., Size]) -> Callable[..., PyTree]:
    """Folds with `compute` on each element; plain arrays wrap around as their dtype does."""

    def folded(op: Op, result: TensorType, *operands: PyTree) -> PyTree:
        objects = [x.values if isinstance(x, Sizes) else x.astype(object) for x in operands]
        values = np.frompyfunc(compute, len(objects), 1)(*objects)
        return of_sizes(_wrapped(values, result.dtype), result.dtype)

    return folded


def _wrapped(values: PyTree, dtype: np.dtype) -> PyTree:
    """Python's ints as the dtype keeps them."""
    if dtype.kind not in "iu":
        return np.asarray(values, object)
    limits = np.iinfo(dtype)

    def wrap(size: Size) -> Size:
        if not isinstance(size, int):
            return size
        return (size - int(limits.min)) % (1 << limits.bits) + int(limits.min)

    return np.frompyfunc(wrap, 1, 1)(np.asarray(values, object))


def _divide(x: Size, y: Size) -> Size:
    """Division that rounds to zero. For symbolic sizes only where that is floor division."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            return -1
        return -(-x // y) if (x < 0) != (y < 0) else x // y
    if x >= 0 and y > 0:
        return x // y
    return -(-x // y) if x <= 0 and y > 0 else _undecided()


def _remainder(x: Size, y: Size) -> Size:
    if isinstance(x, int) and isinstance(y, int):
        return x if y == 0 else x - y * _divide(x, y)
    if x >= 0 and y > 0:
        return x % y
    return -(-x % y) if x <= 0 and y > 0 else _undecided()


def _undecided() -> Size:
    raise jax.errors.InconclusiveDimensionOperation("the sign of a size is not known")


def _sign(x: Size) -> Size:
    return 0 if x == 0 else 1 if x > 0 else -1


def _compare(op: Op, result: TensorType, x: PyTree, y: PyTree) -> PyTree:
    compare = _COMPARISONS[op.attributes["comparison_direction"]]
    return _elementwise(lambda a, b: bool(compare(a, b)))(op, result, x, y)


_COMPARISONS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def _convert(op: Op, result: TensorType, x: PyTree) -> PyTree:
    if isinstance(x, Sizes):
        return Sizes(x.values, result.dtype) if result.dtype.kind in "iu" else None
    return x.astype(result.dtype)


def _reshaped(op: Op, result: TensorType, x: PyTree, *shape: PyTree) -> PyTree:
    if not result.is_static:
        return None
    if isinstance(x, Sizes):
        return Sizes(x.values.reshape(_plain_shape(result)), x.dtype)
    return x.reshape(_plain_shape(result))


def _broadcast(op: Op, result: TensorType, x: PyTree, *shape: PyTree) -> PyTree:
    dimensions = op.attributes["broadcast_dimensions"]
    if not result.is_static:
        return None
    values = x.values if isinstance(x, Sizes) else x
    placed = [1] * len(result.shape)
    for axis, size in zip(dimensions, values.shape, strict=True):
        placed[axis] = size
    full = np.broadcast_to(values.reshape(placed), _plain_shape(result))
    return Sizes(full, x.dtype) if isinstance(x, Sizes) else full


def _plain_shape(result: TensorType) -> tuple[int, ...]:
    return tuple(size for size in result.shape if size is not None)


def _concatenate(op: Op, result: TensorType, *parts: PyTree) -> PyTree:
    values = [p.values if isinstance(p, Sizes) else p.astype(object) for p in parts]
    return of_sizes(np.concatenate(values, op.attributes["dimension"]), result.dtype)


def _slice(op: Op, result: TensorType, x: PyTree) -> PyTree:
    bounds = (op.attributes[f"{name}_indices"] for name in ("start", "limit"))
    index = tuple(slice(*b) for b in zip(*bounds, op.attributes["strides"], strict=True))
    if isinstance(x, Sizes):
        return of_sizes(x.values[index], x.dtype)
    return x[index]


def _select(op: Op, result: TensorType, which: PyTree, x: PyTree, y: PyTree) -> PyTree:
    if isinstance(which, Sizes):
        return None
    values = [p.values if isinstance(p, Sizes) else p.astype(object) for p in (x, y)]
    return of_sizes(np.where(which, *values), result.dtype)


def _dimension_size(size: Callable[[Size, Size], Size]) -> Callable[[Size, Size], Size]:
    return lambda x, y: (
        size(x, y) if isinstance(x, int) and isinstance(y, int) else _extreme(size, x, y)
    )


def _extreme(size: Callable[[Size, Size], Size], x: Size, y: Size) -> Size:
    return jax.core.max_dim(x, y) if size is max else jax.core.min_dim(x, y)


_MAY_DO_NOTHING = ("stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")

_FOLDED: Mapping[str, Callable[..., PyTree]] = {
    "stablehlo.abs": _elementwise(lambda x: x if x >= 0 else -x),
    "stablehlo.add": _elementwise(operator.add),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _elementwise(
        lambda low, x, high: _dimension_size(min)(_dimension_size(max)(low, x), high)
    ),
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _elementwise(_divide),
    "stablehlo.maximum": _elementwise(_dimension_size(max)),
    "stablehlo.minimum": _elementwise(_dimension_size(min)),
    "stablehlo.multiply": _elementwise(operator.mul),
    "stablehlo.negate": _elementwise(operator.neg),
    "stablehlo.remainder": _elementwise(_remainder),
    "stablehlo.reshape": _reshaped,
    "stablehlo.select": _select,
    "stablehlo.sign": _elementwise(_sign),
    "stablehlo.slice": _slice,
    "stablehlo.subtract": _elementwise(operator.sub),
}


def are_plain(shape: Sequence[Size]) -> bool:
    """Whether each open size is a symbol, for which any number may stand."""
    return all(isinstance(size, int) or str(size).isidentifier() for size in shape)
