"""Computes the bits of Philox and Threefry, for targets without TensorFlow's random generator.

rng_bit_generator takes four words of uint32: a key of 64 bits and a counter of 64 bits, each with
the lower word first. The blocks of the counter fill the result in XLA's order on a CPU.
_src/lowering/rules/random.py uses the same order with ops of 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core
from jax.extend import random as jex_random

from jax2tf._src.lowering.passes.legalize import uint32
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.util.typing import Aval, aval_of

Function = Callable[..., Sequence[jax.Array]]
# The lower and the upper half of a 64-bit number.
Halves: TypeAlias = tuple[jax.Array, jax.Array]

_OP = "StatelessRandomUniformFullIntV2"
_THREEFRY = 1
# J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3
# (SC 2011): the multipliers of Philox-4x32 and the increments of its keys in each of ten rounds.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_GROWTH = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def function_of(eqn: jex_core.JaxprEqn, target: Target) -> Function | None:
    """Returns the function for rng_bit_generator if the target has no generator, or None.

    It is also None for unknown shapes, and for 64-bit results if the target has no 64-bit numbers.
    """
    if eqn.primitive is not lax.rng_bit_generator_p or target.takes(_OP, "uint64"):
        return None
    key, bits = aval_of(eqn.invars[0]), aval_of(eqn.outvars[1])
    has_wide_bits = not target.has(Quirk.COMPUTES_64_BITS_IN_32)
    is_taken = key.dtype == np.uint32 and (bits.dtype.itemsize < 8 or has_wide_bits)
    is_known = all(isinstance(d, int) for d in bits.shape)
    return _generator if is_taken and is_known else None


def _generator(eqn: jex_core.JaxprEqn, key: jax.Array) -> Sequence[jax.Array]:
    aval = aval_of(eqn.outvars[1])
    generate = _threefry if int(eqn.params["algorithm"]) == _THREEFRY else _philox
    key_low, key_high, low, high = (key[i] for i in range(4))
    bits, steps = generate((key_low, key_high), (low, high), aval)
    new_key = jnp.stack([key_low, key_high, *_advanced((low, high), jnp.uint32(steps))])
    return [new_key, bits]


def _advanced(counter: Halves, steps: jax.Array) -> Halves:
    low, high = counter
    new_low = low + steps
    return new_low, high + (new_low < low).astype(np.uint32)


def _threefry(key: Halves, counter: Halves, aval: Aval) -> tuple[jax.Array, int]:
    """Draws with Threefry. A block gives one 64-bit number, or two neighbours along one axis."""
    is_wide = aval.dtype.itemsize == 8
    outer, size, inner = (1, math.prod(aval.shape), 1) if is_wide else _around_axis(aval.shape)
    blocks = size if is_wide else (size + 1) // 2
    steps = outer * blocks * inner
    counts = jnp.concatenate(_advanced(counter, jnp.arange(steps, dtype=np.uint32)))
    halves = jex_random.threefry_2x32(jnp.stack(key), counts).reshape(2, outer, blocks, inner)
    if is_wide:
        return _wide(jnp.moveaxis(halves, 0, -1), aval), steps
    pairs = jnp.moveaxis(halves, 0, 2).reshape(outer, 2 * blocks, inner)[:, :size]
    return _narrow(pairs, aval), steps


def _around_axis(shape: Sequence[int]) -> tuple[int, int, int]:
    """Returns the numbers of elements before, along and after the axis that blocks pair up.

    This axis is the first one of even size, otherwise the first one of the largest size.
    """
    if not shape:
        return 1, 1, 1
    is_even = [size % 2 == 0 for size in shape]
    axis = is_even.index(True) if any(is_even) else shape.index(max(shape))
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _philox(key: Halves, counter: Halves, aval: Aval) -> tuple[jax.Array, int]:
    """Draws with Philox. A block gives four words; the upper half of its counter is the key."""
    words = math.prod(aval.shape) * max(aval.dtype.itemsize // 4, 1)
    steps = -(-words // 4)
    low, high = _advanced(counter, jnp.arange(steps, dtype=np.uint32))
    # If the lower half of the counter overflows, the upper half grows.
    has_wrapped = ((high < counter[1]) & (low < counter[0])).astype(np.uint32)
    blocks: tuple[jax.Array, ...] = (low, high, *_advanced(key, has_wrapped))
    for number in range(_ROUNDS):
        blocks = _philox_round(blocks, _round_key(key, number))
    bits = jnp.stack(blocks, -1).reshape(-1)[:words]
    if aval.dtype.itemsize == 8:
        return _wide(bits.reshape(-1, 2), aval), steps
    return _narrow(bits, aval), steps


def _round_key(key: Halves, number: int) -> Halves:
    low, high = (k + np.uint32(number * g % 2**32) for k, g in zip(key, _GROWTH, strict=True))
    return low, high


def _philox_round(words: Sequence[jax.Array], key: Halves) -> tuple[jax.Array, ...]:
    first, second = (np.uint32(m) for m in _MULTIPLIERS)
    x0, x1, x2, x3 = words
    return (
        _upper_product(x2, second) ^ x1 ^ key[0],
        x2 * second,
        _upper_product(x0, first) ^ x3 ^ key[1],
        x0 * first,
    )


def _upper_product(x: jax.Array, factor: np.uint32) -> jax.Array:
    half, mask = np.uint32(16), np.uint32(0xFFFF)
    halves = (lax.shift_right_logical(x, half), x & mask)
    return uint32.upper_product(halves, (factor >> half, factor & mask))


def _wide(pairs: jax.Array, aval: Aval) -> jax.Array:
    """Joins pairs in the last dimension, the lower half first, to 64-bit numbers."""
    return lax.bitcast_convert_type(pairs.reshape(*aval.shape, 2), aval.dtype)


def _narrow(words: jax.Array, aval: Aval) -> jax.Array:
    """Keeps the lowest bits of each word."""
    bits = 8 * aval.dtype.itemsize
    kept = words if bits == 32 else words & np.uint32((1 << bits) - 1)
    return lax.convert_element_type(kept.reshape(aval.shape), aval.dtype)
