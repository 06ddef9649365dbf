"""Ops whose result is one of their operands, because another operand is a known number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jax2tf._src.export.tflite.model import Op, Value

# The number at the place of the second operand, or of both, that leaves the other as it is.
_NEUTRAL: Mapping[str, bool | int] = {"LOGICAL_AND": True, "LOGICAL_OR": False, "DIV": 1, "MUL": 1}


def operand_of(op: Op) -> Value | None:
    """The operand that the result of an op is; None if it is another array."""
    if op.options.get("fusedActivationFunction"):
        return None
    found = _chosen(op) if op.code == "SELECT_V2" else _of_numbers(op)
    return found if found is not None and have_one_shape(found, op.results[0]) else None


def have_one_shape(one: Value, other: Value) -> bool:
    """Whether both have the same known sizes."""
    known = one.shape is not None and all(isinstance(n, int) for n in one.shape)
    return known and one.shape == other.shape


def _chosen(op: Op) -> Value | None:
    condition, yes, no = op.operands
    array = None if condition is None else condition.array
    if array is None or not array.size or array.any() != array.all():
        return None
    return yes if array.all() else no


def _of_numbers(op: Op) -> Value | None:
    if op.code == "NOT_EQUAL" and _is(op.operands[1], 0):
        # The number of a truth value is not 0 where it is true.
        cast = None if op.operands[0] is None else op.operands[0].op
        source = cast.operands[0] if cast is not None and cast.code == "CAST" else None
        return source if source is not None and source.dtype == np.bool_ else None
    neutral = _NEUTRAL.get(op.code)
    if neutral is None:
        return None
    first, second = op.operands
    if _is(second, neutral):
        return first
    return second if op.code != "DIV" and _is(first, neutral) else None


def _is(x: Value | None, number: int | bool) -> bool:
    array = None if x is None else x.array
    return array is not None and array.size > 0 and bool((array == number).all())
