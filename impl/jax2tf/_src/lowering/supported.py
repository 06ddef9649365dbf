"""Finds the ops that a graph gets for each equation, and checks that the target takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.api.errors import UnsupportedDtypeError, UnsupportedPrimitiveError
from jax2tf._src.lowering import refusals
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import KEY_INPUTS, Target
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Graph, Operation, Tensor

# Ops that connect a graph and compute nothing.
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
    """Is told of the ops of each equation. The lowering goes on after a refused equation."""

    def within(self, eqn: jex_core.JaxprEqn, lowered_by: str) -> AbstractContextManager[None]:
        """A context around the lowering of an equation and of the equations that it calls."""

    def made(self, eqn: jex_core.JaxprEqn, operations: Sequence[Operation]) -> None:
        """Is told that `operations` are new in the graph."""

    def refused(self, eqn: jex_core.JaxprEqn, error: UnsupportedPrimitiveError) -> None:
        """Is told that an equation has no lowering; zeros replace its results."""


class NewOps:
    """Finds the ops of a graph that no earlier equation made."""

    def __init__(self) -> None:
        self._seen: set[Operation] = set()

    def behind(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> list[Operation]:
        """Returns the new ops that compute `results` from `operands`, roughly in their order."""
        given = {x.op for x in operands if ops.is_tensor(x)}
        pending = [x.op for x in results if ops.is_tensor(x)]
        found = []
        while pending:
            op = pending.pop()
            if op in self._seen or op in given:
                continue
            self._seen.add(op)
            found.append(op)
            pending += [x.op for x in op.inputs]
        return found[::-1]


def require_taken(eqn: jex_core.JaxprEqn, operations: Sequence[Operation], target: Target) -> None:
    """Refuses an equation that was lowered to an op which the target does not take.

    Raises:
      UnsupportedPrimitiveError: the error names the target, and the op with its dtype, or the
        dtype or the dimensions of the result.
    """
    for op in operations:
        _require_dtypes(eqn, op, target)
        _require_dimensions(eqn, op, target)
        if op.type in STRUCTURAL:
            continue
        dtype = (*op.inputs, *op.outputs)[KEY_INPUTS.get(op.type, 0)].dtype.name
        takes = _what_is_taken(op, dtype, target)
        lack = _lack(op, target) if takes is None else None
        if lack is not None:
            raise refusals.unsupported(
                eqn,
                f"it is lowered to {lack}, which the target {target.name!r} does not take",
                "write that part with other functions",
            )
        if takes is None:
            continue
        raise refusals.unsupported(
            eqn,
            f"it is lowered to the op {op.type} of {dtype}, and the target {target.name!r} {takes}",
            _remedy(op.type, dtype, target),
        )


def require_arrays(
    trace: Trace, jaxpr: jex_core.ClosedJaxpr, args: Sequence[Tensor], target: Target
) -> None:
    """Refuses a function if the target has no arrays of the dtype of an argument or result.

    A variable or a constant that no equation reads is not in the file, so it may have any dtype.
    Seeds of dropout, among the parameters of a model that predicts, are such variables.

    Args:
      trace: the function.
      jaxpr: its equations, as they will be lowered.
      args: its arguments, in the graph.
      target: the target.

    Raises:
      UnsupportedDtypeError: the error names the argument or the result, and its dtype.
    """
    if target.takes_arrays("uint32"):
        return
    read = {v for eqn in jaxpr.jaxpr.eqns for v in eqn.invars if isinstance(v, jex_core.Var)}
    arguments = (
        (trace.path(i), v.aval)
        for i, (v, x) in enumerate(zip(jaxpr.jaxpr.invars, args, strict=True))
        if v in read or x.op.type == "Placeholder"
    )
    results = ((f"result {i}", aval) for i, aval in enumerate(trace.jaxpr.out_avals))
    for name, aval in (*arguments, *results):
        dtype = getattr(aval, "dtype", np.dtype(bool))
        is_of_keys = dtypes.is_key(dtype)
        if is_of_keys or dtype == np.uint32:
            raise UnsupportedDtypeError(
                f"jax2tf.convert: {name} is of {'keys' if is_of_keys else 'uint32'}, and the "
                f"target {target.name!r} has no arrays of uint32. What to do: have int32 there, "
                "and its bits inside the function, jax.lax.bitcast_convert_type(x, jnp.uint32), of "
                "which jax.random.wrap_key_data makes a key; or convert for another target."
            )


_OTHER_FUNCTIONS = "write that part with other functions, or convert for another target"
_IN_PARTS = (
    "give the real and the imaginary part, jnp.real(x) and jnp.imag(x), each as a result of its "
    "own, or convert for another target"
)
# The remedies, by the op that the target does not take.
_REMEDIES = {"Complex": _IN_PARTS, "Imag": _IN_PARTS, "Real": _IN_PARTS}


_OTHER_DTYPE = "cast to a dtype of the engine's, or convert for another target"
_DTYPE_REMEDIES = {
    "bfloat16": (
        "jax2tf.export(..., widen_bfloat16=True) computes it in float32; or cast to a dtype of "
        "the engine's, or convert for another target"
    ),
    "complex64": _IN_PARTS,
    "complex128": _IN_PARTS,
    "float64": "compute it in float32, x.astype(jnp.float32), or convert for another target",
}


def _remedy(op: str, dtype: str, target: Target) -> str:
    if op in _REMEDIES:
        return _REMEDIES[op]
    is_of_dtype = bool(target.lacks.get(op)) or (target.ops is not None and op in target.ops)
    return _DTYPE_REMEDIES.get(dtype, _OTHER_DTYPE) if is_of_dtype else _OTHER_FUNCTIONS


def _require_dtypes(eqn: jex_core.JaxprEqn, op: Operation, target: Target) -> None:
    lacking = [x.dtype.name for x in op.outputs if x.dtype.name in target.refused_dtypes]
    if lacking and _is_run(op, target):
        raise refusals.unsupported(
            eqn,
            f"it gives an array of {lacking[0]}, and the target {target.name!r} has none of it",
            _DTYPE_REMEDIES.get(lacking[0], _OTHER_DTYPE),
        )


def _require_dimensions(eqn: jex_core.JaxprEqn, op: Operation, target: Target) -> None:
    most = target.most_dimensions
    rank = max((x.shape.rank or 0 for x in op.outputs), default=0)
    if most is not None and rank > most and _is_run(op, target):
        raise refusals.unsupported(
            eqn,
            f"it gives an array of {rank} dimensions, and the target {target.name!r} has none of "
            f"more than {most}",
            "merge dimensions with jnp.reshape, or convert for another target",
        )


def _lack(op: Operation, target: Target) -> str | None:
    """Names the use of an op that the target refuses although it takes other uses, or None."""
    if op.type == "StridedSlice" and target.has(Quirk.NO_AXES_IN_SLICES):
        in_parts = op.inputs[0].shape.rank != 1
        if op.get_attr("new_axis_mask") or (in_parts and op.get_attr("shrink_axis_mask")):
            return "a StridedSlice that adds or drops a dimension"
    if op.type == "SelectV2" and target.has(Quirk.NO_SCALAR_CHOICE):
        ranks = [x.shape.rank for x in op.inputs]
        if ranks[0] == 0 and ranks != [0, 0, 0]:
            return "a SelectV2 of arrays by a scalar"
    return None


def _what_is_taken(op: Operation, dtype: str, target: Target) -> str | None:
    """Says, for messages, that a target does not take an op of a dtype; None if it does."""
    if op.type in target.lacks:
        lacking = target.lacks[op.type]
        # A converter folds an op whose operands are constants, whatever their dtype.
        is_run = depends_on_an_argument(op) if lacking else _is_run(op, target)
        if is_run and (not lacking or dtype in lacking):
            return f"takes no {op.type}{f' of {dtype}' if lacking else ''}"
    if target.ops is None:
        return None
    taken = target.ops.get(op.type, ())
    if dtype in taken:
        return None
    return f"takes {op.type} of {', '.join(taken)} alone" if taken else f"takes no {op.type}"


def _is_run(op: Operation, target: Target) -> bool:
    """Whether the engine runs an op. An engine's converter may fold it instead."""
    return target.has(Quirk.NO_FOLDING) or depends_on_an_argument(op)


