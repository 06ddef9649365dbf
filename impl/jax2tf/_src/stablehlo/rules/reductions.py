"""Reductions over dimensions and over windows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.program import Op, Region, ops_of
from jax2tf._src.stablehlo.registry import reads, reads_custom_call
from jax2tf._src.stablehlo.rules.combiners import combiner
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Dim as Size
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

_select_and_gather_add_p, _select_and_scatter_p = named(
    "select_and_gather_add", "select_and_scatter"
)

_OPERATORS: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": lax.add,
    "multiply": lax.mul,
    "maximum": lax.max,
    "minimum": lax.min,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
}
_OF_BOOLS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
_CUMULATIVE = {
    "add": lax.cumsum,
    "multiply": lax.cumprod,
    "maximum": lax.cummax,
    "minimum": lax.cummin,
}


def _operator(region: Region, dtype: PyTree) -> str:
    """The op of a region that `lax.reduce` knows; "" for another region."""
    kind = combiner(region)
    kind = _OF_BOOLS.get(kind, kind) if dtype == np.bool_ else kind
    return kind if kind in _OPERATORS else ""


def _identity(kind: str, dtype: PyTree) -> Array:
    """The number that does not change the result of an operator."""
    if kind in ("add", "or", "xor"):
        return np.zeros((), dtype)
    if kind == "multiply":
        return np.ones((), dtype)
    if kind == "and":
        return np.array(True) if dtype == np.bool_ else np.array(-1).astype(dtype)
    if not jnp.issubdtype(dtype, jnp.floating):
        limits = jnp.iinfo(dtype)
        return np.array(limits.min if kind == "maximum" else limits.max, dtype)
    infinity = np.array(-np.inf if kind == "maximum" else np.inf).astype(dtype)
    if np.isinf(infinity.astype(np.float32)):
        return infinity
    finite = jnp.finfo(dtype)  # some dtypes of 8 bits have no infinity
    return np.array(finite.min if kind == "maximum" else finite.max, dtype)


def _is_identity(kind: str, initial: Array) -> bool:
    """Whether an initial value is known and changes nothing."""
    if not isinstance(initial, np.ndarray) or initial.size != 1:
        return False
    return bool((initial == _identity(kind, initial.dtype)).all())


@reads("stablehlo.reduce")
def _reduce(step: Step, *operands: Array, dimensions: tuple[int, ...]) -> list[Array]:
    count = len(operands) // 2
    arrays, initials = operands[:count], operands[count:]
    if count == 1 and (kind := _operator(step.op.regions[0], arrays[0].dtype)):
        return [_reduced(kind, arrays[0], initials[0], dimensions)]
    if count == 2 and len(dimensions) == 1 and _indexes(step, dimensions[0]):
        for name, find, value in _SEARCHES:
            if _computes(step, name):
                (axis,) = dimensions
                index = find(arrays[0], axis, arrays[1].dtype)
                operator = _OF_BOOLS[value] if arrays[0].dtype == np.bool_ else value
                return [_reduced(operator, arrays[0], initials[0], dimensions), index]
    return list(lax.reduce(arrays, tuple(initials), _computation(step.region(0)), dimensions))


def _reduced(kind: str, x: Array, initial: Array, dimensions: tuple[int, ...]) -> Array:
    return lax.reduce(x, _initial(kind, initial), _OPERATORS[kind], dimensions)


def _initial(kind: str, initial: Array) -> Array:
    """An initial value as lax.reduce finds it: the identity itself if the value is one."""
    return _identity(kind, initial.dtype) if _is_identity(kind, initial) else initial


def _computation(function: Callable[..., list[Array]]) -> Callable[..., PyTree]:
    """A region as lax.reduce takes it: of two structures of arrays."""

    def combine(x: PyTree, y: PyTree) -> PyTree:
        return tuple(as_array(r) for r in function(*jax.tree.leaves(x), *jax.tree.leaves(y)))

    return combine


_SEARCHES = (
    ("argmax", lax.argmax, "maximum"),
    ("argmin", lax.argmin, "minimum"),
)
_MOVES_ONLY = {"compare", "select", "or", "and", "not", "constant"}


def _indexes(step: Step, dimension: int) -> bool:
    """Whether the second operand of a reduction counts along the reduced dimension."""
    op: Op | None = step.definition(1)
    return op is not None and (
        op.name in ("stablehlo.iota", "stablehlo.dynamic_iota")
        and op.attributes["iota_dimension"] == dimension
    )


def _computes(step: Step, name: str) -> bool:
    """Whether the region keeps the first largest (smallest) element with its index, or the first
    NaN. A region that only compares and selects is decided by trying each order of its operands.
    """
    region = step.op.regions[0]
    if any(op.name.removeprefix("stablehlo.") not in _MOVES_ONLY for op in ops_of(region)):
        return False
    if region.captures or not all(isinstance(t.dtype, np.dtype) for t in step.types):
        return False
    number, index = (t.dtype for t in step.types)
    pairs = [(np.array(v, number), np.array(i, index)) for v in _samples(number) for i in (0, 1)]
    # A reduction keeps the order of its elements, so that of two NaNs the first one has come first.
    tried = [
        (a, b)
        for a, b in itertools.product(pairs, pairs)
        if a[1] < b[1] or (a[1] > b[1] and not (a[0] != a[0] and b[0] != b[0]))
    ]
    function = step.region(0)
    with jax.ensure_compile_time_eval():
        stacked = [np.stack([pair[i][j] for pair in tried]) for i in (0, 1) for j in (0, 1)]
        value, place = jax.vmap(lambda *xs: tuple(function(*xs)))(*stacked)
    for (a, b), v, i in zip(tried, np.asarray(value), np.asarray(place), strict=True):
        expected = _chosen(name, a, b)
        is_same = np.array_equal(v, expected[0], equal_nan=jnp.issubdtype(number, jnp.inexact))
        if not (is_same and i == expected[1]):
            return False
    return True


def _samples(dtype: np.dtype) -> Sequence[float]:
    if dtype == np.bool_:
        return (False, True)
    if jnp.issubdtype(dtype, jnp.floating):
        return (1.0, 2.0, np.nan, np.inf, -np.inf)
    return (1, 2)


def _chosen(name: str, a: Sequence[Array], b: Sequence[Array]) -> Sequence[Array]:
    """What argmax and argmin keep of two elements with their indices."""
    first, second = sorted((a, b), key=lambda pair: int(pair[1]))
    for pair in (first, second):
        if pair[0] != pair[0]:
            return pair
    is_better = second[0] > first[0] if name == "argmax" else second[0] < first[0]
    return second if is_better else first


@reads("stablehlo.reduce_window")
def _reduce_window(
    step: Step,
    *operands: Array,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...] | None = None,
    base_dilations: tuple[int, ...] | None = None,
    window_dilations: tuple[int, ...] | None = None,
    padding: Array | None = None,
) -> list[Array]:
    ones = (1,) * len(window_dimensions)
    sizes = (n or ones for n in (window_strides, base_dilations, window_dilations))
    strides, base, dilations = sizes
    pads = [(0, 0)] * len(ones) if padding is None else [tuple(map(int, p)) for p in padding]
    window = _Window(window_dimensions, strides, pads, base, dilations)
    return _over_windows(step, step.op.regions[0], step.region(0), operands, window)


class _Window(NamedTuple):
    """The last arguments of lax.reduce_window."""

    dimensions: tuple[Size, ...]
    strides: tuple[Size, ...]
    padding: Sequence[tuple[Size, ...]]
    base_dilations: tuple[Size, ...]
    dilations: tuple[Size, ...]

    @property
    def is_dense(self) -> bool:
        """Whether it moves by one element and leaves none out."""
        return {*self.strides, *self.base_dilations, *self.dilations} <= {1}


def _over_windows(
    step: Step,
    region: Region,
    function: Callable[..., list[Array]],
    operands: Sequence[Array],
    window: _Window,
) -> list[Array]:
    count = len(operands) // 2
    arrays, initials = operands[:count], operands[count:]
    kind = _operator(region, arrays[0].dtype) if count == 1 else ""
    if not kind:
        found = None
        if count == 1:
            found = _cumulative_logsumexp(step, region, function, operands, window)
        if count == 2:
            found = _gathered(step, region, operands, window)
        if found is not None:
            return [found] if count == 1 else [None, found]
        computation = _computation(function)
        return list(lax.reduce_window(tuple(arrays), tuple(initials), computation, *window))
    if window.is_dense and _is_identity(kind, initials[0]):
        found = _cumulative(kind, arrays[0], window)
        if found is not None:
            return [found]
    initial = _initial(kind, initials[0])
    return [lax.reduce_window(arrays[0], initial, _OPERATORS[kind], *window)]


@reads_custom_call("stablehlo.dynamic_reduce_window")
@takes_sizes
def _dynamic_reduce_window(step: Step, *operands: Array) -> list[Array]:
    """The last five operands are the window, as JAX writes it where sizes are open."""
    arrays, shapes = operands[:-5], operands[-5:]
    sizes = (step.sizes(shape, "window") for shape in shapes)
    dimensions, strides, base, dilations, flat = sizes
    pads = list(zip(flat[::2], flat[1::2], strict=True))
    window = _Window(dimensions, strides, pads, base, dilations)
    (name,) = step.op.attributes["called_computations"]
    region = step.evaluator.program.functions[name].body
    function = lambda *xs: step.call(name, *xs)  # noqa: E731
    return _over_windows(step, region, function, [as_array(x) for x in arrays], window)


def _cumulative(kind: str, x: Array, window: _Window) -> Array | None:
    """A window over all elements before (after) each one is a cumulative reduction."""
    whole = _whole_axis(x, window)
    if whole is None or kind not in _CUMULATIVE:
        return None
    axis, reverse = whole
    return _CUMULATIVE[kind](x, axis=axis, reverse=reverse)


def _whole_axis(x: Array, window: _Window) -> tuple[int, bool] | None:
    """The axis along which a window reaches to the first element, or to the last (True)."""
    axes = [i for i, n in enumerate(window.dimensions) if n != 1]
    axes = axes or [i for i, n in enumerate(x.shape) if n == 1][:1]
    if len(axes) != 1:
        return None
    (axis,) = axes
    others = [pad for i, pad in enumerate(window.padding) if i != axis]
    n, pads = x.shape[axis], window.padding[axis]
    if window.dimensions[axis] != n or any(pad != (0, 0) for pad in others):
        return None
    return (axis, pads == (0, n - 1)) if pads in ((n - 1, 0), (0, n - 1)) else None


def _cumulative_logsumexp(
    step: Step,
    region: Region,
    function: Callable[..., list[Array]],
    operands: Sequence[Array],
    window: _Window,
) -> Array | None:
    """JAX writes lax.cumlogsumexp as a window whose computation is logaddexp. Trying tells it."""
    x, initial = operands
    whole = _whole_axis(x, window) if window.is_dense else None
    is_float = jnp.issubdtype(x.dtype, jnp.inexact)
    names = {op.name.removeprefix("stablehlo.") for op in ops_of(region)}
    is_closed = all(isinstance(step.environment.get(n), np.ndarray) for n in region.captures)
    if whole is None or not is_float or not is_closed or "exponential" not in names:
        return None
    if not isinstance(initial, np.ndarray) or not (initial.real == -np.inf).all():
        return None
    is_complex = jnp.issubdtype(x.dtype, jnp.complexfloating)
    samples = np.array(_ANGLES if is_complex else _NUMBERS)
    pairs = np.array(list(itertools.product(samples, repeat=2))).astype(x.dtype).T
    with jax.ensure_compile_time_eval():
        found, expected = (
            np.asarray(jax.jit(jax.vmap(f))(*pairs)).astype(complex if is_complex else float)
            for f in (lambda a, b: as_array(function(a, b)[0]), jnp.logaddexp)
        )
    error = 64 * float(jnp.finfo(x.dtype).eps)
    parts = ((found.real, expected.real), (found.imag, expected.imag))
    if not all(np.allclose(*part, error, error, equal_nan=True) for part in parts):
        return None
    axis, reverse = whole
    return lax.cumlogsumexp(x, axis=axis, reverse=reverse)


_NUMBERS = (0.25, -1.5, 80.0, -0.0, float("inf"), -float("inf"), float("nan"))
_ANGLES = (0.5 + 3j, -1.5 - 2j, 1 + 2.5j, 80j, -0.0, complex(-float("inf"), 0.0))


def _gathered(
    step: Step, region: Region, operands: Sequence[Array], window: _Window
) -> Array | None:
    """The second operand at the largest (smallest) element of the first one in each window: the
    tangent of lax.reduce_window, which JAX writes as a reduction of pairs.
    """
    x, tangents, initial, zero = operands
    direction = _choice(region)
    if direction not in _CHOICES or step.op.results[0] in step.evaluator.used:
        return None
    if not _is_identity(_CHOICES[direction][0], initial) or not _is_identity("add", zero):
        return None
    return _select_and_gather_add_p.bind(
        tangents,
        x,
        select_prim=_CHOICES[direction][1],
        window_dimensions=tuple(window.dimensions),
        window_strides=tuple(window.strides),
        padding=tuple(map(tuple, window.padding)),
        base_dilation=tuple(window.base_dilations),
        window_dilation=tuple(window.dilations),
    )


_CHOICES = {"GE": ("maximum", lax.ge_p), "LE": ("minimum", lax.le_p)}


def _choice(region: Region) -> str:
    """The comparison by which a region chooses one of two pairs; "" for another region."""
    if [op.name for op in region.ops] != ["stablehlo.compare", *["stablehlo.select"] * 2]:
        return ""
    compare, first, second = region.ops
    x, t, y, u = region.arguments
    is_choice = (
        compare.operands == (x, y)
        and first.operands == (*compare.results, x, y)
        and second.operands == (*compare.results, t, u)
        and region.results == (*first.results, *second.results)
    )
    return compare.attributes["comparison_direction"] if is_choice else ""


@reads("stablehlo.select_and_scatter")
def _select_and_scatter(
    step: Step,
    x: Array,
    source: Array,
    initial: Array,
    *,
    window_dimensions: tuple[int, ...] | None = None,
    window_strides: tuple[int, ...] | None = None,
    padding: Array | None = None,
) -> Array:
    ones = (1,) * x.ndim
    pads = [(0, 0)] * x.ndim if padding is None else [tuple(map(int, p)) for p in padding]
    window = (window_dimensions or ones, window_strides or ones, pads)
    kind = {"GE": "maximum", "LE": "minimum"}.get(_comparison(step.op.regions[0]), "")
    adds = combiner(step.op.regions[1]) == "add" and _is_identity("add", initial)
    # JAX 0.10 has no gradients by integers.
    if kind and adds and jnp.issubdtype(x.dtype, jnp.floating):
        return _transposed_maximum(kind, x, source, window)
    select, scatter = (jax.make_jaxpr(_of_scalars(step, i))(initial, initial) for i in (0, 1))
    return _select_and_scatter_p.bind(
        x,
        source,
        initial,
        select_jaxpr=select.jaxpr,
        select_consts=tuple(select.consts),
        scatter_jaxpr=scatter.jaxpr,
        scatter_consts=tuple(scatter.consts),
        window_dimensions=tuple(window[0]),
        window_strides=tuple(window[1]),
        padding=tuple(pads),
    )


def _transposed_maximum(kind: str, x: Array, source: Array, window: PyTree) -> Array:
    """The gradient of the largest (smallest) elements of windows."""
    identity = _identity(kind, x.dtype)
    _, transpose = jax.vjp(lambda x: lax.reduce_window(x, identity, _OPERATORS[kind], *window), x)
    (result,) = transpose(source)
    return result


def _of_scalars(step: Step, index: int) -> Callable[[Array, Array], Array]:
    region = step.region(index)
    return lambda x, y: as_array(region(x, y)[0])


def _comparison(region: Region) -> str:
    if len(region.ops) != 1 or region.ops[0].name != "stablehlo.compare":
        return ""
    (op,) = region.ops
    return op.attributes["comparison_direction"] if op.operands == region.arguments else ""
