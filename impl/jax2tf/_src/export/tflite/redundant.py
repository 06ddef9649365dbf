"""Removes ops that compute what another op has, or that undo each other."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from jax2tf._src.export.tflite import identities
from jax2tf._src.export.tflite.model import Op, Subgraph, Value, graphs_of
from jax2tf._src.export.tflite.uses import Uses


def remove(graph: Subgraph) -> None:
    """Removes them in place."""
    uses = Uses(graph)
    known: dict[Hashable, Op] = {}
    for op in graph.ops:
        same = identities.operand_of(op)
        if same is not None:
            uses.replace(op.results[0], same)
            continue
        if op.code == "RESHAPE":
            _shorten_reshape(uses, op)
        elif op.code == "TRANSPOSE":
            _shorten_transpose(uses, op)
        if graphs_of(op):
            continue
        first = known.setdefault(_key(op), op)
        if first is not op:
            for old, new in zip(op.results, first.results, strict=True):
                uses.replace(old, new)
    uses.without_unread()


def _key(op: Op) -> Hashable:
    types = tuple((x.dtype, x.shape) for x in op.results)
    return op.code, tuple(op.operands), types, repr(sorted(op.options.items()))


_RESHAPES = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")


def _shorten_reshape(uses: Uses, op: Op) -> None:
    """A reshape of a reshape is one; one to the shape that was there is none."""
    x = op.operands[0]
    while x is not None and x.op is not None and x.op.code in _RESHAPES:
        x = x.op.operands[0]
    if x is None:
        return
    op.operands[0] = x
    (result,) = op.results
    if identities.have_one_shape(x, result):
        uses.replace(result, x)


def _shorten_transpose(uses: Uses, op: Op) -> None:
    """A transpose of a transpose is one; one that leaves all where it was is none."""
    x, order = op.operands
    inner = None if x is None else x.op
    if inner is None or inner.code != "TRANSPOSE" or order is None or order.array is None:
        return
    before = inner.operands[1]
    if before is None or before.array is None:
        return
    both = before.array[order.array]
    source = inner.operands[0]
    assert source is not None
    if (both == np.arange(len(both))).all():
        uses.replace(op.results[0], source)
    else:
        op.operands = [source, Value(f"{order.name}/both", both.dtype, both.shape, both)]
