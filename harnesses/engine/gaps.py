"""What JAX accepts and no harness asks about, found by trying.

A gap is a dtype that works and that no harness of the primitive claims; or a value of one of its
params that are bool, enum or an axis, alone or together with a value of another such param. What a
harness does ask is read from its jaxpr. `limitations/gaps.toml` gives reasons for gaps that stay.
"""

import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import core

from harnesses.harness import ALL, NARROW, Harness
from harnesses.harness.dtypes import WITHOUT_TENSORFLOW

# Params that are the index of a dimension of the first operand.
AXES = frozenset({"axis", "dimension"})
# Harnesses of a primitive that a dtype is tried in.
_TRIED = 3


@dataclass(frozen=True)
class Gap:
    """What no harness of a primitive asks about: `dtype=int8`, `reverse=True`, or two values."""

    primitive: str
    what: str

    def __str__(self) -> str:
        return f"{self.primitive}: {self.what}"


def find(harnesses: Iterable[Harness]) -> Iterator[Gap]:
    """The gaps of the primitives that the harnesses are of, primitive by primitive."""
    of_primitive: dict[str, list[Harness]] = {}
    for harness in harnesses:
        of_primitive.setdefault(harness.primitive, []).append(harness)
    for primitive, members in of_primitive.items():
        for dtype in dtypes_left_out(members):
            yield Gap(primitive, f"dtype={dtype}")
        for values in values_left_out(members):
            yield Gap(primitive, ", ".join(sorted(values)))


def dtypes_left_out(harnesses: Sequence[Harness]) -> Iterator[np.dtype]:
    """The dtypes that the primitive of these harnesses takes and that none of them claims."""
    claimed = {harness.dtype for harness in harnesses}
    plain = sorted(harnesses, key=lambda harness: (harness.dtype != np.float32, len(harness.name)))
    for dtype in (*ALL, *NARROW, *WITHOUT_TENSORFLOW):
        if dtype not in claimed and any(_takes(harness, dtype) for harness in plain[:_TRIED]):
            yield dtype


def _takes(harness: Harness, dtype: np.dtype) -> bool:
    """Whether JAX runs the harness's primitive with operands of another dtype."""

    def cast(array: Any) -> Any:
        return array.astype(dtype) if getattr(array, "dtype", None) == harness.dtype else array

    with jax.enable_x64(harness.x64 or dtype.itemsize >= 8):
        try:
            args = jax.tree.map(cast, harness.make_args())
            used = any(
                getattr(operand.aval, "dtype", None) == dtype
                for eqn in _uses(harness, args)
                for operand in eqn.invars
            )
            return used and jax.jit(harness.fun).lower(*args) is not None
        except Exception:  # whatever JAX raises is a refusal
            return False


def values_left_out(harnesses: Sequence[Harness]) -> list[frozenset[str]]:
    """The values of params, and the pairs of them, that work and that no harness has."""
    uses = [eqn for harness in _one_of_each_case(harnesses) for eqn in uses_of(harness)]
    asked = {values for eqn in uses for values in _singles_and_pairs(labels(eqn, eqn.params))}
    left_out: dict[frozenset[str], None] = {}
    for eqn in uses:
        for changed in _changed(eqn):
            new = [
                values
                for values in _singles_and_pairs(labels(eqn, changed))
                if values not in asked and values not in left_out
            ]
            if new and _accepts(eqn, changed):
                left_out |= dict.fromkeys(new)
    singles = {values for values in left_out if len(values) == 1}
    # A value that nobody asks about stands for all pairs with it.
    return [v for v in left_out if v in singles or not any(single < v for single in singles)]


def _one_of_each_case(harnesses: Sequence[Harness]) -> list[Harness]:
    """Of harnesses that differ in dtype alone, the first."""
    cases: dict[str, Harness] = {}
    for harness in harnesses:
        cases.setdefault(harness.name.removesuffix(harness.dtype.name), harness)
    return list(cases.values())


def uses_of(harness: Harness) -> list[core.JaxprEqn]:
    """The equations of its primitive in a harness; none of one that JAX cannot trace here."""
    with jax.enable_x64(harness.x64):
        try:
            return list(_uses(harness, harness.make_args()))
        except Exception:  # the run of the matrix reports it
            return []


def _uses(harness: Harness, args: Any) -> Iterator[core.JaxprEqn]:
    pending: list[Any] = [jax.make_jaxpr(harness.fun)(*args).jaxpr]
    while pending:
        for eqn in pending.pop().eqns:
            if eqn.primitive.name == harness.primitive:
                yield eqn
            for value in jax.tree.leaves(list(eqn.params.values())):
                inner = value.jaxpr if isinstance(value, core.ClosedJaxpr) else value
                if isinstance(inner, core.Jaxpr):
                    pending.append(inner)


def labels(eqn: core.JaxprEqn, params: dict[str, Any]) -> list[str]:
    """The values of those params that have few: `reverse=True`, `mode=CLIP`, `axis=last`."""
    labels = []
    for name, value in params.items():
        if isinstance(value, bool):
            labels.append(f"{name}={value}")
        elif isinstance(value, enum.Enum):
            labels.append(f"{name}={value.name}")
        elif name in AXES and isinstance(value, int) and _rank(eqn) > 1:
            place = {0: "first", _rank(eqn) - 1: "last"}.get(value, "between")
            labels.append(f"{name}={place}")
    return labels


def _changed(eqn: core.JaxprEqn) -> Iterator[dict[str, Any]]:
    """The equation's params with another value of one of them."""
    for name, value in eqn.params.items():
        values: Iterable[Any] = ()
        if isinstance(value, bool):
            values = (not value,)
        elif isinstance(value, enum.Enum):
            values = type(value)
        elif name in AXES and isinstance(value, int):
            values = range(_rank(eqn))
        for other in values:
            if other != value:
                yield {**eqn.params, name: other}


def _accepts(eqn: core.JaxprEqn, params: dict[str, Any]) -> bool:
    """Whether JAX takes the equation's operands with these params."""
    try:
        avals: list[Any] = [operand.aval for operand in eqn.invars]
        operands = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        with jax.enable_x64(True):
            jax.jit(lambda *args: eqn.primitive.bind(*args, **params)).lower(*operands)
    except Exception:  # whatever JAX raises is a refusal
        return False
    return True


def _rank(eqn: core.JaxprEqn) -> int:
    aval: Any = eqn.invars[0].aval if eqn.invars else None
    return len(getattr(aval, "shape", ()))


def _singles_and_pairs(labels: Sequence[str]) -> list[frozenset[str]]:
    pairs = itertools.combinations(labels, 2)
    return [frozenset({label}) for label in labels] + [frozenset(pair) for pair in pairs]
