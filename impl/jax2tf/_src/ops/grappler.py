"""Attributes that stop Grappler, TensorFlow's graph optimiser, from rewriting an op.

Grappler runs on every graph, and two of its rewrites change results:

- It reorders sums and products: it adds `(a + b) + (c + d)` from left to right, and joins two
  constants, or two scalars, that are added to an array one after the other. `(x + c) - c` with a
  large c, which rounds x, becomes x.
- It rewrites the negation of a comparison: `~(x > 0)` becomes `x <= 0`, which is False for a NaN.

Grappler itself sets or looks for these attributes. TensorFlow's kernels, XLA and the engines'
converters ignore them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from jax2tf._src.util.lazy_imports import tf

Attributes = Sequence[tuple[str, bytes]]

# AttrValue(b=True), serialised.
TRUE = b"(\x01"
# Grappler marks the sums and products that it has reordered with this attribute.
_IN_ORDER = ("_grappler_ArithmeticOptimizer_AddOpsRewriteStage", TRUE)
# Grappler treats an op with this attribute like a fetched output: it neither removes nor folds it.
_NOT_REMOVED = ("_grappler_do_not_remove", TRUE)


def attributes(op: str, operands: Sequence[tf.Tensor]) -> Attributes:
    """The attributes that keep Grappler from rewriting the op, serialised."""
    if op == "LogicalNot":
        return (_NOT_REMOVED,)
    if op not in ("AddV2", "Mul", "Sub"):
        return ()
    x, y = operands
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return ()
    in_order = () if op == "Sub" else (_IN_ORDER,)
    # XLA joins constant factors too.
    has_constant = op != "Mul" and is_constant(x) != is_constant(y)
    return (*in_order, _NOT_REMOVED) if has_constant else in_order


# Ops that `is_constant` has found to depend on more than constants.
_VARYING: weakref.WeakSet[tf.Operation] = weakref.WeakSet()


def is_constant(x: tf.Tensor, depth: int = 8) -> bool:
    """Whether Grappler will fold `x` to a constant, from the inside out."""
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
