"""Ops that keep LiteRT's converter from merging an op before it recognises a gelu."""

from __future__ import annotations

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util.tensors import Tensor

# gelu is at least -0.17.
_BELOW_GELU = -1.0


def before_relu(ctx: Context, x: Tensor) -> Tensor:
    """`x` after a Maximum that changes nothing, if `x` is the last product of a gelu by erfc."""
    if ops.executing_eagerly() or not ctx.has(Quirk.RELU_TAKES_GELU_APART) or not _ends_gelu(x):
        return x
    return ops.raw.Maximum(x=x, y=ops.constant(_BELOW_GELU, x.dtype))


def _ends_gelu(x: Tensor) -> bool:
    op = x.op
    return op.type == "Mul" and any(operand.op.type == "Erfc" for operand in op.inputs)
