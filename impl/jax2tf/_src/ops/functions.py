"""TensorFlow functions of one op, which `raw` writes into a graph (see ops/writing.py).

A conversion calls these functions often. In a graph whose ops are written they make the same ops as
TensorFlow's functions. Elsewhere, and for operands of other types, they call those functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from jax2tf._src.ops import writing
from jax2tf._src.ops.raw_ops import raw
from jax2tf._src.ops.writing import OpArgument
from jax2tf._src.util import dtypes

Function = Callable[..., tf.Tensor]


def _in_graphs(by_tensorflow: Function) -> Callable[[Callable[..., OpArgument]], Function]:
    """A decorator: in graphs its function is called, and `by_tensorflow` where that gives None."""
    return functools.partial(_written_in_graphs, by_tensorflow)


def _written_in_graphs(by_tensorflow: Function, written: Callable[..., OpArgument]) -> Function:
    def function(*args: OpArgument, **options: OpArgument) -> tf.Tensor:
        result = written(*args, **options) if writing.writes() else None
        return by_tensorflow(*args, **options) if result is None else result

    function.__doc__ = by_tensorflow.__doc__
    function.__name__ = function.__qualname__ = by_tensorflow.__name__
    return function


def _unary(by_tensorflow: Function, op: str, operand: str = "x") -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument) -> tf.Tensor | None:
        return make_op(**{operand: x}) if _are_tensors(x) else None

    return _in_graphs(by_tensorflow)(written)


def _binary(by_tensorflow: Function, op: str) -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument, y: OpArgument) -> tf.Tensor | None:
        x, y = _number_like(x, y), _number_like(y, x)
        return make_op(x=x, y=y) if _are_tensors(x, y) else None

    return _in_graphs(by_tensorflow)(written)


def _number_like(x: OpArgument, y: OpArgument) -> OpArgument:
    """`x` as a tensor of the dtype of `y`, if it is a number that this dtype holds; else `x`."""
    if isinstance(x, tf.Tensor) or not isinstance(y, tf.Tensor):
        return x
    is_number = isinstance(x, int) and not isinstance(x, bool) and not y.dtype.is_bool
    is_float = isinstance(x, float) and (y.dtype.is_floating or y.dtype.is_complex)
    return constant(x, y.dtype) if is_number or is_float else x


def _reduction(by_tensorflow: Function, op: str) -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument, axis: OpArgument = None, keepdims: bool = False) -> tf.Tensor | None:
        axes = axis if isinstance(axis, int | tf.Tensor) else _integers(axis)
        if axes is None or not _are_tensors(x):
            return None
        return make_op(input=x, axis=axes, keep_dims=keepdims)

    return _in_graphs(by_tensorflow)(written)


cos = _unary(tf.cos, "Cos")
cosh = _unary(tf.cosh, "Cosh")
erf = _unary(tf.math.erf, "Erf")
exp = _unary(tf.exp, "Exp")
floor = _unary(tf.floor, "Floor")
is_finite = _unary(tf.math.is_finite, "IsFinite")
is_inf = _unary(tf.math.is_inf, "IsInf")
is_nan = _unary(tf.math.is_nan, "IsNan")
log = _unary(tf.math.log, "Log")
sin = _unary(tf.sin, "Sin")
sinh = _unary(tf.sinh, "Sinh")
sqrt = _unary(tf.sqrt, "Sqrt")
square = _unary(tf.square, "Square")
tanh = _unary(tf.tanh, "Tanh")

add = _binary(tf.add, "AddV2")
bitwise_and = _binary(tf.bitwise.bitwise_and, "BitwiseAnd")
bitwise_or = _binary(tf.bitwise.bitwise_or, "BitwiseOr")
bitwise_xor = _binary(tf.bitwise.bitwise_xor, "BitwiseXor")
equal = _binary(tf.equal, "Equal")
left_shift = _binary(tf.bitwise.left_shift, "LeftShift")
less = _binary(tf.less, "Less")
less_equal = _binary(tf.less_equal, "LessEqual")
logical_and = _binary(tf.logical_and, "LogicalAnd")
logical_or = _binary(tf.logical_or, "LogicalOr")
maximum = _binary(tf.maximum, "Maximum")
minimum = _binary(tf.minimum, "Minimum")
not_equal = _binary(tf.not_equal, "NotEqual")
right_shift = _binary(tf.bitwise.right_shift, "RightShift")

reduce_all = _reduction(tf.reduce_all, "All")
reduce_any = _reduction(tf.reduce_any, "Any")
reduce_max = _reduction(tf.reduce_max, "Max")
reduce_min = _reduction(tf.reduce_min, "Min")
reduce_prod = _reduction(tf.reduce_prod, "Prod")
reduce_sum = _reduction(tf.reduce_sum, "Sum")


# Form: smaller_for_larger.


def greater(x: OpArgument, y: OpArgument) -> tf.Tensor:
    """tf.greater, made as tf.less of the swapped operands."""
    return less(_in_dtype_of(y, x), x)


def greater_equal(x: OpArgument, y: OpArgument) -> tf.Tensor:
    """tf.greater_equal, made as tf.less_equal of the swapped operands."""
    return less_equal(_in_dtype_of(y, x), x)


def _in_dtype_of(y: OpArgument, x: OpArgument) -> OpArgument:
    """A number `y` as a tensor of the dtype of `x`: an op takes that of its first operand."""
    return constant(y, x.dtype) if isinstance(y, int | float) and isinstance(x, tf.Tensor) else y


@_in_graphs(tf.atan2)
def atan2(y: OpArgument, x: OpArgument) -> tf.Tensor | None:
    """tf.atan2, whose first operand is called y."""
    return raw.Atan2(y=y, x=x) if _are_tensors(y, x) else None


@_in_graphs(tf.constant)
def constant(
    value: OpArgument, dtype: tf.DType | None = None, shape: OpArgument = None
) -> tf.Tensor | None:
    """tf.constant."""
    if shape is not None or isinstance(value, tf.Tensor):
        return None
    return writing.write_constant(value, dtype)


@_in_graphs(tf.where)
def where(condition: OpArgument, x: OpArgument = None, y: OpArgument = None) -> tf.Tensor | None:
    """tf.where of tensors; one of `x` and `y` may be a number."""
    x, y = _number_like(x, y), _number_like(y, x)
    return raw.SelectV2(condition=condition, t=x, e=y) if _are_tensors(condition, x, y) else None


@_in_graphs(tf.cast)
def cast(x: OpArgument, dtype: tf.DType | None) -> tf.Tensor | None:
    """tf.cast between real numbers."""
    dtype = tf.as_dtype(dtype)
    if not _are_tensors(x) or x.dtype.is_complex or dtype.is_complex:
        return None
    return x if x.dtype == dtype else raw.Cast(x=x, DstT=dtype)


@_in_graphs(tf.bitcast)
def bitcast(input: OpArgument, type: tf.DType | None) -> tf.Tensor | None:
    """tf.bitcast."""
    return raw.Bitcast(input=input, type=type) if _are_tensors(input) else None


@_in_graphs(tf.reshape)
def reshape(tensor: OpArgument, shape: OpArgument) -> tf.Tensor | None:
    """tf.reshape to a shape of integers."""
    sizes = _integers(shape)
    if sizes is None or not _are_tensors(tensor):
        return None
    return raw.Reshape(tensor=tensor, shape=_vector(sizes))


@_in_graphs(tf.expand_dims)
def expand_dims(input: OpArgument, axis: OpArgument) -> tf.Tensor | None:
    """tf.expand_dims at an axis, which may be a tensor."""
    if not isinstance(axis, int | tf.Tensor) or not _are_tensors(input):
        return None
    return raw.ExpandDims(input=input, axis=axis)


@_in_graphs(tf.squeeze)
def squeeze(input: OpArgument, axis: OpArgument = None) -> tf.Tensor | None:
    """tf.squeeze of stated dimensions."""
    axes = _integers(axis)
    if axes is None or not _are_tensors(input):
        return None
    return raw.Squeeze(input=input, axis=axes)


@_in_graphs(tf.transpose)
def transpose(a: OpArgument, perm: OpArgument = None) -> tf.Tensor | None:
    """tf.transpose by a permutation of integers."""
    axes = _integers(perm)
    if axes is None or not _are_tensors(a):
        return None
    return raw.Transpose(x=a, perm=_vector(axes))


@_in_graphs(tf.concat)
def concat(values: OpArgument, axis: OpArgument) -> tf.Tensor | None:
    """tf.concat of at least two tensors along an axis, which may be a tensor."""
    if not isinstance(axis, int | tf.Tensor) or not isinstance(values, list | tuple):
        return None
    if len(values) < 2 or not _are_tensors(*values):
        return None
    return raw.ConcatV2(values=values, axis=axis)


@_in_graphs(tf.unstack)
def unstack(value: OpArgument, num: int | None = None, axis: int = 0) -> list[tf.Tensor] | None:
    """tf.unstack into a number of tensors."""
    if num is None or not _are_tensors(value):
        return None
    return list(raw.Unpack(value=value, num=num, axis=axis))


@_in_graphs(tf.split)
def split(
    value: OpArgument, num_or_size_splits: OpArgument, axis: OpArgument = 0, num: int | None = None
) -> list[tf.Tensor] | None:
    """tf.split into `num` parts, of one size or of the sizes in a tensor."""
    if num is None or not _are_tensors(value):
        return None
    if isinstance(num_or_size_splits, int):
        return list(raw.Split(axis=axis, value=value, num_split=num_or_size_splits))
    if _are_tensors(num_or_size_splits):
        sizes = num_or_size_splits
        return list(raw.SplitV(value=value, size_splits=sizes, axis=axis, num_split=num))
    return None


@_in_graphs(tf.ensure_shape)
def ensure_shape(x: OpArgument, shape: OpArgument) -> tf.Tensor | None:
    """tf.ensure_shape."""
    if not isinstance(shape, tf.TensorShape) or not _are_tensors(x):
        return None
    return raw.EnsureShape(input=x, shape=shape)


@_in_graphs(tf.identity)
def identity(input: OpArgument) -> tf.Tensor | None:
    """tf.identity of an array; only TensorFlow's own handles resources and variants."""
    is_array = _are_tensors(input) and input.dtype not in (tf.resource, tf.variant)
    return raw.Identity(input=input) if is_array else None


