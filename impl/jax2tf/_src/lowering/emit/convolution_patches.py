"""Convolutions as matrix products of patches: the inputs under each filter position."""

from __future__ import annotations

import itertools
import math

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.contractions import overwrites_memory
from jax2tf._src.lowering.emit.convolution_ops import Conv
from jax2tf._src.util.tensors import Tensor


def product_of_patches(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Multiplies `rhs` by the concatenated inputs of all filter positions, in one MatMul."""
    *positions, features_in, features_out = conv.rhs_shape
    size = math.prod(positions) * features_in
    matrix = ctx.reshaped(rhs, (size, features_out))
    patches = ops.concat(_patches(ctx, lhs, conv), -1)
    if not overwrites_memory(conv.out_shape[:-1]):
        return ops.matmul(patches, matrix)
    rows = ctx.reshaped(patches, (math.prod(conv.out_shape[:-1]), size))
    return ctx.reshaped(ops.matmul(rows, matrix), conv.out_shape)


def products_of_patches_by_groups(ctx: Context, lhs: Tensor, rhs: Tensor, conv: Conv) -> Tensor:
    """Like `product_of_patches`, with one product per group, in one batched op."""
    groups = conv.feature_groups
    *positions, features_in, features_out = conv.rhs_shape
    n_positions, features_out = math.prod(positions), features_out // groups
    n_outputs = math.prod(conv.out_shape[:-1])
    matrices = ctx.reshaped(rhs, (n_positions, features_in, groups, features_out))
    matrices = ctx.reshaped(
        ops.transpose(matrices, (2, 0, 1, 3)), (groups, n_positions * features_in, features_out)
    )
    patches = [
        ctx.reshaped(patch, (n_outputs, groups, features_in)) for patch in _patches(ctx, lhs, conv)
    ]
    rows = ops.transpose(ops.concat(patches, -1), (1, 0, 2))
    out = ops.transpose(ops.matmul(rows, matrices), (1, 0, 2))
    return ctx.reshaped(out, conv.out_shape)


def _patches(ctx: Context, lhs: Tensor, conv: Conv) -> list[Tensor]:
    """For each filter position, the inputs that it multiplies: one for each output."""
    if conv.rank == 0:
        return [lhs]
    spatial = conv.out_shape[1:-1]
    patches = []
    for position in itertools.product(*(range(k) for k in conv.rhs_shape[: conv.rank])):
        begin = [p * d for p, d in zip(position, conv.rhs_dilation, strict=True)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, spatial, conv.strides, strict=True)]
        patches.append(
            ops.strided_slice(
                lhs,
                (0, *begin, 0),
                ctx.shape((conv.lhs_shape[0], *end, conv.lhs_shape[-1])),
                (1, *conv.strides, 1),
            )
        )
    return patches
