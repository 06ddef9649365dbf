"""Keys of JAX's as seeds of TensorFlow Probability, where those of TensorFlow are seeds too.

Its tests and its users on JAX pass `jax.random.key(0)`; a key stands for two integers, of which its
samplers draw TensorFlow's samples. The rewriter calls these functions at the end of its modules.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

from tf_substrates.numpy.tensors import is_key, seed_of_key

JAX_MODE = False
if JAX_MODE:
    import jax


def _has_key(seed: Any) -> bool:
    """Whether a seed is a key of JAX's: of its own dtype or, as PRNGKey makes it, of uint32."""
    return JAX_MODE and (is_key(seed) or (isinstance(seed, jax.Array) and seed.dtype == np.uint32))


def as_seed(seed: Any) -> Any:
    """The two integers of a key of JAX's; every other seed is given back."""
    if not _has_key(seed):
        return seed
    return seed_of_key(seed if is_key(seed) else jax.random.wrap_key_data(seed))


def in_samplers(module: dict[str, Any]) -> None:
    """Lets the functions of `internal.samplers` take keys."""
    sanitize_seed, get_integer_seed = module["sanitize_seed"], module["get_integer_seed"]
    fold_in = module["fold_in"]

    @functools.wraps(sanitize_seed)
    def sanitize(seed: Any, salt: Any = None, name: Any = None) -> Any:
        made = seed() if callable(seed) else seed
        return sanitize_seed(as_seed(made), salt, name)

    @functools.wraps(get_integer_seed)
    def integer(seed: Any) -> Any:
        """A Python integer where the seed was a key, as the library's functions for JAX give."""
        found = get_integer_seed(seed)
        return int(found) if _has_key(seed) else found

    @functools.wraps(fold_in)
    def fold(seed: Any, salt: Any) -> Any:
        return fold_in(as_seed(seed), salt)

    module.update(sanitize_seed=sanitize, get_integer_seed=integer, fold_in=fold)


def in_seed_stream(module: dict[str, Any]) -> None:
    """Lets a SeedStream begin with a key; it gives keys then."""
    stream = module["SeedStream"]
    begin, step = stream.__init__, stream.__call__

    @functools.wraps(begin)
    def __init__(self: Any, seed: Any, salt: Any) -> None:
        begun = seed.original_seed if isinstance(seed, stream) else seed
        begin(self, None if _has_key(begun) else seed, salt)
        if _has_key(begun):
            self._seed = begun

    @functools.wraps(step)
    def __call__(self: Any) -> Any:
        if not _has_key(self._seed):
            return step(self)
        self._counter += 1
        text = repr((self._salt, self._counter)).encode()
        word = int.from_bytes(hashlib.sha512(text).digest()[:4], "little")
        return jax.random.fold_in(self._seed, word)

    stream.__init__, stream.__call__ = __init__, __call__
