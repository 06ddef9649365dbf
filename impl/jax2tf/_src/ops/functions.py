"""Functions by their names in TensorFlow, for a graph of ours or for TensorFlow.

Within `graph.make.making` a call goes to the function of the same name in graph/ops. Else it goes
to TensorFlow. A conversion calls some functions of one op often. In a TensorFlow graph whose ops
are written, these make the same ops as TensorFlow's functions by `raw` (see ops/writing.py).
Elsewhere, and for operands of other types, they call those functions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from jax2tf._src import compat
from jax2tf._src.graph import ops as own
from jax2tf._src.graph.make import is_making
from jax2tf._src.ops import writing
from jax2tf._src.ops.raw_ops import raw
from jax2tf._src.ops.writing import OpArgument
from jax2tf._src.util import dtypes
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Computation, Tensor

# A tensor, or what TensorFlow's function returns.
Function = Callable[..., Any]


def by_tensorflow(name: str) -> Function:
    """The function with this name in `tf`; TensorFlow is imported when it is called."""
    of_our_graph = _of_our_graph(name)

    def function(*args: OpArgument, **options: OpArgument) -> Any:
        return (of_our_graph if is_making() else load())(*args, **options)

    load: Callable[[], Function] = cached(lambda: operator.attrgetter(name)(tf))
    function.__doc__ = f"tf.{name}."
    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    return function


def _of_our_graph(name: str) -> Function:
    """The function in graph/ops with the last part of a name in `tf`."""
    last = name.rpartition(".")[2]
    return getattr(own, last, None) or functools.partial(_refuse, last)


def _refuse(name: str, *_: OpArgument, **__: OpArgument) -> NoReturn:
    raise NotImplementedError(
        f"jax2tf: graphs that are made without TensorFlow have no {name} yet. What to do: install "
        "tensorflow, which makes the graph then"
    )


def dynamic_update_slice(operand: Tensor, update: Tensor, start: Tensor) -> Any:
    """The operand with `update` at the place `start`: XLA's op, for which `tf` has no function."""
    if is_making():
        return own.dynamic_update_slice(operand, update, start)
    return compat.xla.xla_ops.xla_dynamic_update_slice(operand, update, start)


def _in_graphs(name: str) -> Callable[[Callable[..., OpArgument]], Function]:
    """A decorator: in graphs its function is called, and that of TensorFlow where it gives None."""
    return functools.partial(_written_in_graphs, by_tensorflow(name), _of_our_graph(name))


def _written_in_graphs(
    otherwise: Function, of_our_graph: Function, written: Callable[..., OpArgument]
) -> Function:
    def function(*args: OpArgument, **options: OpArgument) -> Any:
        if is_making():
            return of_our_graph(*args, **options)
        result = written(*args, **options) if writing.writes() else None
        return otherwise(*args, **options) if result is None else result

    function.__doc__ = otherwise.__doc__
    function.__name__ = function.__qualname__ = otherwise.__name__
    return function


def _unary(name: str, op: str, operand: str = "x") -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument) -> Tensor | None:
        return make_op(**{operand: x}) if _are_tensors(x) else None

    return _in_graphs(name)(written)


def _binary(name: str, op: str) -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument, y: OpArgument) -> Tensor | None:
        x, y = _number_like(x, y), _number_like(y, x)
        return make_op(x=x, y=y) if _are_tensors(x, y) else None

    return _in_graphs(name)(written)


def _number_like(x: OpArgument, y: OpArgument) -> OpArgument:
    """`x` as a tensor of the dtype of `y`, if it is a number that this dtype holds; else `x`."""
    if _is_tensor(x) or not _is_tensor(y):
        return x
    is_number = isinstance(x, int) and not isinstance(x, bool) and not y.dtype.is_bool
    is_float = isinstance(x, float) and (y.dtype.is_floating or y.dtype.is_complex)
    return constant(x, y.dtype) if is_number or is_float else x


def _reduction(name: str, op: str) -> Function:
    make_op = getattr(raw, op)

    def written(x: OpArgument, axis: OpArgument = None, keepdims: bool = False) -> Tensor | None:
        axes = axis if isinstance(axis, int) or _is_tensor(axis) else _integers(axis)
        if axes is None or not _are_tensors(x):
            return None
        return make_op(input=x, axis=axes, keep_dims=keepdims)

    return _in_graphs(name)(written)


cos = _unary("cos", "Cos")
cosh = _unary("cosh", "Cosh")
erf = _unary("math.erf", "Erf")
exp = _unary("exp", "Exp")
floor = _unary("floor", "Floor")
is_finite = _unary("math.is_finite", "IsFinite")
is_inf = _unary("math.is_inf", "IsInf")
is_nan = _unary("math.is_nan", "IsNan")
log = _unary("math.log", "Log")
sin = _unary("sin", "Sin")
sinh = _unary("sinh", "Sinh")
sqrt = _unary("sqrt", "Sqrt")
square = _unary("square", "Square")
tanh = _unary("tanh", "Tanh")

