"""QR decompositions, which JAX writes as calls of geqrf and orgqr.

A call of geqrf has no derivative in JAX, a decomposition has one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step
from jax2tf._src.stablehlo.known import as_sizes, is_known
from jax2tf._src.stablehlo.program import Op, TensorType
from jax2tf._src.util.typing import HloValue as Array

_ORGQR = tuple(
    f"lapack_{routine}{suffix}"
    for routine in ("sorgqr", "dorgqr", "cungqr", "zungqr")
    for suffix in ("", "_ffi")
)
_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")


def is_qr(step: Step, x: Array) -> bool:
    """Gives the results of a QR decomposition, which starts with a call of geqrf.

    Returns:
      False if the results of the call have other uses, or sizes of the matrix are open.
    """
    rows, columns = x.shape[-2:]
    parts = _parts(step)
    if parts is None or not isinstance(rows, int) or not isinstance(columns, int):
        return False
    sides = _sides(parts.orthogonal, -1) | _sides(parts.triangular, -2)
    is_full = sides == {rows} and rows > columns
    if not is_full and sides != {min(rows, columns)}:
        return False
    q, r = lax.linalg.qr(x, full_matrices=is_full)
    for ops, value in ((parts.orthogonal, q), (parts.triangular, r), (parts.between, None)):
        for op in ops:
            step.give(op, value)
    return True


@dataclasses.dataclass(frozen=True)
class _Parts:
    """The ops that read what geqrf gives.

    Attributes:
      orthogonal: those that give Q.
      triangular: those that give R.
      between: those that pad the factors, or take rows and columns of them.
    """

    orthogonal: list[Op]
    triangular: list[Op]
    between: list[Op]


def _parts(step: Step) -> _Parts | None:
    readers = step.evaluator.readers
    factors, coefficients = step.op.results[:2]
    parts = _Parts([], [], [])
    pending = list(readers.get(factors, []))
    while pending:
        op = pending.pop()
        if op is None:
            return None
        if _is_orgqr(op) and op.operands[-1 - _n_shapes(op)] == coefficients:
            parts.orthogonal.append(op)
        elif op.name == "stablehlo.select" and _is_below_diagonal(step, op.operands[0]):
            if not _is_zero(step, op.operands[1]):
                return None
            parts.triangular.append(op)
        elif _keeps_corner(step, op):
            parts.between.append(op)
            pending += readers.get(op.results[0], [])
        else:
            return None
    is_alone = all(op in parts.orthogonal for op in readers.get(coefficients, []))
    return parts if is_alone else None


def _sides(ops: Sequence[Op], axis: int) -> set[int | None]:
    types = [op.types[0] for op in ops]
    return {t.shape[axis] for t in types if isinstance(t, TensorType)}


def _is_orgqr(op: Op) -> bool:
    return op.attributes.get("call_target_name") in _ORGQR


def _n_shapes(op: Op) -> int:
    """How many operands are shapes of results, which come last."""
    return len(np.asarray(op.attributes.get("indices_of_shape_operands", ())).reshape(-1))


def _is_zero(step: Step, number: int) -> bool:
    """Whether a value is a constant of zeros, or the broadcast of one."""
    value = step.environment.get(number)
    op = step.evaluator.program.definitions.get(number)
    if op is not None and op.name in _BROADCASTS:
        return _is_zero(step, op.operands[0])
    if op is not None and op.name == "stablehlo.constant":
        value = op.attributes["value"]
    return isinstance(value, np.ndarray) and bool((value == 0).all())


def _is_below_diagonal(step: Step, number: int) -> bool:
    """Whether a value is `row - 1 >= column`, as jnp.triu is written."""
    definitions = step.evaluator.program.definitions
    op = definitions.get(number)
    while op is not None and op.name in _BROADCASTS and _broadcasts_to_last(op):
        op = definitions.get(op.operands[0])
    if op is None or op.name != "stablehlo.compare":
        return False
    if op.attributes["comparison_direction"] != "GE":
        return False
    row, column = map(definitions.get, op.operands)
    if row is None or row.name != "stablehlo.add" or not _counts(column, 1):
        return False
    one = step.known(row.operands[1])
    is_less = isinstance(one, np.ndarray) and bool((one == -1).all())
    return is_less and _counts(definitions.get(row.operands[0]), 0)


def _broadcasts_to_last(op: Op) -> bool:
    (kind,) = op.types
    assert isinstance(kind, TensorType)
    rank = len(kind.shape)
    return tuple(op.attributes["broadcast_dimensions"]) == (rank - 2, rank - 1)


def _counts(op: Op | None, axis: int) -> bool:
    """Whether an op counts along an axis of a matrix."""
    if op is None or op.name != "stablehlo.iota" or op.attributes["iota_dimension"] != axis:
        return False
    (kind,) = op.types
    return isinstance(kind, TensorType) and len(kind.shape) == 2


def _keeps_corner(step: Step, op: Op) -> bool:
    """Whether an op pads an array at its ends, or takes the first of its elements."""
    zeros: list[object] = []
    if op.name == "stablehlo.slice":
        zeros = [op.attributes["start_indices"], np.asarray(op.attributes["strides"]) - 1]
    elif op.name == "stablehlo.pad":
        zeros = [op.attributes["edge_padding_low"], op.attributes["interior_padding"]]
    elif op.name == "stablehlo.dynamic_gather":
        numbers = op.attributes["dimension_numbers"]
        (kind,) = op.types
        assert isinstance(kind, TensorType)
        if tuple(numbers["offset_dims"]) != tuple(range(len(kind.shape))):
            return False
        zeros = _known(step, op.operands[1:2])
    elif op.name == "stablehlo.dynamic_pad":
        zeros = _known(step, (op.operands[2], op.operands[4]))
    return bool(zeros) and not any(np.any(np.asarray(x, object) != 0) for x in zeros)


def _known(step: Step, numbers: Sequence[int]) -> list[object]:
    """Known operands; nothing if one is not known."""
    values = [step.known(number) for number in numbers]
    return [as_sizes(x) for x in values] if all(map(is_known, values)) else []
