"""Sizes for open dimensions, with which a file that was written is tried."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence

from jax import export as jax_export

from jax2tf import compat
from jax2tf.dims import expressions
from jax2tf.dims.specs import split_constraint
from jax2tf.errors import ExportError
from jax2tf.export.signatures import Signature, variables_of

Sizes = Mapping[str, int]

# A size of 1 is one that JAX takes a named dimension not to have, so it is tried last.
_CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 1)
_TRIED = 200_000

_COMPARISONS = {"==": operator.eq, ">=": operator.ge, "<=": operator.le}


def two_sizes(
    signature: Signature, constraints: Sequence[str] | jax_export.SymbolicScope
) -> list[Sizes]:
    """Two sizes for the open dimensions of a signature; one, without names, where none is open.

    Raises:
      ExportError: no two were found that the constraints allow.
    """
    names = variables_of(signature)
    if not names:
        return [{}]
    texts = _texts(signature.scope or constraints)
    found: list[Sizes] = []
    for sizes in itertools.islice(_combinations(names), _TRIED):
        if _is_allowed(sizes, signature, texts) and _differs(sizes, found):
            found.append(sizes)
        if len(found) == 2:
            return found
    if found and all("==" in text for text in texts):
        return found
    raise ExportError(
        f"jax2tf.export: found no two sizes for the open dimensions {', '.join(names)} of "
        f"{signature.name!r} that {', '.join(texts) or 'their shapes'} allow. What to do: give "
        "inputs to try as verify=[inputs, ...], or leave it out with verify=False"
    )


def shapes(signature: Signature, sizes: Sizes) -> list[tuple[int, ...]]:
    """The shapes of the inputs where the open dimensions have these sizes."""
    return [tuple(_evaluated(size, sizes) for size in spec.shape) for spec in signature.inputs]


def _texts(constraints: Sequence[str] | jax_export.SymbolicScope) -> Sequence[str]:
    if isinstance(constraints, jax_export.SymbolicScope):
        return compat.explicit_constraints(constraints)
    return constraints


def _combinations(names: Sequence[str]) -> Iterator[Sizes]:
    """Sizes that differ from name to name first: an exchange of two dimensions is seen."""
    n = len(names)
    for start in range(len(_CANDIDATES) - 1):
        yield {
            name: _CANDIDATES[(start + i) % (len(_CANDIDATES) - 1)] for i, name in enumerate(names)
        }
    for values in itertools.product(_CANDIDATES, repeat=n):
        yield dict(zip(names, values, strict=True))


def _differs(sizes: Sizes, found: Sequence[Sizes]) -> bool:
    """Whether every name that can has another size than in those found."""
    return all(any(sizes[name] != other[name] for name in sizes) for other in found)


def _is_allowed(sizes: Sizes, signature: Signature, constraints: Sequence[str]) -> bool:
    every = [size for shape in shapes(signature, sizes) for size in shape]
    return min(every, default=1) >= 0 and all(_holds(text, sizes) for text in constraints)


def _holds(constraint: str, sizes: Sizes) -> bool:
    left, sign, right = split_constraint(constraint)
    return bool(_COMPARISONS[sign](_evaluated(left, sizes), _evaluated(right, sizes)))


def _evaluated(size: int | str, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    return int(expressions.evaluate_expression(expressions.parse(size), sizes))
