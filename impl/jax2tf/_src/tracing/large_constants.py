"""The policy for large arrays that a function captures.

A graph contains its constants and has at most 2 GB, and a SavedModel repeats them in the functions
of its gradients. Parameters should be arguments, and other large arrays variables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from jax2tf._src.api.errors import ConversionError
from jax2tf._src.util.identity import SameElements
from jax2tf._src.util.lazy_imports import tf
from jax2tf._src.util.option_checks import shown
from jax2tf._src.util.tensors import Variable

Policy: TypeAlias = Literal["embed", "refuse"] | Callable[[np.ndarray], Variable]

# A constant with more bytes is large.
LIMIT = 64 * 1024

# Constants with at most this number of elements are repeated in the graph at each use.
SMALL_CONSTANT_SIZE = 16

# A graph is a protocol buffer, which has at most this number of bytes.
GRAPH_LIMIT = 2**31 - 1


class LargeConstants:
    """The captured arrays of one converted function, and the variables that hold them."""

    def __init__(self, policy: Policy = "embed"):
        if not (callable(policy) or (isinstance(policy, str) and policy in ("embed", "refuse"))):
            raise ValueError(
                "jax2tf.convert: large_constants should be 'embed', 'refuse' or a function that "
                f"makes a tf.Variable of an array, got {shown(policy)}"
            )
        self._policy = policy
        self._held: dict[SameElements, Variable] = {}
        self._lock = threading.RLock()

    def held(self, value: np.ndarray) -> Variable | None:
        """The variable that holds `value`, or None if the graph should hold it.

        Raises:
          ConversionError: `value` is large, and the policy refuses large constants.
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
        key = SameElements.of(value)
        with self._lock:
            if key not in self._held:
                with tf.init_scope():
                    self._held[key] = self._policy(value)
            return self._held[key]

    def require_room(self, value: np.ndarray, total: int) -> None:
        """Raises a ConversionError if the constants of a graph (`value` is the last) are too large.

        Args:
          value: the next constant.
          total: the bytes of all constants.
        """
        if total > GRAPH_LIMIT:
            raise ConversionError(
                f"jax2tf.convert: the function captures arrays of {total} bytes, among them "
                f"{value.dtype.name}{list(value.shape)} of {value.nbytes} bytes, and a graph of "
                f"TensorFlow's holds at most {GRAPH_LIMIT}. What to do: pass them as arguments; or "
                "use jax2tf.Module, which makes variables of parameters and of captured arrays; or "
                "give large_constants a function that makes a variable of an array"
            )
