"""Resizes images: the patterns of jax.image.resize, and the engines' ops for them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.passes.idioms.matching import Match
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Param, Shape


def resized(images: jax.Array, *, shape: Shape, method: str, antialias: bool) -> jax.Array:
    return jax.image.resize(images, shape, method, antialias)


def shape_of(primitive: jex_core.Primitive) -> Callable[[Match], dict[str, Param]]:
    return lambda found: {"shape": found.shape(primitive)}


def are_enlarged(images: Aval, *, shape: Shape) -> bool:
    """Whether `images` have a known height and width, and both grow."""
    old, new = images.shape[1:3], shape[1:3]
    return (
        len(images.shape) == len(shape) == 4
        and dims.is_static((*old, *new))
        and all(0 < o < n for o, n in zip(old, new, strict=True))
    )


def are_multiplied(images: Aval, *, shape: Shape) -> bool:
    """Whether height and width grow by integer factors. Then rounding never changes a pixel."""
    return are_enlarged(images, shape=shape) and all(
        new % old == 0 for old, new in zip(images.shape[1:3], shape[1:3], strict=True)
    )


def resize(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def rule(ctx: Context, images: Tensor, shape: Shape) -> Tensor:
        return op(images=images, size=ctx.vector(shape[1:3]), half_pixel_centers=True)

    return rule


def change_in_size(images: Aval, *, shape: Shape) -> bool:
    """Whether `images` have known height, width and channels, and height and width change."""
    old, new = images.shape[1:3], shape[1:3]
    return (
        len(images.shape) == len(shape) == 4
        and dims.is_static((*images.shape[1:], *new))
        and all(0 < o != n > 0 for o, n in zip(old, new, strict=True))
        # TensorFlow's product may overwrite memory otherwise: contractions.overwrites_memory.
        and images.shape[3] > 1
    )


def resize_by_products(method: str, antialias: bool) -> Callable[..., Tensor]:
    def weights(old: int, new: int) -> np.ndarray:
        """Returns the weight of each old place in each new one, by resizing an identity matrix."""
        with jax.ensure_compile_time_eval():
            return np.asarray(jax.image.resize(np.eye(old), (new, old), method, antialias))

    def rule(ctx: Context, images: Tensor, shape: Shape) -> Tensor:
        height, width = (
            weights(old, new).astype(images.dtype.as_numpy_dtype)
            for old, new in zip(images.shape[1:3], shape[1:3], strict=True)
        )
        # Some engines compute convolutions with channels first. Next to these, transposes cancel.
        channels_first = ops.transpose(images, [0, 3, 1, 2])
        rows = ops.matmul(ctx.constant(height), channels_first)
        return ops.transpose(ops.matmul(rows, ctx.constant(width.T)), [0, 2, 3, 1])

    return rule
