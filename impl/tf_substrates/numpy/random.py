"""tf.random's stateless samplers, with TensorFlow's own bits.

The bits are Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
keyed and counted from a seed of two integers as TensorFlow does on a CPU, where `alg` is
"auto_select" or "philox". The same seed gives the same uniform, normal and integer samples there
and on both substrates.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import importlib
import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import DrawnInLoopError, NoStateError, invalid_argument
from tf_substrates.numpy.namespaces import export, named, op
from tf_substrates.numpy.sine_and_cosine import sine_and_cosine
from tf_substrates.numpy.tensors import convert, is_key, static_shape, static_value, traced

JAX_MODE = False
if JAX_MODE:
    import jax

# The round constants of Philox4x32, and the key under which TensorFlow scrambles seeds.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLE = (0x3EC8F720, 0x02461E29)


def _u32(value: Any) -> Any:
    return xp.asarray(value, np.uint32)


def _product(a: int, b: Any) -> tuple[Any, Any]:
    """The high and low 32 bits of a product."""
    if JAX_MODE:
        return jax.lax.mulhi(jax.numpy.broadcast_to(_u32(a), b.shape), b), _u32(a) * b
    product = np.asarray(b, np.uint64) * np.uint64(a)
    return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)


def philox(counter: tuple, key: tuple) -> tuple:
    """Four words of 32 bits for each counter, by ten rounds."""
    c, k = list(map(_u32, counter)), list(map(_u32, key))
    for _ in range(10):
        high_0, low_0 = _product(_MULTIPLIERS[0], c[0])
        high_1, low_1 = _product(_MULTIPLIERS[1], c[2])
        c = [high_1 ^ c[1] ^ k[0], low_1, high_0 ^ c[3] ^ k[1], low_0]
        k = [k[0] + _u32(_WEYL[0]), k[1] + _u32(_WEYL[1])]
    return tuple(c)


def _words(seed: Any) -> tuple:
    """The seed's two integers as four words of 32 bits, low ones first."""
    array = convert(seed)
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        raise invalid_argument(f"seed must be int32 or int64, got {dtypes.dtype_of(array).name}")
    if tuple(array.shape) != (2,):
        raise invalid_argument(f"seed must have shape [2], not {list(array.shape)}")
    if array.dtype.itemsize == 8:
        low = (array & 0xFFFFFFFF).astype(np.uint32)
        high = ((array >> 32) & 0xFFFFFFFF).astype(np.uint32)
    else:
        low = array.astype(np.uint32)
        high = xp.where(array < 0, np.uint32(0xFFFFFFFF), np.uint32(0))  # as int64 extends the sign
    return low[0], high[0], low[1], high[1]


