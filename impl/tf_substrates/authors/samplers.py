"""Stateless samplers, and seeds for them: the same samples on TensorFlow, JAX and NumPy.

A seed is a tensor of two integers. `sanitize_seed` makes one of what a user gives, `split_seed`
and `fold_in` make others of it. Bits are those of Philox, which TensorFlow's stateless samplers
have by that name. So seeds, integers, uniform, gamma, poisson and categorical samples are equal on
the three back ends; normal and truncated ones are to some units in the last place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tf_substrates.authors import prefer_static

JAX_MODE = False

_PHILOX = "philox"


def sanitize_seed(seed: Any, salt: Any = None, name: Any = None) -> Any:
    """A seed of two integers, int32 or int64.

    Args:
      seed: two integers; one integer of Python's or NumPy's, which stands for the pair of its low
        and high 32 bits; on JAX also a key (jax.random.key, jax.random.PRNGKey).
      salt: a string or an integer, by which the seeds of different functions differ.

    Raises:
      ValueError: the seed is None, or not of these.
    """
    if seed is None:
        raise ValueError(
            "sanitize_seed: `seed` is None, and a sampler without a state needs a seed. What to do:"
            " pass an integer or two of them, e.g. seed=(4, 2)."
        )
    pair = _pair(seed)
    return pair if salt is None else fold_in(pair, salt)


def _pair(seed: Any) -> Any:
    if JAX_MODE:
        from tf_substrates.jax.probability_seeds import as_seed

        seed = as_seed(seed)
    if _is_integer(seed):
        return tf.constant(np.stack([_word(int(seed)), _word(int(seed) >> 32)]))
    pair = tf.convert_to_tensor(seed)
    dtype = tf.as_dtype(pair.dtype)
    if dtype not in (tf.int32, tf.int64) or not tf.TensorShape(pair.shape).is_compatible_with([2]):
        key = ", or a key of jax.random" if JAX_MODE else ""
        raise ValueError(
            "sanitize_seed: `seed` must be an integer or two integers of int32 or int64"
            f"{key}, and it is of {dtype.name} with shape {tf.TensorShape(pair.shape)}."
        )
    return pair


def _word(number: int) -> np.ndarray:
    """The low 32 bits of an integer, as an int32."""
    return np.asarray(number & 0xFFFFFFFF, np.uint32).astype(np.int32)


def _is_integer(seed: Any) -> bool:
    if isinstance(seed, (bool, np.bool_)):
        return False
    return isinstance(seed, (int, np.integer)) or (
        isinstance(seed, np.ndarray) and seed.ndim == 0 and seed.dtype.kind in "iu"
    )


def fold_in(seed: Any, salt: Any) -> Any:
    """The seed of something that differs from others by its salt.

    Args:
      seed: as `sanitize_seed` takes it.
      salt: a string, or an integer or a scalar tensor of integers, such as the number of a step.

    Raises:
      TypeError: the salt is neither.
    """
    if isinstance(salt, str):
        salt = int.from_bytes(hashlib.sha512(salt.encode()).digest()[:4], "little")
    elif not (_is_integer(salt) or tf.is_tensor(salt)):
        raise TypeError(f"fold_in: `salt` must be a string or an integer, not {salt!r}.")
    word = _word(int(salt)) if _is_integer(salt) else tf.cast(salt, tf.int32)
    return tf.random.fold_in(_pair(seed), word, alg=_PHILOX)


def split_seed(seed: Any, n: Any = 2, salt: Any = None) -> Any:
    """New seeds of one.

    Args:
      seed: as `sanitize_seed` takes it.
      n: how many.
      salt: as of `sanitize_seed`.

    Returns:
      A list of `n` seeds, or a tensor `[n, 2]` where `n` is not known.
    """
    pair = sanitize_seed(seed, salt)
    count = prefer_static.static_value(n)
    seeds = tf.random.split(pair, n if count is None else int(count), alg=_PHILOX)
    return seeds if count is None else tf.unstack(seeds, num=int(count))


def _sampler(name: str, has_algorithm: bool = True) -> Callable:
    stateless = getattr(tf.random, f"stateless_{name}")

    def call(*args: Any, seed: Any = None, **kwargs: Any) -> Any:
        if has_algorithm:
            kwargs.setdefault("alg", _PHILOX)
        return stateless(*args, seed=sanitize_seed(seed), **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"tf.random.stateless_{name}, whose `seed` is as `sanitize_seed` takes it."
    return call


uniform = _sampler("uniform")
normal = _sampler("normal")
truncated_normal = _sampler("truncated_normal")
gamma = _sampler("gamma", has_algorithm=False)
poisson = _sampler("poisson", has_algorithm=False)
binomial = _sampler("binomial", has_algorithm=False)
categorical = _sampler("categorical", has_algorithm=False)
