"""Choices between two arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from jax2tf._src.export.onnx import zeros
from jax2tf._src.export.onnx.registry import writes
from jax2tf._src.export.onnx.rules.dtypes import compute, dtype_to_compute, narrowed, widened
from jax2tf._src.export.onnx.writer import Writer
from jax2tf._src.graph.graph import Node
from jax2tf._src.graph.shapes.registry import Shape


def where(
    w: Writer, dtype: np.dtype, condition: ir.Value, this: ir.Value, that: ir.Value
) -> ir.Value:
    """`this` where the condition holds, else `that`, both of a dtype.

    ONNX Runtime makes 0.0 of each -0.0 that it takes from the first choice; see zeros.py.
    """
    negated = _negated(condition)
    if negated is not None:
        # ONNX Runtime exchanges the choices behind a Not, but not behind another op.
        if not _may_be_negative_zero(this) and _may_be_negative_zero(that):
            condition = w.op("Xor", negated, w.constant(True))
        else:
            condition, this, that = negated, that, this
    if dtype == np.bool_:
        logic = _logic(w, condition, this, that)
        if logic is not None:
            return logic
    this, that = (widened(w, "Where", dtype, x) for x in (this, that))
    return narrowed(w, "Where", dtype, w.op("Where", condition, this, that))


def _logic(w: Writer, condition: ir.Value, this: ir.Value, that: ir.Value) -> ir.Value | None:
    """A choice of bools, one of which is a constant scalar; None for others."""
    known = [_scalar(x) for x in (this, that)]
    if known[0] is not None:
        return w.op("Or", condition, that) if known[0] else w.op("And", _not(w, condition), that)
    if known[1] is not None:
        return w.op("Or", _not(w, condition), this) if known[1] else w.op("And", condition, this)
    return None


def _scalar(x: ir.Value) -> bool | None:
    array = None if x.const_value is None else x.const_value.numpy()
    return bool(array) if array is not None and array.ndim == 0 else None


def _not(w: Writer, condition: ir.Value) -> ir.Value:
    result: ir.Value = w.op("Not", condition)
    return result


def _negated(condition: ir.Value) -> ir.Value | None:
    """The operand of a Not; None for another condition."""
    made = condition.producer()
    return made.inputs[0] if made is not None and made.op_type == "Not" else None


def _may_be_negative_zero(x: ir.Value) -> bool:
    if x.const_value is None:
        return True
    array = x.const_value.numpy()
    return array.dtype.kind not in "biu" and bool(np.any((array == 0) & np.signbit(array)))


@writes("SelectV2")
def _select(w: Writer, node: Node, condition: ir.Value, this: ir.Value, that: ir.Value) -> ir.Value:
    dtype = node.inputs[1].dtype
    assert dtype is not None
    zeros_of = w.signed_choices.get(node)
    if zeros_of is None:
        return where(w, dtype, condition, this, that)
    shapes = [x.shape for x in node.inputs]
    return _signed(w, dtype, _Choice(condition, (this, that), zeros_of), shapes)


@dataclasses.dataclass
class _Choice:
    """A choice of floats.

    Attributes:
      condition: the condition, which is made by no Not: ONNX Runtime exchanges the choices behind
        a Not.
      choices: the numbers where it holds, and where it does not.
      has_zeros: whether each of them may be -0.0.
    """

    condition: ir.Value
    choices: tuple[ir.Value, ir.Value]
    has_zeros: tuple[bool, bool]

    def exchanged(self, condition: ir.Value) -> _Choice:
        """The choices in the other order, with the opposite condition."""
        return _Choice(condition, self.choices[::-1], self.has_zeros[::-1])


def _signed(w: Writer, dtype: np.dtype, choice: _Choice, shapes: Sequence[Shape]) -> ir.Value:
    """A choice whose zeros keep their signs; see zeros.py."""
    of_condition, *of_choices = shapes
    negated = _negated(choice.condition)
    if negated is not None:
        choice, of_choices = choice.exchanged(negated), of_choices[::-1]
    this, that = (widened(w, "Where", dtype, x) for x in choice.choices)
    if not _loses(choice.has_zeros, zeros.losers(of_condition, *of_choices)):
        return narrowed(w, "Where", dtype, w.op("Where", choice.condition, this, that))
    opposite = _opposite(w, choice.condition)
    if not _loses(choice.has_zeros[::-1], zeros.losers(of_condition, *of_choices[::-1])):
        return narrowed(w, "Where", dtype, w.op("Where", opposite, that, this))
    # Each number times one: the second choice of a Where by a constant keeps its signs.
    one = w.constant(1, dtype_to_compute("Where", dtype))
    first = w.op("Where", opposite, one, this)
    second = w.op("Where", choice.condition, one, that)
    return narrowed(w, "Where", dtype, w.op("Mul", first, second))


def _loses(has_zeros: Sequence[bool], loses: Sequence[bool]) -> bool:
    return any(x and y for x, y in zip(has_zeros, loses, strict=True))


_OPPOSITES: Mapping[str, str] = {
    **{"Less": "GreaterOrEqual", "GreaterOrEqual": "Less"},
    **{"Greater": "LessOrEqual", "LessOrEqual": "Greater"},
}


def _opposite(w: Writer, condition: ir.Value) -> ir.Value:
    """The negation of a condition, by an op that ONNX Runtime does not take out of a Where."""
    if condition.const_value is not None:
        return w.constant(~condition.const_value.numpy())
    made = condition.producer()
    opposite = None if made is None else _OPPOSITES.get(made.op_type)
    # Of a number and NaN neither Less nor GreaterOrEqual holds.
    if made is not None and opposite is not None and _is_of_integers(made):
        return w.op(opposite, *made.inputs)
    return w.op("Xor", condition, w.constant(True))


def _is_of_integers(made: ir.Node) -> bool:
    """Whether a node compares integers; False if nothing says so."""
    dtypes = [x.dtype for x in made.inputs if x is not None and x.dtype is not None]
    return any(dtype.is_integer() for dtype in dtypes)


@writes("Maximum", "Minimum")
def _extreme(w: Writer, node: Node, x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = node.inputs[0].dtype
    assert dtype is not None
    return (maximum if node.op == "Maximum" else minimum)(w, dtype, x, y)


def maximum(w: Writer, dtype: np.dtype, x: ir.Value, y: ir.Value) -> ir.Value:
    """The larger numbers, and NaN where one is NaN."""
    if dtype == np.int64:
        return where(w, dtype, w.op("Less", x, y), y, x)
    return compute(w, "Max", dtype, x, y)


def minimum(w: Writer, dtype: np.dtype, x: ir.Value, y: ir.Value) -> ir.Value:
    """The smaller numbers, and NaN where one is NaN."""
    if dtype == np.int64:
        return where(w, dtype, w.op("Less", x, y), x, y)
    return compute(w, "Min", dtype, x, y)


def clipped(w: Writer, dtype: np.dtype, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """`x` between two scalars."""
    if dtype == np.int64:
        return maximum(w, dtype, minimum(w, dtype, x, high), low)
    return compute(w, "Clip", dtype, x, low, high)


@writes("ClipByValue")
def _clip(w: Writer, node: Node, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    dtype = node.inputs[0].dtype
    assert dtype is not None
    if node.inputs[1].shape == () and node.inputs[2].shape == ():
        return clipped(w, dtype, x, low, high)
    return maximum(w, dtype, minimum(w, dtype, x, high), low)
