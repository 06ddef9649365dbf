"""CHLO: special functions, and elementwise ops that broadcast their operands as NumPy does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import lax

from jax2tf._src.stablehlo import registry
from jax2tf._src.stablehlo.evaluator import Step, as_array
from jax2tf._src.stablehlo.registry import reads, reads_composite
from jax2tf._src.stablehlo.rules.convolution import precision
from jax2tf._src.util.typing import HloValue as Array

_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "acos": lax.acos,
    "acosh": lax.acosh,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "atanh": lax.atanh,
    "bessel_i1e": lax.bessel_i1e,
    "conj": lax.conj,
    "cosh": lax.cosh,
    "digamma": lax.digamma,
    "erf": lax.erf,
    "erf_inv": lax.erf_inv,
    "erfc": lax.erfc,
    "is_inf": jnp.isinf,
    "is_neg_inf": jnp.isneginf,
    "is_pos_inf": jnp.isposinf,
    "lgamma": lax.lgamma,
    "next_after": lax.nextafter,
    "polygamma": lax.polygamma,
    "sinh": lax.sinh,
    "square": lax.square,
    "tan": lax.tan,
    "zeta": lax.zeta,
}


def _register(name: str, function: Callable[..., Array]) -> None:
    @reads_composite(f"chlo.{name}")
    @reads(f"chlo.{name}")
    def rule(step: Step, *operands: Array, result_accuracy: str = "") -> Array:
        return function(*operands)


for _name, _function in _FUNCTIONS.items():
    _register(_name, _function)

_BROADCASTING = (
    *("add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "or", "power"),
    *("remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract"),
    "xor",
)


def _register_broadcasting(name: str) -> None:
    """chlo.broadcast_add is stablehlo.add of operands that are broadcast first."""
    rule = registry.OPS[f"stablehlo.{name}"]

    @reads(f"chlo.broadcast_{name}")
    def broadcasting(
        step: Step, x: Array, y: Array, *, broadcast_dimensions: tuple[int, ...] | None = None
    ) -> Array:
        return rule(step, *_broadcast(x, y, broadcast_dimensions))


def _broadcast(x: Array, y: Array, dimensions: tuple[int, ...] | None) -> Array:
    """Both operands in one shape. `dimensions` are those of the result that the operand of lower
    rank has.
    """
    if dimensions is not None and x.ndim != y.ndim:
        low, high = (x, y) if x.ndim < y.ndim else (y, x)
        shape = [1] * high.ndim
        for size, axis in zip(low.shape, dimensions, strict=True):
            shape[axis] = size
        low = lax.reshape(low, shape)
        x, y = (low, high) if x.ndim < y.ndim else (high, low)
    return jnp.broadcast_arrays(x, y)


for _name in _BROADCASTING:
    _register_broadcasting(_name)


@reads("chlo.broadcast_compare")
def _broadcast_compare(
    step: Step,
    x: Array,
    y: Array,
    *,
    comparison_direction: str,
    compare_type: str = "",
    broadcast_dimensions: tuple[int, ...] | None = None,
) -> Array:
    return registry.OPS["stablehlo.compare"](
        step,
        *_broadcast(x, y, broadcast_dimensions),
        comparison_direction=comparison_direction,
        compare_type=compare_type,
    )


@reads("chlo.broadcast_next_after", "chlo.broadcast_polygamma", "chlo.broadcast_zeta")
def _broadcast_special(
    step: Step, x: Array, y: Array, *, broadcast_dimensions: tuple[int, ...] | None = None
) -> Array:
    name = step.op.name.removeprefix("chlo.broadcast_")
    return _FUNCTIONS[name](*_broadcast(x, y, broadcast_dimensions))


@reads("chlo.constant_like")
def _constant_like(step: Step, x: Array, *, value: float) -> Array:
    return lax.full_like(x, value)


@reads("chlo.mulhi")
@reads_composite("chlo.mulhi")
def _mulhi(step: Step, x: Array, y: Array) -> Array:
    return lax.mulhi(x, y)


@reads("chlo.ragged_dot")
def _ragged_dot(
    step: Step,
    x: Array,
    y: Array,
    sizes: Array,
    *,
    ragged_dot_dimension_numbers: str,
    precision_config: tuple[str, ...] = (),
) -> Array:
    lists = re.findall(r"(\w+) = \[([\d, ]*)\]", ragged_dot_dimension_numbers)
    numbers = {name: [int(axis) for axis in re.findall(r"\d+", text)] for name, text in lists}
    contracting, batching = (
        tuple(numbers.get(f"{side}_{name}_dimensions", []) for side in ("lhs", "rhs"))
        for name in ("contracting", "batching")
    )
    return lax.ragged_dot_general(
        x,
        y,
        sizes,
        lax.RaggedDotDimensionNumbers(
            dot_dimension_numbers=(contracting, batching),
            lhs_ragged_dimensions=numbers.get("lhs_ragged_dimensions", []),
            rhs_group_dimensions=numbers.get("rhs_group_dimensions", []),
        ),
        precision=precision(precision_config),
        preferred_element_type=step.result.dtype,
    )


@reads("chlo.scan")
def _scan(
    step: Step,
    *operands: Array,
    dimension: int,
    operandSegmentSizes: tuple[int, ...],
    resultSegmentSizes: tuple[int, ...],
    is_reverse: bool = False,
    is_associative: bool = False,
    scan_dim_size: int = 0,
) -> list[Array]:
    """The region takes an element of each input and the carries; it gives outputs and carries."""
    (n_inputs, _), (n_outputs, _) = operandSegmentSizes, resultSegmentSizes
    inputs, inits = operands[:n_inputs], list(operands[n_inputs:])
    function = step.region(0)

    def body(carries: list[Array], elements: list[Array]) -> tuple[list[Array], list[Array]]:
        results = [as_array(x) for x in function(*elements, *carries)]
        return results[n_outputs:], results[:n_outputs]

    rows = [jnp.moveaxis(x, dimension, 0) for x in inputs]
    carries, outputs = lax.scan(body, inits, rows, scan_dim_size or None, is_reverse)
    return [*(jnp.moveaxis(x, 0, dimension) for x in outputs), *carries]