add = _binary("add", "AddV2")
bitwise_and = _binary("bitwise.bitwise_and", "BitwiseAnd")
bitwise_or = _binary("bitwise.bitwise_or", "BitwiseOr")
bitwise_xor = _binary("bitwise.bitwise_xor", "BitwiseXor")
equal = _binary("equal", "Equal")
left_shift = _binary("bitwise.left_shift", "LeftShift")
less = _binary("less", "Less")
less_equal = _binary("less_equal", "LessEqual")
logical_and = _binary("logical_and", "LogicalAnd")
logical_or = _binary("logical_or", "LogicalOr")
maximum = _binary("maximum", "Maximum")
minimum = _binary("minimum", "Minimum")
not_equal = _binary("not_equal", "NotEqual")
right_shift = _binary("bitwise.right_shift", "RightShift")

reduce_all = _reduction("reduce_all", "All")
reduce_any = _reduction("reduce_any", "Any")
reduce_max = _reduction("reduce_max", "Max")
reduce_min = _reduction("reduce_min", "Min")
reduce_prod = _reduction("reduce_prod", "Prod")
reduce_sum = _reduction("reduce_sum", "Sum")


# Form: smaller_for_larger.


def greater(x: OpArgument, y: OpArgument) -> OpArgument:
    """tf.greater, made as tf.less of the swapped operands."""
    if is_making():
        return own.greater(x, y)
    return less(_in_dtype_of(y, x), x)


def greater_equal(x: OpArgument, y: OpArgument) -> OpArgument:
    """tf.greater_equal, made as tf.less_equal of the swapped operands."""
    if is_making():
        return own.greater_equal(x, y)
    return less_equal(_in_dtype_of(y, x), x)


def _in_dtype_of(y: OpArgument, x: OpArgument) -> OpArgument:
    """A number `y` as a tensor of the dtype of `x`: an op takes that of its first operand."""
    return constant(y, x.dtype) if isinstance(y, int | float) and _is_tensor(x) else y


@_in_graphs("atan2")
def atan2(y: OpArgument, x: OpArgument) -> Tensor | None:
    """tf.atan2, whose first operand is called y."""
    return raw.Atan2(y=y, x=x) if _are_tensors(y, x) else None


@_in_graphs("constant")
def constant(
    value: OpArgument, dtype: dtypes.DType | None = None, shape: OpArgument = None
) -> Tensor | None:
    """tf.constant."""
    if shape is not None:
        return None
    return writing.write_constant(value, dtype)


@_in_graphs("where")
def where(condition: OpArgument, x: OpArgument = None, y: OpArgument = None) -> Tensor | None:
    """tf.where of tensors; one of `x` and `y` may be a number."""
    x, y = _number_like(x, y), _number_like(y, x)
    return raw.SelectV2(condition=condition, t=x, e=y) if _are_tensors(condition, x, y) else None


@_in_graphs("cast")
def cast(x: OpArgument, dtype: dtypes.DType | None) -> Tensor | None:
    """tf.cast between real numbers."""
    dtype = dtype if isinstance(dtype, dtypes.DType) else tf.as_dtype(dtype)
    if not _are_tensors(x) or x.dtype.is_complex or dtype.is_complex:
        return None
    return x if x.dtype == dtype else raw.Cast(x=x, DstT=dtype)


@_in_graphs("bitcast")
def bitcast(input: OpArgument, type: dtypes.DType | None) -> Tensor | None:
    """tf.bitcast."""
    return raw.Bitcast(input=input, type=type) if _are_tensors(input) else None


@_in_graphs("reshape")
def reshape(tensor: OpArgument, shape: OpArgument) -> Tensor | None:
    """tf.reshape to a shape of integers."""
    sizes = _integers(shape)
    if sizes is None or not _are_tensors(tensor):
        return None
    return raw.Reshape(tensor=tensor, shape=_vector(sizes))


@_in_graphs("expand_dims")
def expand_dims(input: OpArgument, axis: OpArgument) -> Tensor | None:
    """tf.expand_dims at an axis, which may be a tensor."""
    if not (isinstance(axis, int) or _is_tensor(axis)) or not _are_tensors(input):
        return None
    return raw.ExpandDims(input=input, axis=axis)


@_in_graphs("squeeze")
def squeeze(input: OpArgument, axis: OpArgument = None) -> Tensor | None:
    """tf.squeeze of stated dimensions."""
    axes = _integers(axis)
    if axes is None or not _are_tensors(input):
        return None
    return raw.Squeeze(input=input, axis=axes)