@_in_graphs(tf.gather)
def gather(
    params: OpArgument, indices: OpArgument, axis: OpArgument = None, batch_dims: int = 0
) -> tf.Tensor | None:
    """tf.gather along an integer axis."""
    axis = batch_dims if axis is None else axis
    if not isinstance(axis, int) or not _are_tensors(params, indices):
        return None
    axis = constant(axis, tf.int32)
    return raw.GatherV2(params=params, indices=indices, axis=axis, batch_dims=batch_dims)


@_in_graphs(tf.matmul)
def matmul(
    a: OpArgument,
    b: OpArgument,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> tf.Tensor | None:
    """tf.matmul of tensors of known ranks; TensorFlow's where complex numbers are transposed."""
    if not _are_tensors(a, b) or None in (a.shape.rank, b.shape.rank) or a.dtype.is_complex:
        return None
    flip_a, flip_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    if a.shape.rank == b.shape.rank == 2:
        return raw.MatMul(a=a, b=b, transpose_a=flip_a, transpose_b=flip_b)
    return raw.BatchMatMulV2(x=a, y=b, adj_x=flip_a, adj_y=flip_b)


@_in_graphs(tf.nn.conv2d)
def conv2d(
    input: OpArgument,
    filters: OpArgument,
    strides: OpArgument,
    padding: OpArgument,
    *,
    dilations: OpArgument,
) -> tf.Tensor | None:
    """tf.nn.conv2d of images whose channels come last; strides and dilations are pairs."""
    if not _are_tensors(input, filters):
        return None
    explicit = not isinstance(padding, str)
    return raw.Conv2D(
        input=input,
        filter=filters,
        strides=[1, *strides, 1],
        padding="EXPLICIT" if explicit else padding,
        explicit_paddings=[size for pair in padding for size in pair] if explicit else [],
        dilations=[1, *dilations, 1],
    )


def computation(
    body: Callable[..., OpArgument], operands: Sequence[dtypes.DType]
) -> tf.types.experimental.ConcreteFunction:
    """A function of scalars of these dtypes, which XLA's reducing ops take as an attribute."""
    specs = [tf.TensorSpec([], dtype) for dtype in operands]
    with tf.init_scope():
        return tf.function(body, autograph=False).get_concrete_function(*specs)


def _are_tensors(*values: OpArgument) -> bool:
    return all(isinstance(value, tf.Tensor) for value in values)


def _integers(values: OpArgument) -> list[int] | None:
    """Axes or sizes as a list; None if they are not known integers."""
    if isinstance(values, int):
        return [values]
    if not isinstance(values, list | tuple) or not all(
        isinstance(value, int | np.integer) for value in values
    ):
        return None
    return list(map(int, values))


def _vector(values: Sequence[int]) -> tf.Tensor:
    return constant(np.array(values, np.int32))
