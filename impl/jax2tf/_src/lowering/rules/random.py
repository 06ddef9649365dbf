"""Random numbers: threefry bit for bit, rbg by XLA's generator, the rest by JAX's functions.

The code of a generator (seed, split, fold in, draw bits) is JAX code over the data of keys. It is
traced once for each shape and becomes one TensorFlow function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import random_bits
from jax2tf._src.lowering.registry import register
from jax2tf._src.tracing import jaxprs
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Param, Shape, Size

# J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3
# (SC 2011): the rotations of Threefry-2x32 in turns of four rounds, and the key schedule's parity.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@register("threefry2x32")
def _threefry2x32(ctx: Context, *key_and_counts: Tensor) -> list[Tensor]:
    # The function is elementwise and serves every shape.
    return ctx.function("threefry2x32", _threefry_block, *key_and_counts, any_shape=True)


def _threefry_block(
    ctx: Context, key0: Tensor, key1: Tensor, count0: Tensor, count1: Tensor
) -> list[Tensor]:
    parity = ops.bitwise_xor(ops.bitwise_xor(key0, key1), _uint32(ctx, _PARITY))
    schedule = (key0, key1, parity)
    x0, x1 = ops.add(count0, key0), ops.add(count1, key1)
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            x0 = ops.add(x0, x1)
            x1 = ops.bitwise_xor(x0, _rotate_left(ctx, x1, rotation))
        x0 = ops.add(x0, schedule[(turn + 1) % 3])
        x1 = ops.add(ops.add(x1, schedule[(turn + 2) % 3]), _uint32(ctx, turn + 1))
    return [x0, x1]


def _rotate_left(ctx: Context, x: Tensor, bits: int) -> Tensor:
    left = ops.left_shift(x, _uint32(ctx, bits))
    return ops.bitwise_or(left, ops.right_shift(x, _uint32(ctx, 32 - bits)))


def _uint32(ctx: Context, value: int) -> Tensor:
    return ctx.constant(np.uint32(value))


@register("iota_2x32_shape")
def _iota_2x32_shape(ctx: Context, *, shape: Shape) -> list[Tensor]:
    """The row-major index of each element of `shape`, as its high and low 32 bits."""
    sizes = ctx.shape(shape)
    if isinstance(sizes, tuple) and np.prod(sizes, dtype=np.float64) < 2**31:
        size = int(np.prod(sizes, dtype=np.int64))
        low = ops.range(ctx.number(0), ctx.number(size), ctx.number(1))
        if len(shape) != 1:
            low = ctx.reshaped(low, sizes)
        result = ops.cast(low, dtypes.uint32)
        if not ctx.target.takes_arrays("uint32"):
            return [ops.cast(ops.raw.ZerosLike(x=low), dtypes.uint32), result]
        return [ops.raw.ZerosLike(x=result), result]
    if not ctx.takes("FloorDiv", "int64"):
        # If sizes are int32, no array has more elements.
        low = ops.reshape(ops.range(ops.reduce_prod(sizes)), sizes)
        return [
            ops.cast(ops.zeros(sizes, dtypes.int32), dtypes.uint32),
            ops.cast(low, dtypes.uint32),
        ]
    count = ops.reshape(
        ops.range(ops.reduce_prod(ops.cast(sizes, dtypes.int64)), dtype=dtypes.int64), sizes
    )
    # Not a shift, which some engine lacks for 64 bits.
    high = count // 2**32
    return [ops.cast(high, dtypes.uint32), ops.cast(count, dtypes.uint32)]


# XLA's default on CPU and GPU is Philox; TensorFlow numbers the algorithms in its own way.
_PHILOX, _THREEFRY = 1, 2
_TF_ALGORITHM = {0: _PHILOX, 1: _THREEFRY, 2: _PHILOX}


@register("rng_bit_generator", op="XlaRngBitGenerator")
def _rng_bit_generator(
    ctx: Context, key: Tensor, *, shape: Shape, dtype: np.dtype, algorithm: Param
) -> list[Tensor]:
    new_state, bits = ops.xla.xla_rng_bit_generator(
        algorithm=_TF_ALGORITHM[int(algorithm)],
        initial_state=_state_of(key),
        shape=ops.convert_to_tensor(ctx.shape(shape), dtypes.int32),
        dtype=_drawn_dtype(dtype),
    )
    return [_key_of(new_state, key), ops.cast(bits, dtypes.to_tf(dtype))]


@register("rng_bit_generator")
def _rng_bits_without_xla(
    ctx: Context, key: Tensor, *, shape: Shape, dtype: np.dtype, algorithm: Param
) -> list[Tensor]:
    generate = {_PHILOX: _philox, _THREEFRY: _threefry}[_TF_ALGORITHM[int(algorithm)]]
    state = _state_of(key)
    bits, steps = generate(ctx, state, shape, _drawn_dtype(dtype))
    new_state = ops.stack([state[0], state[1] + ops.cast(steps, dtypes.uint64)])
    return [_key_of(new_state, key), ops.cast(bits, dtypes.to_tf(dtype))]


def _philox(ctx: Context, state: Tensor, shape: Shape, drawn: DType) -> tuple[Tensor, Tensor]:
    """Random bits, and the number of steps of the counter."""
    size = ops.convert_to_tensor(ctx.shape(shape), dtypes.int32)
    # The high half of the counter is the key, as observed on XLA's CPU backend, bit for bit.
    bits = ops.raw.StatelessRandomUniformFullIntV2(
        shape=size, key=state[:1], counter=ops.stack([state[1], state[0]]), alg=_PHILOX, dtype=drawn
    )
    # Each step of the counter gives 128 bits.
    return bits, -(-ops.reduce_prod(ops.cast(size, dtypes.int64)) * drawn.size // 16)


def _threefry(ctx: Context, state: Tensor, shape: Shape, drawn: DType) -> tuple[Tensor, Tensor]:
    """Like `_philox`; the order of the counts is as observed on XLA's CPU backend.

    A block gives the two halves of 64 bits, or two neighbours along one axis.
    """
    neighbours = drawn == dtypes.uint32
    outer, size, inner = (
        _around_split_axis(ctx, shape) if neighbours else (1, ctx.dim(math.prod(shape)), 1)
    )
    blocks = (size + 1) // 2 if neighbours else size
    steps = outer * blocks * inner
    counts = ops.bitcast(state[1] + ops.cast(ops.range(steps), dtypes.uint64), dtypes.uint32)
    keys = ops.bitcast(state[0], dtypes.uint32)
    operands = (keys[0], keys[1], counts[:, 0], counts[:, 1])
    halves = ctx.function("threefry2x32", _threefry_block, *operands, any_shape=True)
    if neighbours:
        halves = [ops.reshape(half, [outer, blocks, inner]) for half in halves]
        bits = ops.reshape(ops.stack(halves, 2), [outer, 2 * blocks, inner])[:, :size]
    else:
        bits = ops.bitcast(ops.stack(halves, -1), dtypes.uint64)
    return ctx.reshaped(bits, shape), steps


def _around_split_axis(ctx: Context, shape: Shape) -> tuple[Size, Size, Size]:
    """The number of elements before the split axis, along it and after it.

    The split axis is the first axis of even size, or else the first of the largest.
    """
    sizes = ctx.shape(shape)
    if not isinstance(sizes, tuple):
        even = sizes % 2 == 0
        keys = ops.where(ops.reduce_any(even), ops.cast(even, dtypes.int32), sizes)
        axis = ops.argmax(keys, output_type=dtypes.int32)
        places = ops.range(len(shape))
        before, behind = (
            ops.reduce_prod(ops.where(outside, sizes, 1))
            for outside in (places < axis, places > axis)
        )
        return before, sizes[axis], behind
    if not sizes:
        return 1, 1, 1
    keys = [size % 2 == 0 for size in sizes]
    axis = keys.index(True) if any(keys) else sizes.index(max(sizes))
    return math.prod(sizes[:axis]), sizes[axis], math.prod(sizes[axis + 1 :])


def _state_of(key: Tensor) -> Tensor:
    return (
        key if key.dtype == dtypes.uint64 else ops.bitcast(ops.reshape(key, [-1, 2]), dtypes.uint64)
    )


def _key_of(state: Tensor, like: Tensor) -> Tensor:
    if like.dtype == dtypes.uint64:
        return state
    return ops.reshape(ops.bitcast(state, dtypes.uint32), like.shape)


def _drawn_dtype(dtype: np.dtype) -> DType:
    # The bits of a narrow dtype are the low bits of 32.
    return dtypes.uint64 if np.dtype(dtype).itemsize == 8 else dtypes.uint32


@register("rng_uniform")
def _rng_uniform(ctx: Context, low: Tensor, high: Tensor, *, shape: Shape) -> Tensor:
    # Like JAX's primitive, this promises only the distribution, not the numbers.
    return ops.uniform(ctx.shape(shape), low, high, dtype=ctx.out)


@register("random_wrap", "random_unwrap", "random_clone", takes_keys=True)
def _same_data(ctx: Context, data: Tensor, *, impl: Param = None) -> Tensor:
    return data


@register("random_seed", takes_keys=True)
def _random_seed(ctx: Context, seeds: Tensor, *, impl: Param) -> Tensor:
    def seed(seeds: jax.Array) -> jax.Array:
        return _over(impl.seed, seeds.ndim)(seeds)

    return _call_jax(ctx, ("seed", impl), seed, seeds)


@register("random_bits", takes_keys=True)
def _random_bits(ctx: Context, key: Tensor, *, bit_width: int, shape: Shape) -> Tensor:
    impl, rank = _generator(ctx)

    def bits(key: jax.Array) -> jax.Array:
        return _over(lambda k: impl.random_bits(k, bit_width, shape), rank)(key)

    return _call_jax(ctx, ("bits", impl, bit_width, shape), bits, key)


@register("random_split", takes_keys=True)
def _random_split(ctx: Context, key: Tensor, *, shape: Shape) -> Tensor:
    impl, rank = _generator(ctx)

    def split(key: jax.Array) -> jax.Array:
        return _over(lambda k: impl.split(k, shape), rank)(key)

    return _call_jax(ctx, ("split", impl, shape), split, key)


@register("random_fold_in", takes_keys=True)
def _random_fold_in(ctx: Context, key: Tensor, data: Tensor) -> Tensor:
    impl, _ = _generator(ctx)
    fold_in = _over_pairs(impl.fold_in, *(aval.shape for aval in ctx.avals_in))
    return _call_jax(ctx, ("fold_in", impl), fold_in, key, data)


@register("random_gamma", takes_keys=True)
def _random_gamma(ctx: Context, key: Tensor, alpha: Tensor, *, log_space: bool) -> Tensor:
    aval, alphas = ctx.avals_in
    draw = functools.partial(ctx.eqn.primitive.impl, log_space=log_space, use_vmap=True)

    def body(ctx: Context, key: Tensor, alpha: Tensor) -> list[Tensor]:
        specs = (
            jax.ShapeDtypeStruct(aval.shape, aval.dtype),
            jax.ShapeDtypeStruct(alphas.shape, alphas.dtype),
        )
        return ctx.inline(jaxprs.traced(draw, specs), key, alpha)

    return ctx.function(("gamma", aval.dtype, log_space), body, key, alpha)[0]


def _generator(ctx: Context) -> tuple[Param, int]:
    """The implementation of the first operand's keys, and the rank of their array."""
    aval = ctx.avals_in[0]
    return compat.jaxprs.prng_impl(aval.dtype), len(aval.shape)


