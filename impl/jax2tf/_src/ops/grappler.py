"""Ops that TensorFlow's graph optimiser, Grappler, has to leave as they are.

Grappler runs on every graph, and what it makes of some ops is not what JAX computes:

- The order of sums and products. It adds `(a + b) + (c + d)` from left to right, and joins two
  constants, or two scalars, that are added to an array one after the other. `(x + c) - c` with a
  large c, which rounds x, becomes x.
- The negation of a comparison. It makes `x <= 0` of `~(x > 0)`, which is False where x is NaN.

Both are stopped by an attribute that Grappler itself sets or looks for. TensorFlow's kernels, XLA
and the engines' converters pass over it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import tensorflow as tf

Attributes = Sequence[tuple[str, bytes]]

_TRUE = tf.compat.v1.AttrValue(b=True).SerializeToString()
# By this Grappler knows a sum or product that it has put in order already.
_IN_ORDER = ("_grappler_ArithmeticOptimizer_AddOpsRewriteStage", _TRUE)
# What has this is as good as named from outside. It is not folded either.
_KEPT = ("_grappler_do_not_remove", _TRUE)


def attributes(op: str, operands: Sequence[tf.Tensor]) -> Attributes:
    """The attributes that keep an op of a graph as it is, serialised."""
    if op == "LogicalNot":
        return (_KEPT,)
    if op not in ("AddV2", "Mul", "Sub"):
        return ()
    x, y = operands
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return ()
    in_order = () if op == "Sub" else (_IN_ORDER,)
    # XLA joins constant factors too.
    has_constant = op != "Mul" and is_constant(x) != is_constant(y)
    return (*in_order, _KEPT) if has_constant else in_order


# Ops of graphs that are known to read more than constants.
_VARYING: weakref.WeakSet[tf.Operation] = weakref.WeakSet()


def is_constant(x: tf.Tensor, depth: int = 8) -> bool:
    """Whether Grappler will find a constant, which it does from the inside out."""
    op = x.op
    if op in _VARYING:
        return False
    operands = op.inputs
    if operands and depth:
        for operand in operands:
            if not is_constant(operand, depth - 1):
                if operand.op in _VARYING:
                    _VARYING.add(op)
                return False
        return True
    if op.type == "Const":
        return True
    if not operands:
        _VARYING.add(op)
    return False
