"""The transpose of a pad with symbolic sizes."""

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
    """The array with equal sizes in the expressions of `shape`, where JAX has other expressions."""
    return padded(x, [(0, wanted - size, 0) for size, wanted in zip(x.shape, shape, strict=True)])


def padded(x: jax.Array, config: Sequence[tuple[Dim, Dim, int]]) -> jax.Array:
    """The array padded with zeros by a config of lax.pad, unchanged if the config adds none."""
    if all(sizes == (0, 0, 0) for sizes in config):
        return x
    return lax.pad(x, x.dtype.type(0), config)


def _transpose(
    cotangent: Cotangent, operand: ad.UndefinedPrimal, padding_value: jax.Array, **params: Param
) -> tuple[Cotangent, Cotangent]:
    of_operand, of_value = _of_jax(cotangent, operand, padding_value, **params)
    # JAX undoes a dilation by a strided slice, whose result has the size of the operand. If the
    # operand may be empty, JAX writes that size as another expression.
    if isinstance(of_operand, jax.Array) and not is_static(of_operand.shape):
        of_operand = of_shape(of_operand, operand.aval.shape)
    return of_operand, of_value


ad.primitive_transposes[_PAD] = _transpose
