"""The transpose of a pad of unknown size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
from jax import lax
from jax.interpreters import ad

from jax2tf._src.util.symbolic_sizes import is_static
from jax2tf._src.util.typing import Dim, Param

Cotangent: TypeAlias = jax.Array | ad.Zero

_PAD = lax.pad_p
_of_jax: Callable[..., tuple[Cotangent, Cotangent]] = ad.primitive_transposes[_PAD]


def of_shape(x: jax.Array, shape: Sequence[Dim]) -> jax.Array:
    """The same array, whose sizes JAX may have in another expression of the same value."""
    return padded(x, [(0, wanted - given, 0) for given, wanted in zip(x.shape, shape, strict=True)])


def padded(x: jax.Array, config: Sequence[tuple[Dim, Dim, int]]) -> jax.Array:
    """With zeros as lax.pad's config has it; the same array where that adds none."""
    if all(sizes == (0, 0, 0) for sizes in config):
        return x
    return lax.pad(x, x.dtype.type(0), config)


def _transpose(
    cotangent: Cotangent, operand: ad.UndefinedPrimal, padding_value: jax.Array, **params: Param
) -> tuple[Cotangent, Cotangent]:
    of_operand, of_value = _of_jax(cotangent, operand, padding_value, **params)
    # JAX takes a dilation away by a strided slice. The size of its result is that of the operand,
    # but where the operand may be empty the slice has another expression for it.
    if isinstance(of_operand, jax.Array) and not is_static(of_operand.shape):
        of_operand = of_shape(of_operand, operand.aval.shape)
    return of_operand, of_value


ad.primitive_transposes[_PAD] = _transpose
