"""tf.random's stateless samplers, with TensorFlow's own bits.

The bits are Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
keyed and counted from a seed of two integers as TensorFlow does on a CPU, where `alg` is
"auto_select" or "philox". The same seed gives the same uniform, normal and integer samples there
and on both substrates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy as xp

from tf_substrates.numpy import dtypes
from tf_substrates.numpy.errors import invalid_argument
from tf_substrates.numpy.namespaces import op
from tf_substrates.numpy.tensors import convert, static_shape, static_value, traced

JAX_MODE = False

# The round constants of Philox4x32, and the key under which TensorFlow scrambles seeds.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLE = (0x3EC8F720, 0x02461E29)


def _u32(value: Any) -> Any:
    return xp.asarray(value, np.uint32)


def _product(a: int, b: Any) -> tuple[Any, Any]:
    """The high and low 32 bits of a product, of 16-bit halves: JAX may have no 64 bits."""
    a_high, a_low = _u32(a >> 16), _u32(a & 0xFFFF)
    b_high, b_low = b >> 16, b & 0xFFFF
    low = a_low * b_low
    middle = a_high * b_low + (low >> 16)
    other = a_low * b_high + (middle & 0xFFFF)
    return a_high * b_high + (middle >> 16) + (other >> 16), _u32(a) * b


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
    mixed = philox(_words(seed), _SCRAMBLE)
    blocks = -(-count // 4)
    zero = xp.zeros((blocks,), np.uint32)
    counter = (xp.arange(blocks, dtype=np.uint32), zero, zero + mixed[2], zero + mixed[3])
    return xp.stack(philox(counter, (mixed[0], mixed[1])), -1).reshape(-1)[:count]


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
    unit = _unit(bits(seed, pairs * 2 * (2 if wide == np.float64 else 1)), wide)
    radius = xp.sqrt(np.asarray(-2, wide) * xp.log(xp.maximum(unit[0::2], np.asarray(1e-7, wide))))
    angle = np.asarray(2 * np.pi, wide) * unit[1::2]
    samples = xp.stack([xp.sin(angle) * radius, xp.cos(angle) * radius], -1).reshape(-1)
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


@op("random.stateless_normal")
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Any:
    """Normal samples, TensorFlow's own to some units in the last place."""
    _algorithm(alg)
    wanted = _floating(dtype, "tf.random.stateless_normal")
    samples = _normal(seed, static_shape(shape), wanted)
    return samples * convert(stddev, dtype=wanted) + convert(mean, dtype=wanted)


@op("random.split")
def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Any:
    """`num` new seeds of one, the same as TensorFlow's."""
    _algorithm(alg)
    count = int(static_value(num, "num"))
    dtype = convert(seed).dtype
    return stateless_uniform([count, 2], seed, None, None, dtype)


@op("random.fold_in")
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Any:
    """A new seed of a seed and an integer, the same as TensorFlow's."""
    _algorithm(alg)
    number = convert(data)
    first = convert(stateless_uniform([1], seed, None, None, number.dtype))
    return xp.concatenate([first, number.reshape(1)])
