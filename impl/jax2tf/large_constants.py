"""What becomes of large arrays that a function captures.

A graph holds its constants, is at most 2 GB, and a SavedModel repeats them in the functions of its
gradients. Parameters belong into the arguments, and other large arrays into variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import tensorflow as tf

from jax2tf.errors import ConversionError

Policy: TypeAlias = Literal["embed", "refuse"] | Callable[[np.ndarray], tf.Variable]

# A constant of more bytes is large.
LIMIT = 64 * 1024


class LargeConstants:
    """The captured arrays of one converted function, and the variables that hold them."""

    def __init__(self, policy: Policy = "embed"):
        if not (callable(policy) or policy in ("embed", "refuse")):
            raise ValueError(
                "jax2tf.convert: large_constants should be 'embed', 'refuse' or a function that "
                f"makes a tf.Variable of an array, got {policy!r}"
            )
        self._policy = policy
        # The array is kept beside its variable, so that its address stays its own.
        self._held: dict[int, tuple[tf.Variable, np.ndarray]] = {}

    def held(self, value: np.ndarray) -> tf.Variable | None:
        """The variable that holds `value`, or None if the graph should.

        Raises:
          ConversionError: it is large, and large constants are to be refused.
        """
        if value.nbytes <= LIMIT or self._policy == "embed":
            return None
        if not callable(self._policy):
            raise ConversionError(
                f"jax2tf.convert: the function captures an array {value.dtype.name}"
                f"{list(value.shape)} of {value.nbytes} bytes, and large_constants='refuse' allows "
                f"{LIMIT}. Pass it as an argument (jax2tf.Module makes variables of parameters), "
                "or give large_constants a function that makes a variable of it"
            )
        address = value.__array_interface__["data"][0]
        if address not in self._held:
            with tf.init_scope():
                self._held[address] = (self._policy(value), value)
        return self._held[address][0]