def is_computed(x: Tensor) -> bool:
    """Whether a graph computes `x` from the function's arguments or variables."""
    return not ops.executing_eagerly() and depends_on_an_argument(x.op)


def depends_on_an_argument(*operations: Operation) -> bool:
    """Whether one of the ops depends on an argument or on a variable of the graph."""
    return any(map(_depends_on_an_argument, operations))


_ARGUMENTS = ("Placeholder", "ReadVariableOp")
# By graph: whether each op, by its name, depends on an argument.
_dependent: WeakKeyDictionary[Graph, dict[str, bool]] = WeakKeyDictionary()


def _depends_on_an_argument(operation: Operation) -> bool:
    """Walks back through the graph, past no op twice in the life of the graph."""
    known = _dependent.setdefault(operation.graph, {})
    path = [operation]
    operands = [_operands_of(operation)]
    while path:
        op = path[-1]
        found = op.type in _ARGUMENTS or known.get(op.name)
        if found:
            known.update((each.name, True) for each in path)
            return True
        following = None if found is False else next(operands[-1], None)
        if following is None:
            known[op.name] = False
            path.pop()
            operands.pop()
        else:
            path.append(following)
            operands.append(_operands_of(following))
    return False


def _operands_of(op: Operation) -> Iterator[Operation]:
    return (x.op for x in op.inputs)
