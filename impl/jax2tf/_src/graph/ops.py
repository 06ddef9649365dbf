"""The functions that rules call, over the maker of our graphs.

They have the names and the arguments of those in the package `ops`, and make the same nodes as
TensorFlow's functions do in a graph; a test compares them. Loops and branches hold their graphs, so
their nodes differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from jax2tf._src.graph import make
from jax2tf._src.graph.make import Maker
from jax2tf._src.graph.symbols import Symbol, SymbolShape, as_array, converted
from jax2tf._src.graph.symbols import raw as raw
from jax2tf._src.util.dtypes import DTYPES, DType, float32, int32, int64
from jax2tf._src.util.typing import PyTree

# Constants of so many elements are written out, larger ones are a Fill.
_SMALL = 1000


def _integers(value: PyTree, dtype: DType = int32) -> Symbol:
    """A shape, axes or places as a tensor of integers."""
    if isinstance(value, SymbolShape):
        value = value.as_list()
    is_array = isinstance(value, np.ndarray | np.generic | Symbol)
    return converted(value, None if is_array else dtype)


def _of(value: PyTree, like: PyTree) -> PyTree:
    """A number as a constant of the dtype of a tensor."""
    return value if isinstance(value, Symbol) else converted(value, _dtype_of(like))


def _dtype_of(x: PyTree) -> DType | None:
    return x.dtype if isinstance(x, Symbol) else None


def _unary(op: str, operand: str = "x") -> Callable[[PyTree], Symbol]:
    return lambda x: getattr(raw, op)(**{operand: _of(x, None)})


def _binary(op: str) -> Callable[[PyTree, PyTree], Symbol]:
    return lambda x, y: getattr(raw, op)(x=_of(x, y), y=_of(y, x))


def _reduction(op: str) -> Callable[..., Symbol]:
    def reduce(x: PyTree, axis: PyTree = None, keepdims: bool = False) -> Symbol:
        x = _of(x, None)
        axes = np.arange(x.shape.rank, dtype=np.int32) if axis is None else axis
        return getattr(raw, op)(input=x, axis=_integers(axes), keep_dims=keepdims)

    return reduce


# Elementwise.
cos = _unary("Cos")
cosh = _unary("Cosh")
erf = _unary("Erf")
exp = _unary("Exp")
floor = _unary("Floor")
is_finite = _unary("IsFinite")
is_inf = _unary("IsInf")
is_nan = _unary("IsNan")
log = _unary("Log")
reciprocal = _unary("Reciprocal")
sin = _unary("Sin")
sinh = _unary("Sinh")
sqrt = _unary("Sqrt")
square = _unary("Square")
tanh = _unary("Tanh")
identity = _unary("Identity", "input")
elu = _unary("Elu", "features")
relu = _unary("Relu", "features")
relu6 = _unary("Relu6", "features")

add = _binary("AddV2")
bitwise_and = _binary("BitwiseAnd")
bitwise_or = _binary("BitwiseOr")
bitwise_xor = _binary("BitwiseXor")
equal = _binary("Equal")
left_shift = _binary("LeftShift")
less = _binary("Less")
_less_equal = _binary("LessEqual")
logical_and = _binary("LogicalAnd")
logical_or = _binary("LogicalOr")
maximum = _binary("Maximum")
minimum = _binary("Minimum")
not_equal = _binary("NotEqual")
pow = _binary("Pow")
right_shift = _binary("RightShift")
squared_difference = _binary("SquaredDifference")

reduce_all = _reduction("All")
reduce_any = _reduction("Any")
reduce_max = _reduction("Max")
reduce_min = _reduction("Min")
reduce_prod = _reduction("Prod")
reduce_sum = _reduction("Sum")


def greater(x: PyTree, y: PyTree) -> Symbol:
    """x > y, made as y < x."""
    return less(y, x)


def greater_equal(x: PyTree, y: PyTree) -> Symbol:
    """x >= y, made as y <= x."""
    return _less_equal(y, x)


def abs(x: PyTree) -> Symbol:
    """The absolute value."""
    x = _of(x, None)
    if x.dtype.is_complex:
        return raw.ComplexAbs(x=x, Tout=x.dtype.real_dtype)
    return raw.Abs(x=x)


def sign(x: PyTree) -> Symbol:
    """The sign of real numbers."""
    return raw.Sign(x=x)


def atan2(y: PyTree, x: PyTree) -> Symbol:
    """The angle of (x, y)."""
    return raw.Atan2(y=_of(y, x), x=_of(x, y))


def cast(x: PyTree, dtype: PyTree) -> Symbol:
    """The numbers in another dtype; the tensor itself if it has that dtype."""
    to = np.dtype(dtype)
    x = _of(x, None)
    return x if x.dtype.dtype == to else raw.Cast(x=x, DstT=to)


def bitcast(input: PyTree, type: PyTree) -> Symbol:
    """The same bits as another dtype."""
    return raw.Bitcast(input=_of(input, None), type=type)


def complex(real: PyTree, imag: PyTree) -> Symbol:
    """Complex numbers of their parts."""
    a, b = _of(real, imag), _of(imag, real)
    is_wide = a.dtype.size == 8
    return raw.Complex(real=a, imag=b, Tout=np.complex128 if is_wide else np.complex64)


def real(input: PyTree) -> Symbol:
    """The real part; a real tensor itself."""
    x = _of(input, None)
    return raw.Real(input=x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else x


def imag(input: PyTree) -> Symbol:
    """The imaginary part, zeros of a real tensor."""
    x = _of(input, None)
    return raw.Imag(input=x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else zeros_like(x)


def conj(x: PyTree) -> Symbol:
    """The conjugate; a real tensor itself."""
    return raw.Conj(input=x) if x.dtype.is_complex else x


def where(condition: PyTree, x: PyTree = None, y: PyTree = None) -> Symbol:
    """`x` where the condition is true, else `y`; without them the places where it is true."""
    if x is None:
        return raw.Where(condition=condition)
    return raw.SelectV2(condition=_of(condition, None), t=_of(x, y), e=_of(y, x))


# Arrays.


def constant(value: PyTree, dtype: PyTree = None, shape: PyTree = None) -> Symbol:
    """A constant, with a shape one that repeats a number."""
    of = None if dtype is None else DTYPES[np.dtype(dtype).name]
    if isinstance(value, Symbol):
        raise TypeError("a tensor is no constant")
    array = as_array(value, of)
    if shape is not None:
        array = np.broadcast_to(array, tuple(shape)) if array.size == 1 else array.reshape(shape)
    return converted(array)


def convert_to_tensor(value: PyTree, dtype: PyTree = None) -> Symbol:
    """A tensor of numbers, arrays and tensors in nested lists."""
    return converted(value, None if dtype is None else DTYPES[np.dtype(dtype).name])


def broadcast_to(input: PyTree, shape: PyTree) -> Symbol:
    """The elements repeated to a shape."""
    return raw.BroadcastTo(input=_of(input, None), shape=_integers(shape))


def concat(values: PyTree, axis: PyTree) -> Symbol:
    """Tensors one behind the other along an axis."""
    if isinstance(values, Symbol):
        return identity(values)
    if len(values) == 1:
        return identity(values[0])
    like = next((x for x in values if isinstance(x, Symbol)), None)
    return raw.ConcatV2(values=[_of(x, like) for x in values], axis=_integers(axis))


def ensure_shape(x: PyTree, shape: PyTree) -> Symbol:
    """The tensor, with a shape that is checked when it runs."""
    return raw.EnsureShape(input=x, shape=shape)


def expand_dims(input: PyTree, axis: PyTree) -> Symbol:
    """The tensor with another dimension of size one."""
    return raw.ExpandDims(input=_of(input, None), axis=_integers(axis))


def fill(dims: PyTree, value: PyTree) -> Symbol:
    """A tensor of one number."""
    return raw.Fill(dims=_integers(dims), value=_of(value, None))


def gather(params: PyTree, indices: PyTree, axis: PyTree = None, batch_dims: int = 0) -> Symbol:
    """Rows at places along an axis."""
    return raw.GatherV2(
        params=_of(params, None),
        indices=_integers(indices),
        axis=_integers(batch_dims if axis is None else axis),
        batch_dims=batch_dims,
    )


def gather_nd(params: PyTree, indices: PyTree) -> Symbol:
    """Parts at places of several dimensions."""
    return raw.GatherNd(params=params, indices=indices)


def one_hot(
    indices: PyTree,
    depth: PyTree,
    on_value: PyTree = None,
    off_value: PyTree = None,
    axis: int = -1,
    dtype: PyTree = None,
) -> Symbol:
    """Rows with one number at the index."""
    of = float32 if dtype is None else DTYPES[np.dtype(dtype).name]
    on = converted(1 if on_value is None else on_value, of)
    off = converted(0 if off_value is None else off_value, of)
    return raw.OneHot(
        indices=indices, depth=_integers(depth), on_value=on, off_value=off, axis=axis
    )


def _filled(shape: PyTree, number: int, dtype: PyTree) -> Symbol:
    of = np.dtype(dtype)
    sizes = shape if isinstance(shape, Symbol) else _listed(shape)
    if not isinstance(sizes, Symbol):
        if all(isinstance(size, int | np.integer) for size in sizes):
            array = np.full(tuple(sizes), number, of) if np.prod(sizes) < _SMALL else None
            if array is not None:
                return converted(array)
        sizes = _integers(sizes)
    return raw.Fill(dims=sizes, value=converted(np.array(number, of)))


def _listed(shape: PyTree) -> PyTree:
    if isinstance(shape, SymbolShape):
        return shape.as_list()
    return [shape] if isinstance(shape, int) else list(shape)


def zeros(shape: PyTree, dtype: PyTree = float32) -> Symbol:
    """Zeros of a shape."""
    return _filled(shape, 0, dtype)


def ones(shape: PyTree, dtype: PyTree = float32) -> Symbol:
    """Ones of a shape."""
    return _filled(shape, 1, dtype)


def zeros_like(input: PyTree) -> Symbol:
    """Zeros of the shape and dtype of a tensor."""
    if input.shape.is_fully_defined():
        return zeros(input.shape, input.dtype)
    return raw.ZerosLike(x=input)


def ones_like(input: PyTree) -> Symbol:
    """Ones of the shape and dtype of a tensor."""
    if input.shape.is_fully_defined():
        return ones(input.shape, input.dtype)
    return raw.OnesLike(x=input)


def pad(
    tensor: PyTree, paddings: PyTree, mode: str = "CONSTANT", constant_values: PyTree = 0
) -> Symbol:
    """The tensor with edges."""
    edges = _integers(paddings)
    if mode.upper() != "CONSTANT":
        return raw.MirrorPad(input=tensor, paddings=edges, mode=mode.upper())
    if not isinstance(constant_values, Symbol) and np.all(np.equal(constant_values, 0)):
        return raw.Pad(input=tensor, paddings=edges)
    value = _of(constant_values, tensor)
    return raw.PadV2(input=tensor, paddings=edges, constant_values=value)


def range(start: PyTree, limit: PyTree = None, delta: PyTree = 1, dtype: PyTree = None) -> Symbol:
    """Numbers from `start` to `limit`, or from 0 to `start`."""
    if limit is None:
        start, limit = 0, start
    parts = (start, limit, delta)
    known = next((x.dtype for x in parts if isinstance(x, Symbol)), None)
    of = known if dtype is None else DTYPES[np.dtype(dtype).name]
    if of is None:
        of = float32 if any(isinstance(x, float) for x in parts) else int32
    a, b, c = (converted(x, of) for x in parts)
    return raw.Range(start=a, limit=b, delta=c)


def reshape(tensor: PyTree, shape: PyTree) -> Symbol:
    """The elements in another shape."""
    return raw.Reshape(tensor=_of(tensor, None), shape=_integers(shape))


def reverse(tensor: PyTree, axis: PyTree) -> Symbol:
    """The elements in reverse order along axes."""
    return raw.ReverseV2(tensor=tensor, axis=_integers(axis))


def shape(input: PyTree, out_type: PyTree = int32) -> Symbol:
    """The shape; a constant if it is known."""
    if input.shape.is_fully_defined():
        return converted(np.array(input.shape.as_list(), np.dtype(out_type)))
    return raw.Shape(input=input, out_type=out_type)


def size(input: PyTree, out_type: PyTree = int32) -> Symbol:
    """The number of elements; a constant if it is known."""
    if input.shape.is_fully_defined():
        return converted(np.array(input.shape.num_elements(), np.dtype(out_type)))
    return raw.Size(input=input, out_type=out_type)


def slice(input_: PyTree, begin: PyTree, size: PyTree) -> Symbol:
    """The part from `begin` of these sizes."""
    known = [x.dtype for x in (begin, size) if isinstance(x, Symbol)]
    first, sizes = (_integers(x, known[0] if known else int32) for x in (begin, size))
    return raw.Slice(input=input_, begin=first, size=sizes)


def split(
    value: PyTree, num_or_size_splits: PyTree, axis: PyTree = 0, num: int | None = None
) -> list[Symbol]:
    """Equal parts, or parts of these sizes."""
    if isinstance(num_or_size_splits, int):
        at = _integers(axis)
        return raw.Split(axis=at, value=value, num_split=num_or_size_splits)
    sizes = _integers(num_or_size_splits)
    n = sizes.shape[0] if num is None else num
    return raw.SplitV(value=value, size_splits=sizes, axis=_integers(axis), num_split=n)


def squeeze(input: PyTree, axis: PyTree = None) -> Symbol:
    """The tensor without dimensions of size one."""
    axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return raw.Squeeze(input=input, axis=axes)


def stack(values: PyTree, axis: int = 0) -> Symbol:
    """Tensors as rows of one."""
    if not any(isinstance(x, Symbol) for x in values):
        return converted(list(values))
    like = next(x for x in values if isinstance(x, Symbol))
    return raw.Pack(values=[_of(x, like) for x in values], axis=axis)


def strided_slice(
    input_: PyTree, begin: PyTree, end: PyTree, strides: PyTree = None, **masks: int
) -> Symbol:
    """A part by begins, ends and strides."""
    first = _integers(begin)
    steps = ones_like(first) if strides is None else _integers(strides)
    last = _integers(end)
    return raw.StridedSlice(input=input_, begin=first, end=last, strides=steps, **masks)


def tile(input: PyTree, multiples: PyTree) -> Symbol:
    """The tensor repeated along each dimension."""
    return raw.Tile(input=input, multiples=_integers(multiples))


def transpose(a: PyTree, perm: PyTree = None) -> Symbol:
    """The dimensions in another order, without one in reverse."""
    order = np.arange(a.shape.rank, dtype=np.int32)[::-1] if perm is None else perm
    return raw.Transpose(x=_of(a, None), perm=_integers(order))


def unstack(value: PyTree, num: int | None = None, axis: int = 0) -> list[Symbol]:
    """The rows along an axis."""
    return raw.Unpack(value=value, num=value.shape[axis] if num is None else num, axis=axis)


# Along dimensions.


def argmax(input: PyTree, axis: PyTree = 0, output_type: PyTree = int64) -> Symbol:
    """The place of the largest element."""
    return raw.ArgMax(input=input, dimension=_integers(axis), output_type=output_type)


def argmin(input: PyTree, axis: PyTree = 0, output_type: PyTree = int64) -> Symbol:
    """The place of the smallest element."""
    return raw.ArgMin(input=input, dimension=_integers(axis), output_type=output_type)


def _cumulative(op: str) -> Callable[..., Symbol]:
    def along(
        x: PyTree, axis: PyTree = 0, exclusive: bool = False, reverse: bool = False
    ) -> Symbol:
        return getattr(raw, op)(x=x, axis=_integers(axis), exclusive=exclusive, reverse=reverse)

    return along


cumprod = _cumulative("Cumprod")
cumsum = _cumulative("Cumsum")
cumulative_logsumexp = _cumulative("CumulativeLogsumexp")


def top_k(input: PyTree, k: PyTree = 1, sorted: bool = True) -> tuple[Symbol, Symbol]:
    """The largest elements of each row, and their places."""
    return raw.TopKV2(input=input, k=_integers(k), sorted=sorted)


# Matrices.


def matmul(
    a: PyTree,
    b: PyTree,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Symbol:
    """The product of matrices."""
    if a.dtype.is_complex:
        # The ops of many matrices conjugate what they transpose.
        a, b = conj(a) if transpose_a else a, conj(b) if transpose_b else b
    flip_a, flip_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    if a.shape.rank == b.shape.rank == 2 and not a.dtype.is_complex:
        return raw.MatMul(a=a, b=b, transpose_a=flip_a, transpose_b=flip_b)
    return raw.BatchMatMulV2(x=a, y=b, adj_x=flip_a, adj_y=flip_b)


def matrix_transpose(a: PyTree, conjugate: bool = False) -> Symbol:
    """Matrices with rows and columns exchanged."""
    rank = a.shape.rank
    order = np.array([*np.arange(rank - 2), rank - 1, rank - 2], np.int32)
    op = raw.ConjugateTranspose if conjugate and a.dtype.is_complex else raw.Transpose
    return op(x=a, perm=order)


def band_part(input: PyTree, num_lower: PyTree, num_upper: PyTree) -> Symbol:
    """Matrices with zeros outside of a band."""
    lower, upper = (_integers(n) for n in (num_lower, num_upper))
    return raw.MatrixBandPart(input=input, num_lower=lower, num_upper=upper)


def diag(diagonal: PyTree) -> Symbol:
    """Matrices with these diagonals."""
    minus = np.array(-1, np.int32)
    return raw.MatrixDiagV3(
        diagonal=diagonal,
        k=np.array(0, np.int32),
        num_rows=minus,
        num_cols=minus,
        padding_value=np.zeros((), diagonal.dtype.dtype),
    )


def diag_part(input: PyTree) -> Symbol:
    """The diagonals of matrices."""
    zero = np.zeros((), input.dtype.dtype)
    return raw.MatrixDiagPartV3(input=input, k=np.array(0, np.int32), padding_value=zero)


def set_diag(input: PyTree, diagonal: PyTree) -> Symbol:
    """Matrices with other diagonals."""
    return raw.MatrixSetDiagV3(input=input, diagonal=diagonal, k=np.array(0, np.int32))


def cholesky(input: PyTree) -> Symbol:
    """The lower triangular factors."""
    return raw.Cholesky(input=input)


def eigh(tensor: PyTree) -> tuple[Symbol, Symbol]:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return raw.SelfAdjointEigV2(input=tensor, compute_v=True)


def qr(input: PyTree, full_matrices: bool = False) -> tuple[Symbol, Symbol]:
    """An orthogonal and an upper triangular factor."""
    return raw.Qr(input=input, full_matrices=full_matrices)


def triangular_solve(
    matrix: PyTree, rhs: PyTree, lower: bool = True, adjoint: bool = False
) -> Symbol:
    """The solutions for triangular matrices."""
    return raw.MatrixTriangularSolve(matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint)


# Networks.


def conv2d(
    input: PyTree, filters: PyTree, strides: PyTree, padding: PyTree, *, dilations: PyTree
) -> Symbol:
    """The convolution of images whose channels come last; strides and dilations are pairs."""
    explicit = not isinstance(padding, str)
    return raw.Conv2D(
        input=input,
        filter=filters,
        strides=[1, *strides, 1],
        padding="EXPLICIT" if explicit else padding,
        explicit_paddings=[n for pair in padding for n in pair] if explicit else [],
        dilations=[1, *dilations, 1],
    )


def leaky_relu(features: PyTree, alpha: float = 0.2) -> Symbol:
    """x, or alpha*x where x is negative."""
    return raw.LeakyRelu(features=features, alpha=alpha)


def softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.Softmax(logits=logits)


def log_softmax(logits: PyTree, axis: int = -1) -> Symbol:
    """The logarithm of the softmax of the last dimension."""
    _check_last(logits, axis)
    return raw.LogSoftmax(logits=logits)


def _check_last(x: PyTree, axis: int) -> None:
    if axis not in (-1, x.shape.rank - 1):
        raise NotImplementedError(f"softmax along axis {axis} of {x!r}")


# Control flow. Nested tuples and lists of tensors are taken and given as they are.


def cond(pred: PyTree, true_fn: Callable[[], PyTree], false_fn: Callable[[], PyTree]) -> PyTree:
    """The results of one of two functions."""
    results: list[PyTree] = []
    branches = [_flat(function, results) for function in (true_fn, false_fn)]
    tensors = make.branch(_of(pred, None).tensor, *branches)
    return _as(results[0], tensors)


def switch_case(branch_index: PyTree, branch_fns: Sequence[Callable[[], PyTree]]) -> PyTree:
    """The results of the function with this number, of the last one for other numbers."""
    results: list[PyTree] = []
    branches = [_flat(function, results) for function in branch_fns]
    return _as_like(results, make.switch(_of(branch_index, None).tensor, branches))


def while_loop(
    cond: Callable[..., PyTree], body: Callable[..., PyTree], loop_vars: Sequence[PyTree]
) -> PyTree:
    """What is carried when the condition is false."""
    leaves, tree = jax.tree.flatten(tuple(loop_vars), is_leaf=_is_leaf)

    def step(*tensors: PyTree) -> list[PyTree]:
        given = jax.tree.unflatten(tree, _symbols(tensors))
        results = jax.tree.leaves(body(*given), is_leaf=_is_leaf)
        return [_of(x, None).tensor for x in results]

    def goes_on(*tensors: PyTree) -> PyTree:
        return _of(cond(*jax.tree.unflatten(tree, _symbols(tensors))), None).tensor

    results = make.loop(goes_on, step, [_of(x, None).tensor for x in leaves])
    return jax.tree.unflatten(tree, _symbols(results))


def _is_leaf(x: PyTree) -> bool:
    return isinstance(x, Symbol)


def _symbols(tensors: Sequence[PyTree]) -> list[Symbol]:
    maker = make.current()
    return [Symbol(x, maker) for x in tensors]


def _flat(function: Callable[[], PyTree], results: list[PyTree]) -> Callable[[], list[PyTree]]:
    """A function of a list of tensors; the structure of the results is added to `results`."""

    def flat() -> list[PyTree]:
        leaves, tree = jax.tree.flatten(function(), is_leaf=_is_leaf)
        results.append(tree)
        return [_of(x, None).tensor for x in leaves]

    return flat


def _as(tree: PyTree, tensors: Sequence[PyTree]) -> PyTree:
    return jax.tree.unflatten(tree, _symbols(tensors))


def _as_like(results: list[PyTree], tensors: Sequence[PyTree]) -> PyTree:
    return _as(results[0], tensors)


# The graph under construction, and what is known of a tensor.


def executing_eagerly() -> bool:
    """Ops of a graph never run while it is made."""
    return False


def get_default_graph() -> Maker:
    """The graph under construction."""
    return make.current()


def get_static_value(tensor: PyTree) -> np.ndarray | None:
    """The value of a tensor that is known; None for others."""
    known = tensor.tensor
    if known.value is not None or known.sizes is None:
        return known.value
    sizes = known.sizes
    is_number = all(isinstance(size, int) for size in sizes.ravel())
    return sizes.astype(known.dtype) if is_number else None


def is_tensor(x: PyTree) -> bool:
    """Whether it is a tensor of a graph."""
    return isinstance(x, Symbol)


is_symbolic_tensor = is_tensor


def get_current_name_scope() -> str:
    """The name stack of the nodes that are made now."""
    return make.current().scope


@contextlib.contextmanager
def name_scope(name: str) -> Iterator[None]:
    """A context whose nodes have another level in their name stack; without one with "/"."""
    maker = make.current()
    before = maker.scope
    is_whole = not name or name.endswith("/")
    maker.scope = name.rstrip("/") if is_whole else f"{before}/{name}".lstrip("/")
    try:
        yield
    finally:
        maker.scope = before


@contextlib.contextmanager
def control_dependencies(control_inputs: PyTree) -> Iterator[None]:
    """A context; ops have no effects, and none waits for another."""
    yield
