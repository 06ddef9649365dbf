"""What a model of the tests is, and the weights and inputs that all of them are made with."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Model:
    """A function of its inputs alone, small and with random weights.

    Attributes:
      function: the model, in plain JAX.
      inputs: `inputs(batch, length)` makes its inputs.
      shapes: the shape of each input, as in polymorphic_shapes: "b, l, 3"; "" for a scalar. `b` is
        the batch, `l` the length of a sequence, for a model of any length.
      length: the length where it is known.
      constraints: what is assumed of an open length, as in polymorphic_constraints.
      least: numbers are compared as if the largest of a result were at least this.
    """

    function: Callable[..., Any]
    inputs: Callable[[int, int], tuple[np.ndarray, ...]]
    shapes: Sequence[str]
    length: int = 8
    constraints: Sequence[str] = ()
    least: float = 0.0

    @property
    def has_length(self) -> bool:
        """Whether the model is one of sequences of any length."""
        return any("l" in shape for shape in self.shapes)

    def shapes_with(self, **sizes: int) -> list[str]:
        """The shapes, with numbers in place of those names."""
        return [re.sub("[bl]", lambda m: str(sizes.get(m[0], m[0])), s) for s in self.shapes]


Models = Mapping[str, Model]


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers of the size with which products keep that of their operand."""
    rng = np.random.default_rng(sum(shape) + 1000 * seed)
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers for an input."""
    return np.random.default_rng(len(shape) + 1000 * seed).normal(size=shape).astype(np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    """Random integers from 0 to high - 1 for an input."""
    return np.random.default_rng(0).integers(0, high, shape).astype(np.int32)
