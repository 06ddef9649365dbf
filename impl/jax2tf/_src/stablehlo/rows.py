"""Reads and writes of one row of an array, as JAX writes them for the inputs of a scan.

JAX's scan becomes a loop that reads `xs[i]` by a dynamic_slice of one row, and writes `ys[i]` by a
dynamic_update_slice, often in functions of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from jax2tf._src.stablehlo.program import Function, Op, Program, TensorType, Type

_CALLS = ("func.call", "stablehlo.call")
_RESHAPES = tuple(
    f"stablehlo.{name}"
    for name in ("reshape", "dynamic_reshape", "broadcast_in_dim", "dynamic_broadcast_in_dim")
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of an array, by the numbers of values.

    Attributes:
      array: the array that is read or updated.
      index: which row it is.
      value: what the row becomes; None for one that is read.
      has_axis: whether the row has the array's first axis, of size one.
    """

    array: int
    index: int
    value: int | None
    has_axis: bool


def row_read(program: Program, op: Op) -> Row | None:
    """The row that an op reads; None for another op."""
    if op.name in _CALLS:
        return _of_call(program, op, _read_by)
    return _read(program, op)


def row_written(program: Program, op: Op) -> Row | None:
    """The row that an op writes; None for another op."""
    if op.name in _CALLS:
        return _of_call(program, op, _written_by)
    return _written(program, op)


def _of_call(
    program: Program, op: Op, row_of: Callable[[Program, Function], Row | None]
) -> Row | None:
    function = program.functions[op.attributes["callee"]]
    row = row_of(program, function) if len(function.body.results) == 1 else None
    if row is None:
        return None
    operands = dict(zip(function.body.arguments, op.operands, strict=True))
    if not {row.array, row.index} <= operands.keys():
        return None
    if row.value is None:
        return dataclasses.replace(row, array=operands[row.array], index=operands[row.index])
    if row.value not in operands:
        return None
    return Row(operands[row.array], operands[row.index], operands[row.value], row.has_axis)


def _read_by(program: Program, function: Function) -> Row | None:
    """The row that a function returns, without the first axis."""
    last = program.definitions.get(function.body.results[0])
    if last is None or last.name not in _RESHAPES[:2] or not _drops_axis(last):
        return None
    made_by = program.definitions.get(last.operands[0])
    row = _read(program, made_by) if made_by is not None else None
    return None if row is None else dataclasses.replace(row, has_axis=False)


def _written_by(program: Program, function: Function) -> Row | None:
    """The row that a function writes of a value without the first axis."""
    made_by = program.definitions.get(function.body.results[0])
    row = _written(program, made_by) if made_by is not None else None
    if row is None or row.value is None:
        return None
    added = program.definitions.get(row.value)
    if added is None or added.name not in _RESHAPES or not _adds_axis(added):
        return None
    return dataclasses.replace(row, value=added.operands[0], has_axis=False)


def _read(program: Program, op: Op) -> Row | None:
    if op.name == "stablehlo.dynamic_slice":
        array, index, *others = op.operands
        starts_at_zero = all(_is_zero(program, number) for number in others)
        return Row(array, index, None, True) if starts_at_zero and _is_row(op) else None
    if op.name == "stablehlo.real_dynamic_slice":
        start = _start_of_open_slice(program, op)
        return None if start is None or not _is_row(op) else Row(op.operands[0], start, None, True)
    return None


def _written(program: Program, op: Op) -> Row | None:
    if op.name != "stablehlo.dynamic_update_slice":
        return None
    array, value, index, *others = op.operands
    whole, update = op.operand_types[:2]
    starts_at_zero = all(_is_zero(program, number) for number in others)
    return Row(array, index, value, True) if starts_at_zero and _fits(whole, update) else None


def _is_row(op: Op) -> bool:
    return _fits(op.operand_types[0], op.types[0])


def _fits(whole: Type, row: Type) -> bool:
    """Whether a type is that of one row, as far as sizes are known."""
    assert isinstance(whole, TensorType)
    assert isinstance(row, TensorType)
    return bool(whole.shape) and row.shape == (1, *whole.shape[1:])


def _start_of_open_slice(program: Program, op: Op) -> int | None:
    """The start along the first axis of `x[clamp(0, start, shape - sizes) : ... + sizes]`."""
    _, start, limit, _ = op.operands
    clamp, add = program.definitions.get(start), program.definitions.get(limit)
    if clamp is None or clamp.name != "stablehlo.clamp" or add is None:
        return None
    highest = program.definitions.get(clamp.operands[2])
    if add.name != "stablehlo.add" or highest is None or highest.name != "stablehlo.subtract":
        return None
    if add.operands != (start, highest.operands[1]) or not _is_zero(program, clamp.operands[0]):
        return None
    parts = program.definitions.get(clamp.operands[1])
    if parts is None or parts.name != "stablehlo.concatenate":
        return None
    if not all(_is_zero(program, number) for number in parts.operands[1:]):
        return None
    first = program.definitions.get(parts.operands[0])
    is_scalar = first is not None and first.name == "stablehlo.reshape"
    return first.operands[0] if first is not None and is_scalar else None


def _is_zero(program: Program, number: int) -> bool:
    op = program.definitions.get(number)
    if op is None:
        return False
    if op.name in ("stablehlo.reshape", "stablehlo.concatenate"):
        return all(_is_zero(program, operand) for operand in op.operands)
    return op.name == "stablehlo.constant" and not np.any(op.attributes["value"])


def _drops_axis(op: Op) -> bool:
    before, after = op.operand_types[0], op.types[0]
    assert isinstance(before, TensorType)
    assert isinstance(after, TensorType)
    return before.shape == (1, *after.shape)


def _adds_axis(op: Op) -> bool:
    before, after = op.operand_types[0], op.types[0]
    assert isinstance(before, TensorType)
    assert isinstance(after, TensorType)
    places = op.attributes.get("broadcast_dimensions")
    keeps_order = places is None or tuple(places) == tuple(range(1, len(after.shape)))
    return keeps_order and after.shape == (1, *before.shape)