def bits(seed: Any, count: int) -> Any:
    """`count` words of 32 bits of a seed, as TensorFlow's CPU kernels take them."""
    blocks = xp.arange(-(-count // 4), dtype=np.uint32)
    return blocks_of_seed(seed, blocks)[:count]


def blocks_of_seed(seed: Any, blocks: Any) -> Any:
    """The words of some blocks of four, of which the numbers are given."""
    if isinstance(seed, _Stream):
        words, blocks = (*_pair(seed.seed), *_pair(seed.seed2)), blocks + _u32(seed.first)
    else:
        words = philox(_words(seed), _SCRAMBLE)
    zero = xp.zeros_like(blocks)
    counter = (blocks, zero, zero + words[2], zero + words[3])
    return xp.stack(_once(philox(counter, (words[0], words[1]))), -1).reshape(-1)


def _once(arrays: tuple) -> tuple:
    """The arrays, which XLA would otherwise compute anew for each of what is made of them."""
    return tuple(jax.lax.optimization_barrier(arrays)) if JAX_MODE else arrays


def _algorithm(alg: Any) -> None:
    name = getattr(alg, "name", alg)
    if not isinstance(name, str) or name.lower() not in ("auto_select", "philox"):
        raise NotImplementedError(
            f"tf.random: alg={alg!r} is not here. What to do: alg='philox', or leave it out."
        )


def _unit(words: Any, dtype: np.dtype) -> Any:
    """Uniform floats in [0, 1): random bits as the fraction of floats in [1, 2), less 1."""
    if dtype == np.float64:
        high, low = words[0::2] & 0xFFFFF, words[1::2]
        return (high.astype(dtype) * 2.0**32 + low.astype(dtype)) * 2.0**-52
    fraction = dtypes.ml_dtypes.finfo(dtype).nmant
    scaled = (words & np.uint32((1 << fraction) - 1)).astype(np.float32) * np.float32(
        2.0**-fraction
    )
    return scaled.astype(dtype)


def _uniform(seed: Any, shape: tuple, dtype: np.dtype) -> Any:
    count = math.prod(shape)
    return _unit(bits(seed, count * (2 if dtype == np.float64 else 1)), dtype).reshape(shape)


def _normal(seed: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Box and Muller's pairs, computed in float32 for what is smaller, as TensorFlow does."""
    count = math.prod(shape)
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    pairs = -(-count // 2)
    words = bits(seed, pairs * 2 * (2 if wide == np.float64 else 1))
    return _box_muller(words, wide)[:count].reshape(shape).astype(dtype)


def _box_muller(words: Any, wide: np.dtype) -> Any:
    unit = _unit(words, wide)
    radius = xp.sqrt(np.asarray(-2, wide) * xp.log(xp.maximum(unit[0::2], np.asarray(1e-7, wide))))
    angle = np.asarray(2 * np.pi, wide) * unit[1::2]
    pairs = _once(tuple(part * radius for part in sine_and_cosine(angle)))
    return xp.stack(pairs, -1).reshape(-1)


# TensorFlow reserves this many draws for each sample that takes an open number of them. Of a
# group's first candidates all but one in 10^40 have enough within two standard deviations.
_RESERVED, _CANDIDATES = 256, 64


def _truncated_normal(seed: Any, shape: tuple, dtype: np.dtype) -> Any:
    """Normal samples of which those beyond two standard deviations are drawn again."""
    count = math.prod(shape)
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    size = 2 if wide == np.float64 else 4
    groups = -(-count // size)
    words = _CANDIDATES * wide.itemsize // 4
    first = np.arange(groups, dtype=np.uint32)[:, None] * np.uint32(_RESERVED * size // 4)
    blocks = first + np.arange(words // 4, dtype=np.uint32)
    normal = _box_muller(blocks_of_seed(seed, xp.asarray(blocks.reshape(-1))), wide)
    normal = normal.reshape(groups, -1)
    order = xp.argsort(xp.abs(normal) >= 2, axis=1, stable=True)[:, :size]
    samples = xp.take_along_axis(normal, order, axis=1).reshape(-1)
    return samples[:count].reshape(shape).astype(dtype)


def _floating(dtype: Any, what: str) -> np.dtype:
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise invalid_argument(f"Value for attr 'dtype' of {wanted.name} is no float: {what}")
    return dtypes.numpy_dtype(wanted)


@op("random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Any:
    """Uniform samples in [minval, maxval); of integers without limits every bit pattern.

    Args:
      shape: of the result, known under jax.jit.
      seed: two integers; the same ones give TensorFlow's own samples.

    Raises:
      ValueError: an integer dtype with one limit alone.
      tf.errors.InvalidArgumentError: the seed is not two integers.
    """
    _algorithm(alg)
    wanted, dims = dtypes.numpy_dtype(dtype), static_shape(shape)
    if wanted.kind not in "iu":
        wanted = _floating(dtype, "tf.random.stateless_uniform")
        low = convert(minval, dtype=wanted)
        high = convert(1 if maxval is None else maxval, dtype=wanted)
        return _uniform(seed, dims, wanted) * (high - low) + low
    if dtypes.as_dtype(dtype).name not in ("int32", "int64", "uint32", "uint64"):
        raise ValueError(f"Argument `dtype` got invalid value {dtypes.as_dtype(dtype)!r}")
    count, large = math.prod(dims), wanted.itemsize == 8
    words = bits(seed, count * (2 if large else 1))
    if large:
        unsigned = words[0::2].astype(np.uint64) | (words[1::2].astype(np.uint64) << np.uint64(32))
    else:
        unsigned = words
    if maxval is None:
        if minval is not None:
            raise ValueError("For integer output dtype, argument `maxval` must not be `None`")
        return unsigned.reshape(dims).astype(wanted)
    if minval is None:
        raise ValueError(
            "For integer output dtype, argument `minval` and `maxval` must be both `None` or both"
            " non-`None`."
        )
    low, high = convert(minval, dtype=wanted), convert(maxval, dtype=wanted)
    if not traced(low) and not traced(high) and np.any(np.asarray(low >= high)):
        raise invalid_argument(f"Need minval < maxval, got {low} >= {high}")
    reach = (high - low).astype(unsigned.dtype)
    return (low + (unsigned.reshape(dims) % reach).astype(wanted)).astype(wanted)


def _stateless(kind: str, sampler: Callable, documentation: str) -> Callable:
    def call(
        shape: Any,
        seed: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: Any = None,
        alg: Any = "auto_select",
    ) -> Any:
        _algorithm(alg)
        wanted = _floating(dtype, f"tf.random.stateless_{kind}")
        samples = sampler(seed, static_shape(shape), wanted)
        return samples * convert(stddev, dtype=wanted) + convert(mean, dtype=wanted)

    named(call, f"stateless_{kind}", documentation)
    return op(f"random.stateless_{kind}")(call)


stateless_normal = _stateless(
    "normal", _normal, "Normal samples, TensorFlow's own to some units in the last place."
)
stateless_truncated_normal = _stateless(
    "truncated_normal",
    _truncated_normal,
    "Normal samples within two standard deviations, TensorFlow's own.",
)


@op("random.stateless_categorical")
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: Any = None
) -> Any:
    """Classes drawn with probabilities `softmax(logits)`, TensorFlow's own.

    Args:
      logits: `[batch, classes]`.
      num_samples: how many of each row.

    Returns:
      `[batch, num_samples]` of int32 or int64.

    Raises:
      tf.errors.InvalidArgumentError: `logits` is no matrix, or there are no classes.
    """
    x = convert(logits)
    if len(x.shape) != 2:
        raise invalid_argument(f"logits should be a matrix, got shape {list(x.shape)}")
    wanted = dtypes.numpy_dtype(dtypes.int64 if dtype is None else dtype)
    count = int(static_value(num_samples, "num_samples"))
    rows, classes = x.shape
    if classes == 0:
        raise invalid_argument(f"num_classes should be positive, got {classes}")
    wide = dtypes.numpy_dtype(dtypes.float64)
    words = bits(seed, rows * count * 2)
    if wide == np.float64:
        unit = _unit(words, wide)
    else:  # the leading 20 bits of the same number
        unit = (words[0::2] & 0xFFFFF).astype(wide) * np.float32(2.0**-20)
    x = x.astype(wide)
    weights = xp.cumsum(xp.exp(x - xp.max(x, axis=1, keepdims=True)), axis=1)
    wanted_sums = unit.reshape(rows, count) * weights[:, -1:]
    return xp.sum(weights[:, None, :] <= wanted_sums[:, :, None], axis=-1).astype(wanted)


@op("random.categorical")
def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: Any = None
) -> Any:
    """Classes drawn with probabilities `softmax(logits)`.

    With `seed` or tf.random.set_seed they are TensorFlow's own, call after call.

    Raises:
      ValueError: inside jax.jit there is no seed.
    """
    x = convert(logits)
    count = int(static_value(num_samples, "num_samples"))
    wanted = dtypes.int64 if dtype is None else dtype
    # Of each row TensorFlow reserves two draws for each sample, of which it counts whole fours.
    reserved = (x.shape[0] if x.shape else 1) * (-(-count // 4) * 4) * 2
    stream = _GENERATORS.next("categorical", wanted, seed, reserved)
    return stateless_categorical(x, count, stream, wanted)


@op("random.split", "random.experimental.stateless_split")
def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Any:
    """`num` new seeds of one, the same as TensorFlow's."""
    _algorithm(alg)
    count = int(static_value(num, "num"))
    dtype = convert(seed).dtype
    return stateless_uniform([count, 2], seed, None, None, dtype)


@op("random.fold_in", "random.experimental.stateless_fold_in")
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Any:
    """A new seed of a seed and an integer, the same as TensorFlow's."""
    _algorithm(alg)
    number = convert(data)
    first = convert(stateless_uniform([1], seed, None, None, number.dtype))
    return xp.concatenate([first, number.reshape(1)])


# Samplers with a state: TensorFlow's generators of eager mode, one for each kind, dtype and seeds.

# The seed of operations where only they have one.
_DEFAULT_SEED = 87654321
_SEED_LIMIT = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class _Stream:
    """Where a generator is: its seeds, and the number of its next block of four words."""

    seed: int
    seed2: int
    first: Any


# The number of the step that runs, of each loop around the code, the outermost first; None for one
# that JAX traces once for all steps.
_STEPS: contextvars.ContextVar[tuple] = contextvars.ContextVar("steps", default=())


@contextlib.contextmanager
def step_of_loop(number: Any) -> Iterator[None]:
    """While a step of a loop is traced, whose number is an integer, a traced one, or None."""
    token = _STEPS.set((*_STEPS.get(), number))
    try:
        yield
    finally:
        _STEPS.reset(token)


def _step_of(kind: str) -> Any:
    """How many steps of the loop around the code have drawn before; 0 outside of loops."""
    steps = _STEPS.get()
    if any(step is None for step in steps):
        raise DrawnInLoopError(
            f"tf.random.{kind}: JAX traces one step of a loop for all steps, and each draws anew."
            f" What to do: use tf.random.stateless_{kind} with a seed that the loop carries."
        )
    if len(steps) > 1:
        raise NotImplementedError(
            f"tf.random.{kind}: it is in a loop inside of a loop under jax.jit, where it is not"
            f" known how often it has drawn. What to do: use tf.random.stateless_{kind} with a seed"
            " that the loops carry."
        )
    return steps[0] if steps else 0


class _Generators:
    """What tf.random.set_seed sets, and what has been drawn since."""

    def __init__(self) -> None:
        self.reset(None)

    def reset(self, seed: int | None) -> None:
        self.seed = seed
        self.seeds = random.Random(seed)
        self.drawn: dict[tuple, int] = {}

    def next(
        self, kind: str, dtype: Any, seed: int | None, count: int, blocks: int = _RESERVED
    ) -> _Stream:
        """The generator of an operation; it goes on behind what this call may take.

        That is `blocks` of four words for each of `count` samples.

        Raises:
          NoStateError: JAX is tracing, and the operation has no seed.
          DrawnInLoopError: JAX traces one step for all steps of a loop.
        """
        if _SHAPES_ALONE.get():
            return _Stream(_DEFAULT_SEED, 0, 0)
        step = _step_of(kind)
        pair = self.pair(kind, seed)
        key = (kind, dtypes.as_dtype(dtype).name, *pair)
        first = self.drawn.get(key, 0) + step * count * blocks
        if not (JAX_MODE and traced(xp.zeros(()))):
            self.drawn[key] = first + count * blocks
        return _Stream(*pair, first)

    def pair(self, kind: str, seed: int | None) -> tuple[int, int]:
        """The two seeds of an operation: that of tf.random.set_seed, and its own.

        Raises:
          NoStateError: JAX is tracing, and the operation has no seed.
        """
        if seed is not None:
            return _small(_DEFAULT_SEED if self.seed is None else self.seed, int(seed))
        if JAX_MODE and traced(xp.zeros(())):
            raise NoStateError(
                f"tf.random.{kind}: it has no seed, and inside jax.jit there is no state to draw"
                " one from. What to do: pass `seed`, which gives the same samples in every call, or"
                f" use tf.random.stateless_{kind} with a seed that is an argument."
            )
        own = self.seeds.randint(0, 2**31 - 1)
        return (self.seeds.randint(1, 2**31 - 1) if self.seed is None else self.seed, own)


def _small(first: int, second: int) -> tuple[int, int]:
    """Two seeds as TensorFlow takes them: below 2^31 - 1, and not both 0."""
    small = (first % _SEED_LIMIT, second % _SEED_LIMIT)
    return small if any(small) else (0, _SEED_LIMIT)


_GENERATORS = _Generators()


def seeds_of(kind: str, seed: int | None) -> tuple[int, int]:
    """The two seeds of an operation that keeps its own state."""
    return _GENERATORS.pair(kind, seed)


def philox_words(seed: int, seed2: int) -> Iterator[int]:
    """The stream of 32-bit words of two seeds, computed by NumPy also on JAX."""
    twin = importlib.import_module(".numpy.random", "tf_substrates")
    for block in itertools.count(step=64):
        blocks = np.arange(block, block + 64, dtype=np.uint32)
        yield from twin.blocks_of_seed(twin._Stream(seed, seed2, 0), blocks).tolist()


_SHAPES_ALONE: contextvars.ContextVar[bool] = contextvars.ContextVar("shapes alone", default=False)


@contextlib.contextmanager
def no_values() -> Iterator[None]:
    """While shapes and dtypes are asked for and no values: nothing is drawn from generators."""
    token = _SHAPES_ALONE.set(True)
    try:
        yield
    finally:
        _SHAPES_ALONE.reset(token)


def _pair(seed: int) -> tuple:
    """The two words of a 64-bit seed, the low one first."""
    return _u32(seed & 0xFFFFFFFF), _u32(seed >> 32 & 0xFFFFFFFF)


@export("random.set_seed", "compat.v1.set_random_seed", "compat.v1.random.set_random_seed")
def set_seed(seed: int) -> None:
    """Sets the seed of what draws samples with a state, and begins anew."""
    _GENERATORS.reset(seed)


def _has_no_state(seed: Any) -> bool:
    """Whether a seed is of the stateless samplers; tests on JAX give those to the others too."""
    return np.ndim(seed) == 1 or (JAX_MODE and is_key(seed))


@op("random.uniform")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: Any = None,
) -> Any:
    """Uniform samples; with `seed` or tf.random.set_seed TensorFlow's own, call after call.

    Where `seed` is two integers or a key of JAX's, they are those of stateless_uniform.

    Raises:
      ValueError: an integer dtype without `maxval`, or inside jax.jit no seed.
    """
    if _has_no_state(seed):
        return stateless_uniform(shape, seed, minval, maxval, dtype)
    if maxval is None and not dtypes.as_dtype(dtype).is_floating:
        raise ValueError(f"Must specify maxval for integer dtype {dtypes.as_dtype(dtype)!r}")
    stream = _GENERATORS.next("uniform", dtype, seed, math.prod(static_shape(shape)))
    return stateless_uniform(shape, stream, minval, maxval, dtype)


def _normal_with_state(kind: str, stateless: Callable) -> None:
    def call(
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        seed: Any = None,
        name: Any = None,
    ) -> Any:
        if _has_no_state(seed):
            return stateless(shape, seed, mean, stddev, dtype)
        stream = _GENERATORS.next(kind, dtype, seed, math.prod(static_shape(shape)))
        return stateless(shape, stream, mean, stddev, dtype)

    named(
        call,
        kind,
        f"tf.random.stateless_{kind}, with the seeds of `seed` and tf.random.set_seed. With these,"
        " TensorFlow's own samples, call after call.",
    )
    op(f"random.{kind}")(call)


_normal_with_state("normal", stateless_normal)
_normal_with_state("truncated_normal", stateless_truncated_normal)


@op("random.shuffle")
def shuffle(value: Any, seed: Any = None, name: Any = None) -> Any:
    """The rows in a random order; with `seed` or tf.random.set_seed TensorFlow's own.

    Raises:
      ValueError: inside jax.jit there is no seed.
    """
    rows = convert(value)
    if len(rows.shape) == 0 or rows.shape[0] < 2:
        return rows
    count = rows.shape[0]
    stream = _GENERATORS.next("shuffle", dtypes.int32, seed, -(-(count - 1) // 4), blocks=1)
    # Each row but the last changes places with itself or one of those behind it (Fisher and Yates).
    left = np.arange(count, 1, -1, dtype=np.uint32)
    swaps = (bits(stream, count - 1) % left).astype(np.int32) + np.arange(count - 1, dtype=np.int32)
    order = xp.arange(count, dtype=np.int32)
    if JAX_MODE:
        order = jax.lax.fori_loop(0, count - 1, lambda i, o: _swapped(o, i, swaps[i]), order)
    else:
        for i, j in enumerate(swaps):
            order[i], order[j] = order[j], order[i]
    return rows[order]


def _swapped(order: Any, i: Any, j: Any) -> Any:
    at = xp.stack([i, j])
    return order.at[at].set(order[at[::-1]])
