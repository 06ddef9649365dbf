"""Questions about shapes and sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable

import jax
from jax import export

from jax2tf._src.util.typing import Dim


def is_static(shape: Iterable[Dim]) -> bool:
    """Whether no dimension of a JAX shape is symbolic."""
    return not any(type(d) is not int and export.is_symbolic_dim(d) for d in shape)


def may_be_zero(size: Dim) -> bool:
    """Whether a size is 0, or is 0 for some values of its variables."""
    # max_dim returns `size` itself if JAX knows that it is at least 1.
    return bool(jax.core.max_dim(size, 1) != size)
