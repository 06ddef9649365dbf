"""One rule for each op of StableHLO and CHLO. To import this package registers all of them."""

from jax2tf._src.stablehlo.rules import (
    collectives,
    convolution,
    custom_calls,
    elementwise,
    indexing,
    linalg,
    loops,
    old_lapack,
    random,
    reductions,
    regions,
    shapes,
    slices,
    sorting,
    special,
)

__all__ = [
    "collectives",
    "convolution",
    "custom_calls",
    "elementwise",
    "indexing",
    "linalg",
    "loops",
    "old_lapack",
    "random",
    "reductions",
    "regions",
    "shapes",
    "slices",
    "sorting",
    "special",
]