@_in_graphs("transpose")
def transpose(a: OpArgument, perm: OpArgument = None) -> Tensor | None:
    """tf.transpose by a permutation of integers."""
    axes = _integers(perm)
    if axes is None or not _are_tensors(a):
        return None
    return raw.Transpose(x=a, perm=_vector(axes))


@_in_graphs("concat")
def concat(values: OpArgument, axis: OpArgument) -> Tensor | None:
    """tf.concat of at least two tensors along an axis, which may be a tensor."""
    if not (isinstance(axis, int) or _is_tensor(axis)):
        return None
    if not isinstance(values, list | tuple) or len(values) < 2 or not _are_tensors(*values):
        return None
    return raw.ConcatV2(values=values, axis=axis)


@_in_graphs("unstack")
def unstack(value: OpArgument, num: int | None = None, axis: int = 0) -> list[Tensor] | None:
    """tf.unstack into a number of tensors."""
    if num is None or not _are_tensors(value):
        return None
    return list(raw.Unpack(value=value, num=num, axis=axis))


@_in_graphs("split")
def split(
    value: OpArgument, num_or_size_splits: OpArgument, axis: OpArgument = 0, num: int | None = None
) -> list[Tensor] | None:
    """tf.split into `num` parts, of one size or of the sizes in a tensor."""
    if num is None or not _are_tensors(value):
        return None
    if isinstance(num_or_size_splits, int):
        return list(raw.Split(axis=axis, value=value, num_split=num_or_size_splits))
    if _are_tensors(num_or_size_splits):
        sizes = num_or_size_splits
        return list(raw.SplitV(value=value, size_splits=sizes, axis=axis, num_split=num))
    return None


@_in_graphs("ensure_shape")
def ensure_shape(x: OpArgument, shape: OpArgument) -> Tensor | None:
    """tf.ensure_shape."""
    if not hasattr(shape, "is_fully_defined") or not _are_tensors(x):
        return None
    return raw.EnsureShape(input=x, shape=shape)


@_in_graphs("identity")
def identity(input: OpArgument) -> Tensor | None:
    """tf.identity of an array; only TensorFlow's own handles resources and variants."""
    is_array = _are_tensors(input) and input.dtype.name not in ("resource", "variant")
    return raw.Identity(input=input) if is_array else None


@_in_graphs("gather")
def gather(
    params: OpArgument, indices: OpArgument, axis: OpArgument = None, batch_dims: int = 0
) -> Tensor | None:
    """tf.gather along an integer axis."""
    axis = batch_dims if axis is None else axis
    if not isinstance(axis, int) or not _are_tensors(params, indices):
        return None
    axis = constant(axis, dtypes.int32)
    return raw.GatherV2(params=params, indices=indices, axis=axis, batch_dims=batch_dims)


@_in_graphs("matmul")
def matmul(
    a: OpArgument,
    b: OpArgument,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Tensor | None:
    """tf.matmul of tensors of known ranks; TensorFlow's where complex numbers are transposed."""
    if not _are_tensors(a, b) or None in (a.shape.rank, b.shape.rank) or a.dtype.is_complex:
        return None
    flip_a, flip_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    if a.shape.rank == b.shape.rank == 2:
        return raw.MatMul(a=a, b=b, transpose_a=flip_a, transpose_b=flip_b)
    return raw.BatchMatMulV2(x=a, y=b, adj_x=flip_a, adj_y=flip_b)


@_in_graphs("nn.conv2d")
def conv2d(
    input: OpArgument,
    filters: OpArgument,
    strides: OpArgument,
    padding: OpArgument,
    *,
    dilations: OpArgument,
) -> Tensor | None:
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


def computation(body: Callable[..., OpArgument], operands: Sequence[dtypes.DType]) -> Computation:
    """A function of scalars of these dtypes, which XLA's reducing ops take as an attribute."""
    specs = [tf.TensorSpec([], dtype) for dtype in operands]
    with tf.init_scope():
        return tf.function(body, autograph=False).get_concrete_function(*specs)


def _is_tensor(value: OpArgument) -> bool:
    return isinstance(value, tf.Tensor)


def _are_tensors(*values: OpArgument) -> bool:
    return all(map(_is_tensor, values))


def _integers(values: OpArgument) -> list[int] | None:
    """Axes or sizes as a list; None if they are not known integers."""
    if isinstance(values, int):
        return [values]
    if not isinstance(values, list | tuple) or not all(
        isinstance(value, int | np.integer) for value in values
    ):
        return None
    return list(map(int, values))


def _vector(values: Sequence[int]) -> Tensor:
    return constant(np.array(values, np.int32))
