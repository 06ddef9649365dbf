"""Ops that make arrays, join and part them, and move their dimensions."""

from __future__ import annotations

import functools
import math

import numpy as np

from jax2tf._src.graph import dimensions
from jax2tf._src.graph.graph import Size
from jax2tf._src.graph.shapes.registry import Shape, Sizes, Use, gives, shown


@gives("Rank", "Size")
def _scalar(use: Use) -> Shape:
    return ()


@gives("Shape")
def _shape(use: Use) -> Shape:
    shape = use.operands[0].shape
    return (None if shape is None else len(shape),)


@gives("Fill", "RandomUniform", "RandomUniformInt", "StatelessRandomUniformV2")
def _filled(use: Use) -> Shape:
    return use.shape_in(0)


@gives("StatelessRandomUniformFullIntV2")
def _random_integers(use: Use) -> Shape:
    return use.shape_in(0)


@gives("BroadcastTo")
def _broadcast_to(use: Use) -> Shape:
    shape, given = use.shape_in(1), use.operands[0].shape
    if shape is None or given is None:
        return shape
    if len(given) > len(shape):
        raise use.error(f"rank {len(given)} cannot be broadcast to rank {len(shape)}")
    tail = shape[len(shape) - len(given) :]
    return (*shape[: len(shape) - len(given)], *map(functools.partial(_repeated, use), given, tail))


def _repeated(use: Use, given: Size, stated: Size) -> Size:
    """The size of a dimension that is broadcast to a stated size."""
    if given == 1 or given is None:
        return stated
    if isinstance(given, int) and stated is None:
        return given
    if isinstance(given, int) and isinstance(stated, int) and given != stated:
        raise use.error(f"size {given} cannot be broadcast to {stated}")
    return stated


@gives("BroadcastArgs")
def _broadcast_shapes(use: Use) -> Shape:
    (m,), (n,) = use.ranked(0, 1), use.ranked(1, 1)
    return (dimensions.maximum(m, n),)


@gives("Range")
def _range(use: Use) -> Shape:
    values = [x.value for x in use.operands]
    for i in range(3):
        use.ranked(i, 0)
    if all(x is not None for x in values):
        start, limit, delta = (x.item() for x in values if x is not None)
        if delta == 0:
            raise use.error("the step is 0")
        if (limit - start) * delta < 0:
            raise use.error(f"no steps of {delta} lead from {start} to {limit}")
        return (math.ceil((limit - start) / delta),)
    start, limit, delta = map(use.size, range(3))
    if not isinstance(delta, int) or delta == 0:
        return (None,)
    length = dimensions.subtract(limit, start)
    if delta < 0:
        length = dimensions.subtract(0, length)
    return (dimensions.maximum(dimensions.divide_up(length, abs(delta)), 0),)


@gives("LinSpace")
def _linear(use: Use) -> Shape:
    return (use.size(2),)


@gives("Reshape")
def _reshape(use: Use) -> Shape:
    sizes = use.vector(1)
    if sizes is None:
        return None
    if sizes.count(-1) > 1 or any(isinstance(size, int) and size < -1 for size in sizes):
        raise use.error(f"it cannot have the shape {shown(sizes)}")
    given = use.operands[0].shape
    if given is None:
        return tuple(None if size == -1 else size for size in sizes)
    total = dimensions.product(given)
    missing = [i for i, size in enumerate(sizes) if size is None or size == -1]
    rest = dimensions.product(size for i, size in enumerate(sizes) if i not in missing)
    if not missing:
        differ = isinstance(rest, int) and isinstance(total, int) and rest != total
        if differ:
            raise use.error(f"{total} elements do not fit the shape {shown(sizes)}")
        return sizes
    shape = [None if size == -1 else size for size in sizes]
    if len(missing) == 1:
        if isinstance(rest, int) and isinstance(total, int) and (rest and total % rest):
            raise use.error(f"{total} elements do not fit the shape {shown(sizes)}")
        shape[missing[0]] = dimensions.divide(total, rest)
    return tuple(shape)


@gives("ExpandDims")
def _expand(use: Use) -> Shape:
    shape, axis = use.shape(0), use.size(1)
    if not isinstance(axis, int):
        return (None,) * (len(shape) + 1)
    at = use.axis(axis, len(shape), has_end=True)
    return (*shape[:at], 1, *shape[at:])