def _over(function: Callable[..., jax.Array], rank: int) -> Callable[..., jax.Array]:
    """Maps `function` over the first `rank` dimensions of its arguments."""
    return functools.reduce(lambda fun, _: jax.vmap(fun), range(rank), function)


def _over_pairs(
    function: Callable[..., jax.Array], left: Shape, right: Shape
) -> Callable[..., jax.Array]:
    """Maps `function` over two arrays whose shapes pair up as in NumPy.

    A dimension of size 1 is not repeated: the bits of unsafe_rbg depend on the mapped array.
    """
    if not left or not right:
        axes = (0 if left else None, 0 if right else None)
        both = range(len(left) + len(right))
        return functools.reduce(lambda fun, _: jax.vmap(fun, axes), both, function)
    for n, m in zip(reversed(left), reversed(right), strict=True):
        function = _over_pair(function, n == 1 and m != 1, m == 1 and n != 1)
    return function


def _over_pair(
    function: Callable[..., jax.Array], left_is_one: bool, right_is_one: bool
) -> Callable[..., jax.Array]:
    mapped = jax.vmap(function, (None if left_is_one else 0, None if right_is_one else 0))

    def over_first(left: jax.Array, right: jax.Array) -> jax.Array:
        return mapped(left[0] if left_is_one else left, right[0] if right_is_one else right)

    return over_first


def _call_jax(
    ctx: Context,
    key: tuple[Hashable, ...],
    function: Callable[..., jax.Array],
    *operands: Tensor,
) -> Tensor:
    """Calls `function`, a JAX function of the operands' data, as one TensorFlow function."""
    partitionable = ctx.eqn.ctx.threefry_partitionable
    specs = tuple(
        jax.ShapeDtypeStruct(dtypes.physical_shape(aval), dtypes.to_tf(aval.dtype).as_numpy_dtype)
        for aval in ctx.avals_in
    )

    def body(ctx: Context, *operands: Tensor) -> list[Tensor]:
        return ctx.inline(_trace(function, specs, partitionable), *operands)

    if not ctx.target.takes_arrays("uint32"):
        return body(ctx, *operands)[0]
    compiled = True if random_bits.is_compiled(ctx) else None
    return ctx.function((*key, partitionable), body, *operands, jit_compile=compiled)[0]


def _trace(
    function: Callable[..., jax.Array], specs: tuple[jax.ShapeDtypeStruct, ...], partitionable: bool
) -> jex_core.ClosedJaxpr:
    with jax.threefry_partitionable(partitionable):
        return jaxprs.traced(function, specs)
