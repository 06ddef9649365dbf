"""A harness: one use of one primitive, with what it is fed and how near the answer has to be."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from packaging.specifiers import SpecifierSet

from harnesses.harness.arguments import Arg
from harnesses.harness.dtypes import is_complex, is_float

# ULPs by which a result of a dtype may differ where a harness states nothing. Dtypes that are not
# listed, integers and bool among them, are compared exactly.
DEFAULT_ULPS: Mapping[str, int] = {
    "bfloat16": 1,
    "float16": 1,
    "float32": 4,
    "float64": 4,
    "complex64": 4,
    "complex128": 4,
}

# Families that move or cast values and compute none: not a bit may differ.
EXACT_FAMILIES = frozenset({"arrays", "conversions", "indexing", "sorting"})

CONVERT = "convert"
# The families of harnesses that ask about another direction: TensorFlow inside JAX, and
# TensorFlow's API without TensorFlow.
CALL_TF = "call_tf"
SUBSTRATES = "substrates"
DIRECTIONS = (CONVERT, CALL_TF, SUBSTRATES)

Check = Callable[[tuple, Any, Any], float]


def direction_of(family: str) -> str:
    """The direction about which a family asks."""
    return family if family in DIRECTIONS else CONVERT


@dataclass(frozen=True)
class Harness:
    """One use of one primitive. `define` makes them; see there for the meaning of each field."""

    family: str
    primitive: str
    name: str
    fun: Callable[..., Any]
    args: Any
    dtype: np.dtype
    params: Mapping[str, Any]
    ulps: int | Mapping[str, int] | None
    scale: str
    x64: bool
    tags: frozenset[str]
    check: Check | None
    where: str = field(compare=False)
    jax_versions: str | None = None

    @property
    def direction(self) -> str:
        """What is asked about: "convert" of a JAX function, "call_tf" of a TensorFlow one, or the
        "substrates" of a program that is written against TensorFlow.
        """
        return direction_of(self.family)

    def make_args(self, example: int = 0) -> tuple:
        """The arguments of `fun`: the same NumPy arrays on every call, others for each example."""
        seed = f"{self.name}#{example}" if example else self.name
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        return jax.tree.map(lambda arg: arg.make(rng), tuple(self.args), is_leaf=is_arg)

    def runs_on(self, version: str) -> bool:
        """Whether a version of JAX has what the harness asks for."""
        asked = self.jax_versions
        return asked is None or SpecifierSet(asked).contains(version, prereleases=True)

    def tolerance(self, dtype: np.dtype) -> float:
        """How many ULPs a result of `dtype` may be away from JAX's."""
        if isinstance(self.ulps, int):
            return self.ulps if is_float(dtype) or is_complex(dtype) else 0
        stated = {} if self.family in EXACT_FAMILIES else DEFAULT_ULPS
        return (stated if self.ulps is None else self.ulps).get(dtype.name, 0)


def is_arg(node: Any) -> bool:
    """Whether a node of the arguments is a maker."""
    return isinstance(node, Arg)