@gives("Squeeze")
def _squeeze(use: Use) -> Shape:
    shape = use.shape(0)
    axes = {use.axis(axis, len(shape)) for axis in use.attributes["squeeze_dims"]}
    if not axes:
        known = all(isinstance(size, int) for size in shape)
        return tuple(size for size in shape if size != 1) if known else None
    for axis in axes:
        if isinstance(shape[axis], int) and shape[axis] != 1:
            raise use.error(f"dimension {axis} has size {shape[axis]}, not 1")
    return tuple(size for i, size in enumerate(shape) if i not in axes)


@gives("ConjugateTranspose", "Transpose")
def _transpose(use: Use) -> Shape:
    order, given = use.vector(1), use.operands[0].shape
    if given is None:
        return None if order is None else (None,) * len(order)
    if order is None or None in order:
        return (None,) * len(given)
    axes = [use.axis(axis, len(given)) for axis in order if isinstance(axis, int)]
    if sorted(axes) != list(range(len(given))):
        raise use.error(f"{shown(order)} is no permutation of {len(given)} dimensions")
    return tuple(given[axis] for axis in axes)


@gives("ReverseV2")
def _reverse(use: Use) -> Shape:
    shape = use.operands[0].shape
    axes = use.vector(1)
    if shape is not None and axes is not None:
        known = [use.axis(axis, len(shape)) for axis in axes if isinstance(axis, int)]
        if len(set(known)) < len(known):
            raise use.error(f"the axes {shown(axes)} repeat")
    return shape


@gives("InvertPermutation")
def _permutation(use: Use) -> Shape:
    return use.ranked(0, 1)


@gives("Tile")
def _tile(use: Use) -> Shape:
    shape, repeats = use.shape(0), use.vector(1)
    if repeats is None:
        return (None,) * len(shape)
    if len(repeats) != len(shape):
        raise use.error(f"{len(repeats)} multiples do not fit rank {len(shape)}")
    if any(isinstance(n, int) and n < 0 for n in repeats):
        raise use.error(f"the multiples {shown(repeats)} are negative")
    return tuple(map(dimensions.multiply, shape, repeats))


@gives("ConcatV2")
def _concat(use: Use) -> Shape:
    n = len(use.operands) - 1
    known = [i for i in range(n) if use.operands[i].shape is not None]
    if not known:
        return None
    rank = len(use.at_least(known[0], 1))
    axis = use.size(n)
    shapes = [use.ranked(i, rank) for i in known]
    if not isinstance(axis, int):
        return (None,) * rank
    at = use.axis(axis, rank)
    length = dimensions.total(shape[at] for shape in shapes) if len(known) == n else None
    others: list[Shape] = [_with(shape, at, None) for shape in shapes]
    rest = functools.reduce(use.merged, others)
    assert rest is not None
    return (*rest[:at], length, *rest[at + 1 :])


@gives("Pack")
def _pack(use: Use) -> Shape:
    shape = functools.reduce(use.merged, (x.shape for x in use.operands))
    if shape is None:
        return None
    at = use.axis(use.attributes["axis"], len(shape), has_end=True)
    return (*shape[:at], len(use.operands), *shape[at:])


@gives("Unpack")
def _unpack(use: Use) -> list[Shape]:
    n = use.attributes["num"]
    shape = use.at_least(0, 1)
    at = use.axis(use.attributes["axis"], len(shape))
    if isinstance(shape[at], int) and shape[at] != n:
        raise use.error(f"dimension {at} has size {shape[at]}, not {n}")
    return [(*shape[:at], *shape[at + 1 :])] * n


@gives("Split")
def _split(use: Use) -> list[Shape]:
    n = use.attributes["num_split"]
    shape, axis = use.at_least(1, 1), use.size(0)
    if not isinstance(axis, int):
        return [(None,) * len(shape)] * n
    at = use.axis(axis, len(shape))
    size = shape[at]
    if isinstance(size, int) and size % n:
        raise use.error(f"dimension {at} of size {size} has no {n} equal parts")
    return [_with(shape, at, dimensions.divide(size, n))] * n


@gives("SplitV")
def _split_into(use: Use) -> list[Shape]:
    n = use.attributes["num_split"]
    shape, axis, sizes = use.at_least(0, 1), use.size(2), use.vector(1)
    if sizes is not None and len(sizes) != n:
        raise use.error(f"{len(sizes)} sizes are stated for {n} parts")
    if not isinstance(axis, int):
        return [(None,) * len(shape)] * n
    at = use.axis(axis, len(shape))
    if sizes is None:
        return [_with(shape, at, None)] * n
    known = dimensions.total(size for size in sizes if size != -1)
    rest = dimensions.subtract(shape[at], known)
    is_too_large = isinstance(rest, int) and rest < 0
    if sizes.count(-1) > 1 or is_too_large or (isinstance(rest, int) and rest and -1 not in sizes):
        raise use.error(f"dimension {at} of size {shape[at]} has no parts {shown(sizes)}")
    return [_with(shape, at, rest if size == -1 else size) for size in sizes]


