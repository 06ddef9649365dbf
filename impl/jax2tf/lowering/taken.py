"""The ops that a graph gets for each equation, and whether a target takes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf.errors import UnsupportedPrimitiveError
from jax2tf.lowering import refusals
from jax2tf.targets import Target

# What holds a graph together and computes nothing.
STRUCTURAL = frozenset(
    {
        "Const",
        "Identity",
        "IdentityN",
        "NoOp",
        "PartitionedCall",
        "Placeholder",
        "ReadVariableOp",
        "StatefulPartitionedCall",
    }
)


class Observer(Protocol):
    """Sees what each equation is lowered to, and goes on where one cannot be lowered."""

    def within(self, eqn: jex_core.JaxprEqn) -> AbstractContextManager[None]:
        """Around the lowering of an equation, and of the equations of what it calls."""

    def made(self, eqn: jex_core.JaxprEqn, ops: Sequence[tf.Operation]) -> None:
        """These ops are new in the graph."""

    def refused(self, eqn: jex_core.JaxprEqn, error: UnsupportedPrimitiveError) -> None:
        """There is no lowering; zeros stand for the results."""


class NewOps:
    """Finds the ops of a graph that no equation before had made."""

    def __init__(self) -> None:
        self._seen: set[tf.Operation] = set()

    def behind(self, operands: Sequence[Any], results: Sequence[Any]) -> list[tf.Operation]:
        """The ops that compute `results` from `operands`, each once, roughly as they run."""
        given = {x.op for x in operands if tf.is_tensor(x)}
        pending = [x.op for x in results if tf.is_tensor(x)]
        found = []
        while pending:
            op = pending.pop()
            if op in self._seen or op in given:
                continue
            self._seen.add(op)
            found.append(op)
            pending += [x.op for x in op.inputs]
        return found[::-1]


def require_taken(eqn: jex_core.JaxprEqn, ops: Sequence[tf.Operation], target: Target) -> None:
    """Refuses an equation that was lowered to an op which the target does not take.

    Raises:
      UnsupportedPrimitiveError: naming the op, its dtype and the target.
    """
    for op in ops:
        if target.ops is None or op.type in STRUCTURAL:
            continue
        dtype = (*op.inputs, *op.outputs)[0].dtype.name
        taken = target.ops.get(op.type, ())
        if dtype in taken:
            continue
        takes = f"takes {op.type} of {', '.join(taken)} alone" if taken else f"takes no {op.type}"
        raise refusals.unsupported(
            eqn,
            f"it is lowered to the op {op.type} of {dtype}, and the target {target.name!r} {takes}",
            "write that part with other functions, or convert for another target",
        )
