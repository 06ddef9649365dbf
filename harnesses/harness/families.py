"""A family says its name once; its builders define its harnesses when the database is asked for.

    family = Family("fft")

    @family.builder
    def transforms() -> None:
        for dtype in COMPLEX:
            define("fft", "", jnp.fft.fft, [Normal((3, 8), dtype)], dtype=dtype)

To import a family defines nothing, so that a module of helpers costs no more than its import.
"""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harnesses.harness.definition import Check, Harness, direction_of, is_arg

# Of the files of families, the beginning of their paths.
_INSIDE = f"{Path(__file__).parents[1]}{os.sep}"

_SIXTY_FOUR_BITS = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))

Build = Callable[[], None]


@dataclass(frozen=True)
class Family:
    """Harnesses that stand together: one module, or the modules of one package.

    Attributes:
      name: that of the module or package.
    """

    name: str

    def builder(self, build: Build) -> Build:
        """Takes a function that calls `define`, to run it when the database is asked for.

        The harnesses are those of this family, and their place is that of the function.
        """
        _waiting.append(_Builder(self.name, build))
        return build


@dataclass(frozen=True)
class _Builder:
    """A function that defines harnesses, and what it has defined.

    Attributes:
      family: the name of the family.
      build: the function.
      harnesses: those that it defined so far, by name.
    """

    family: str
    build: Build
    harnesses: dict[str, Harness] = field(default_factory=dict)

    @functools.cached_property
    def where(self) -> str:
        """Its file and line: `linalg.py:12`, `functions/nn.py:3`."""
        code = inspect.unwrap(self.build).__code__
        file = code.co_filename
        inside = file.removeprefix(_INSIDE) if file.startswith(_INSIDE) else os.path.basename(file)
        return f"{inside.replace(os.sep, '/')}:{code.co_firstlineno}"


# Builders that did not run yet; the one that runs; and what they defined, by direction and name:
# two directions may ask about the same function.
_waiting: list[_Builder] = []
_running: list[_Builder] = []
_defined: dict[tuple[str, str], Harness] = {}


def harnesses_of_builders() -> list[Harness]:
    """All harnesses that the builders of imported modules define, in the order of the builders.

    A builder that raises defines nothing, and runs again when the database is asked for again.

    Raises:
      ValueError: two harnesses of a direction have one name.
    """
    while _waiting:
        builder = replace(_waiting[0], harnesses={})
        _running.append(builder)
        try:
            builder.build()
        finally:
            _running.pop()
        _waiting.pop(0)
        _defined.update({(h.direction, h.name): h for h in builder.harnesses.values()})
    return list(_defined.values())


def define(
    primitive: str,
    case: str,
    fun: Callable[..., Any],
    args: Any,
    *,
    dtype: Any,
    params: Mapping[str, Any] | None = None,
    ulps: int | Mapping[str, int] | None = None,
    scale: str = "element",
    x64: bool | None = None,
    tags: tuple[str, ...] = (),
    check: Check | None = None,
    jax_versions: str | None = None,
) -> Harness:
    """Adds a harness named `{primitive}_{case}_{dtype}` to the family whose builder runs.

    Args:
      primitive: the name of the primitive, or of the public function, that is asked about.
      case: what is special about this use; empty for the plain one.
      fun: what is converted. It takes the arrays that `args` describe.
      args: a list or tuple of argument makers; an element may be a pytree of makers.
      dtype: the dtype that the harness claims to work for.
      params: the params that matter, to show and for limitations to refer to.
      ulps: the tolerance, for every floating result or by dtype name (a dtype that is not named:
        0). None: 0 in `EXACT_FAMILIES`, `DEFAULT_ULPS` elsewhere. Integers and bools are exact.
      scale: "element" measures in ULPs of each expected element; "array" in ULPs of the largest
        finite one, for contractions and for reductions in which terms cancel.
      x64: whether 64-bit dtypes are enabled. None: if an argument or `dtype` has 64 bits.
      tags: "any_zero_sign" lets zeros of either sign agree; "ordered" means that the result depends
        on the order in which XLA combines numbers, which a GPU leaves open; "not_grad", "not_jvp"
        ... mean that a TensorFlow function is not asked about in that mode; "raises" that a program
        of the substrates raises, so that the class of the exception is what is compared.
      check: `check(args, expected, actual)` returns the error in ULPs instead of the comparison of
        values; for results that are right in more than one way (Q and R, eigenvectors).
      jax_versions: a version specifier such as ">=0.12", for what other versions of JAX lack. State
        it rather than defining the harness under a condition: tables list those of all versions.

    Raises:
      RuntimeError: no builder runs.
      ValueError: if the name is taken; names both places.
    """
    if not _running:
        raise RuntimeError(
            f"define({primitive!r}, {case!r}, ...) stands outside of a builder; call it in a "
            "function with the decorator `family.builder`"
        )
    builder = _running[-1]
    where = builder.where
    dtype = np.dtype(dtype)
    name = "_".join(part for part in (primitive, case, dtype.name) if part)
    direction = direction_of(builder.family)
    taken = builder.harnesses.get(name) or _defined.get((direction, name))
    if taken:
        raise ValueError(
            f"two harnesses are named {name!r}: {taken.where} and {where}; "
            "give one of them another case"
        )
    if scale not in ("element", "array"):
        raise ValueError(f"harness {name!r} at {where}: scale={scale!r}, not 'element' or 'array'")
    if x64 is None:
        leaves = jax.tree.leaves(tuple(args), is_leaf=is_arg)
        x64 = not _SIXTY_FOUR_BITS.isdisjoint([dtype, *(arg.dtype for arg in leaves)])
    harness = Harness(
        family=builder.family,
        primitive=primitive,
        name=name,
        fun=fun,
        args=args,
        dtype=dtype,
        params=dict(params or {}),
        ulps=ulps,
        scale=scale,
        x64=x64,
        tags=frozenset(tags),
        check=check,
        where=where,
        jax_versions=jax_versions,
    )
    builder.harnesses[name] = harness
    return harness
