"""What a program of the zoo is: what a user of a JAX library writes, and how it may be run."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

Built = tuple[Callable[..., Any], tuple]


@dataclasses.dataclass(frozen=True)
class Fails:
    """A mode in which a program does not run. The claim is tested: it still fails so.

    Attributes:
      whose: "jax" where JAX itself raises this error (from a vjp, or for a symbolic shape), and
        the conversion then gives its words too; "jax2tf" where only the conversion does.
      error: the name of the class of the error.
      message: a regular expression for its text.
    """

    whose: Literal["jax", "jax2tf"]
    error: str
    message: str


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A function of a library's user, with small arguments and random weights.

    Attributes:
      library: the distribution that it needs, as the extra `zoo` names it.
      name: what it does.
      build: gives the function and its arguments, which are pytrees of arrays.
      batch: the function's polymorphic_shapes, in which letters stand for open sizes; None where no
        argument has a batch.
      constraints: what the function assumes of the open sizes.
      x64: whether it runs in 64 bits.
      ulps: how far results may be from JAX's, relative to the largest element of each.
      gradient_ulps: the same of gradients, whose rounding errors add up in the backward pass; by
        default four times as far.
      fails: the modes in which it does not run.
    """

    library: str
    name: str
    build: Callable[[], Built]
    batch: Any = None
    constraints: Sequence[str] = ()
    x64: bool = False
    ulps: float = 64
    gradient_ulps: float | None = None
    fails: Mapping[str, Fails] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.library}-{self.name}"


PROGRAMS: dict[str, Program] = {}


def program(library: str, **attributes: Any) -> Callable[[Callable[[], Built]], Program]:
    """Adds a program that is built by the decorated function, by whose name it goes."""

    def add(build: Callable[[], Built]) -> Program:
        name = build.__name__.replace("_", " ")
        added = Program(library, name, functools.cache(build), **attributes)
        if str(added) in PROGRAMS:
            raise ValueError(f"two programs have the name {added}")
        PROGRAMS[str(added)] = added
        return added

    return add


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal float32 numbers, the same every time."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def integers(high: int, *shape: int, seed: int = 0) -> np.ndarray:
    """int32 numbers below `high`, the same every time."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)
