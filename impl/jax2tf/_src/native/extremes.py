"""Maximum, minimum and clamp of floats in a StableHLO module, for TensorFlow's XLA on the CPU.

That XLA compiles these ops to the processor's own instructions, which lose NaNs of one operand and
treat -0 and +0 as equal. StableHLO (like IEEE 754-2019) returns a NaN of either operand, and -0 is
less than +0. Comparisons replace the ops here.
"""

from __future__ import annotations

from collections.abc import Callable

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jax2tf._src.util.typing import MlirValue


def spell_out(module: ir.Module) -> None:
    """Replaces the ops everywhere in `module`, also in the regions of other ops."""
    replaced: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in _REPLACEMENTS and isinstance(_element_type(op.result), ir.FloatType):
            replaced.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in replaced:
        with ir.InsertionPoint(op), op.location:
            replacement = _REPLACEMENTS[op.name](*op.operands)
        op.result.replace_all_uses_with(replacement)
        op.erase()


def _maximum(x: MlirValue, y: MlirValue) -> MlirValue:
    return _extreme("GE", x, y)


def _minimum(x: MlirValue, y: MlirValue) -> MlirValue:
    return _extreme("LE", x, y)


def _clamp(low: MlirValue, x: MlirValue, high: MlirValue) -> MlirValue:
    return _minimum(_maximum(x, _broadcast(low, x)), _broadcast(high, x))


_REPLACEMENTS: dict[str, Callable[..., MlirValue]] = {
    "stablehlo.maximum": _maximum,
    "stablehlo.minimum": _minimum,
    "stablehlo.clamp": _clamp,
}


def _extreme(direction: str, x: MlirValue, y: MlirValue) -> MlirValue:
    # In the total order -0 is less than +0. A NaN may be at either end, so x != x detects NaNs.
    beats = _compare(direction, x, y, "TOTALORDER")
    takes_x = stablehlo.or_(beats, _compare("NE", x, x))
    return stablehlo.select(stablehlo.and_(takes_x, _compare("EQ", y, y)), x, y)


def _compare(direction: str, x: MlirValue, y: MlirValue, order: str = "FLOAT") -> MlirValue:
    return stablehlo.compare(
        x,
        y,
        stablehlo.ComparisonDirectionAttr.get(direction),
        compare_type=stablehlo.ComparisonTypeAttr.get(order),
    )


def _broadcast(bound: MlirValue, like: MlirValue) -> MlirValue:
    """A bound of a clamp, which may be a scalar, in the shape of the clamped operand."""
    if ir.RankedTensorType(bound.type).rank == ir.RankedTensorType(like.type).rank:
        return bound
    if ir.RankedTensorType(like.type).has_static_shape:
        return stablehlo.broadcast_in_dim(like.type, bound, ir.DenseI64ArrayAttr.get([]))
    one = ir.RankedTensorType.get([1], ir.IntegerType.get_signless(32))
    sizes = [
        stablehlo.reshape(one, stablehlo.get_dimension_size(like, axis))
        for axis in range(ir.RankedTensorType(like.type).rank)
    ]
    shape = stablehlo.concatenate(sizes, 0)
    return stablehlo.dynamic_broadcast_in_dim(like.type, bound, shape, ir.DenseI64ArrayAttr.get([]))


def _element_type(value: MlirValue) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type