def _with(shape: Sizes, axis: int, size: Size) -> Sizes:
    return (*shape[:axis], size, *shape[axis + 1 :])


@gives("OneHot")
def _one_hot(use: Use) -> Shape:
    shape, axis = use.shape(0), use.attributes["axis"]
    depth = use.size(1)
    if isinstance(depth, int) and depth < 0:
        raise use.error(f"the depth {depth} is negative")
    at = use.axis(axis, len(shape), has_end=True)
    return (*shape[:at], depth, *shape[at:])


@gives("Where")
def _where(use: Use) -> Shape:
    shape = use.operands[0].shape
    return (None, None if shape is None else len(shape))


@gives("MatrixBandPart")
def _band(use: Use) -> Shape:
    return use.at_least(0, 2)


@gives("MatrixDiagPartV3")
def _diagonals(use: Use) -> Shape:
    shape = use.at_least(0, 2)
    places = _places(use, 1)
    if places is None:
        return None
    lower, upper = places
    rows, columns = shape[-2:]
    # The longest diagonal of those between `lower` and `upper`.
    height = dimensions.add(rows, min(upper, 0))
    width = dimensions.subtract(columns, max(lower, 0))
    length = dimensions.minimum(height, width)
    count = () if lower == upper else (upper - lower + 1,)
    return (*shape[:-2], *count, length)


def _places(use: Use, i: int) -> tuple[int, int] | None:
    """The lowest and the highest diagonal that an operand states."""
    sizes = use.vector(i)
    if sizes is None:
        return None
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        return None
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise use.error(f"the diagonals {shown(sizes)} should be one number, or two in order")
    return numbers[0], numbers[-1]


@gives("MatrixDiagV3")
def _with_diagonals(use: Use) -> Shape:
    shape, places = use.at_least(0, 1), _places(use, 1)
    if places is None:
        return None
    lower, upper = places
    batch = shape[:-1] if lower == upper else shape[:-2]
    # The smallest matrix that has the longest diagonal.
    least_rows = dimensions.add(shape[-1], -min(upper, 0))
    least_columns = dimensions.add(shape[-1], max(lower, 0))
    rows, columns = use.size(2), use.size(3)
    if rows == -1 and columns == -1:
        rows = columns = dimensions.maximum(least_rows, least_columns)
    elif rows == -1:
        rows = least_rows
    elif columns == -1:
        columns = least_columns
    return (*batch, rows, columns)


@gives("MatrixSetDiagV3")
def _set_diagonals(use: Use) -> Shape:
    return use.at_least(0, 2)


@gives("LowerBound", "UpperBound")
def _bounds(use: Use) -> Shape:
    use.ranked(0, 2)
    return use.ranked(1, 2)


@gives("DepthToSpace", "SpaceToDepth")
def _depth(use: Use) -> Shape:
    n, height, width, channels = use.ranked(0, 4)
    block = use.attributes["block_size"]
    if use.attributes["data_format"] != "NHWC":
        return None
    if use.op == "DepthToSpace":
        sizes = (dimensions.multiply(height, block), dimensions.multiply(width, block))
        return (n, *sizes, dimensions.divide(channels, block * block))
    sizes = (dimensions.divide(height, block), dimensions.divide(width, block))
    return (n, *sizes, dimensions.multiply(channels, block * block))


@gives("BatchToSpaceND", "SpaceToBatchND")
def _batches(use: Use) -> Shape:
    shape, blocks, edges = use.shape(0), use.vector(1), use.sizes(2)
    if blocks is None:
        return (None,) * len(shape)
    n = len(blocks)
    if edges is None:
        edges = np.full((n, 2), None, object)
    count = dimensions.product(blocks)
    around = [dimensions.add(*pair) for pair in edges.tolist()]
    inner, rest = shape[1 : n + 1], shape[n + 1 :]
    if use.op == "SpaceToBatchND":
        padded = map(dimensions.add, inner, around)
        sizes = tuple(map(dimensions.divide, padded, blocks))
        return (dimensions.multiply(shape[0], count), *sizes, *rest)
    larger = map(dimensions.multiply, inner, blocks)
    sizes = tuple(map(dimensions.subtract, larger, around))
    return (dimensions.divide(shape[0], count), *sizes, *rest)
