"""Finds JAX's primitives by their names.

A name is not unique: another library may have its own primitive "add". Rules are found by the
primitive; the names in their registrations are looked up here once.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import TypeVar

import jax
from jax import lax
from jax.extend import core as jex_core
from jax.extend.core import primitives as jex_primitives

from jax2tf._src import compat
from jax2tf._src.util.lru import cached

T = TypeVar("T")

# The call of a jitted function.
jit_p = jex_primitives.jit_p

# Primitives that some of the supported versions of JAX lack.
_NOT_IN_EVERY_VERSION = frozenset(
    {
        "closed_call",
        "log2",
        "mulhi",
        "one_minus_square",
        "polynomial",
        "stack",
        "unstack",
    }
)

# A newer version may lack a primitive, whose rule is then unused.
_FIRST_UNTESTED_VERSION = (0, 13)


def named(*names: str) -> tuple[jex_core.Primitive, ...]:
    """JAX's primitives with these names, except those that this version of JAX lacks.

    >>> named("sin", "cos")
    (sin, cos)

    Raises:
      ValueError: no supported version of JAX has a primitive of that name.
    """
    return tuple(primitive for name in names for primitive in _named(name))


def by_primitive(
    table: Mapping[str, T] | Mapping[tuple[str, ...], T],
) -> dict[jex_core.Primitive, T]:
    """Replaces the keys, names or tuples of names, by JAX's primitives."""
    entries = (((key,) if isinstance(key, str) else key, entry) for key, entry in table.items())
    return {primitive: entry for names, entry in entries for primitive in named(*names)}


def _named(name: str) -> Iterable[jex_core.Primitive]:
    found = _by_name().get(name, {})
    is_known = found or name in _NOT_IN_EVERY_VERSION
    if not is_known and jax.__version_info__[:2] < _FIRST_UNTESTED_VERSION:
        raise ValueError(f"JAX {jax.__version__} has no primitive '{name}'")
    return found


@cached
def _by_name() -> dict[str, dict[jex_core.Primitive, None]]:
    by_name: dict[str, dict[jex_core.Primitive, None]] = collections.defaultdict(dict)
    for module in (jex_primitives, lax, lax.linalg, *compat.primitives.modules_of_primitives()):
        for value in vars(module).values():
            if isinstance(value, jex_core.Primitive):
                by_name[value.name][value] = None
    return dict(by_name)


# The per-device program on a mesh; JAX has no public name for its primitive.
(shard_map_p,) = named("shard_map")
