"""Whether a target takes the ops that the rules made for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf.lowering import refusals
from jax2tf.targets import Target

# What holds a graph together and computes nothing.
_ALWAYS = frozenset(
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


class Taken:
    """Holds the ops of a graph against what a target takes, each op once."""

    def __init__(self, target: Target):
        self._target = target
        self._seen: set[tf.Operation] = set()

    def require(
        self, eqn: jex_core.JaxprEqn, operands: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """Refuses an equation whose results are computed by an op that the target does not take.

        Eager mode makes no graph, and is not held to it.

        Raises:
          UnsupportedPrimitiveError: naming the op, its dtype and the target.
        """
        if self._target.ops is None or tf.executing_eagerly():
            return
        given = {x.op for x in operands if tf.is_tensor(x)}
        pending = [x.op for x in results if tf.is_tensor(x)]
        while pending:
            op = pending.pop()
            if op in self._seen or op in given:
                continue
            self._seen.add(op)
            self._require(eqn, op)
            pending += [x.op for x in op.inputs]

    def _require(self, eqn: jex_core.JaxprEqn, op: tf.Operation) -> None:
        assert self._target.ops is not None
        if op.type in _ALWAYS:
            return
        dtype = (*op.inputs, *op.outputs)[0].dtype.name
        taken = self._target.ops.get(op.type, ())
        if dtype in taken:
            return
        takes = f"takes {op.type} of {', '.join(taken)} alone" if taken else f"takes no {op.type}"
        raise refusals.unsupported(
            eqn,
            f"it is lowered to the op {op.type} of {dtype}, and the target {self._target.name!r} "
            f"{takes}",
            "write that part with other functions, or convert for another target",
        )
