"""What may be asked of a size that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable

import jax
from jax import export

from jax2tf._src.util.typing import Dim


def is_static(shape: Iterable[Dim]) -> bool:
    """Whether no dimension of a JAX shape is symbolic."""
    return not any(type(d) is not int and export.is_symbolic_dim(d) for d in shape)


def may_be_zero(size: Dim) -> bool:
    """Whether a size is 0, or may turn out to be."""
    # JAX gives back what it knows to be at least one.
    return bool(jax.core.max_dim(size, 1) != size)
