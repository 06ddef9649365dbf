"""Quantized tensors: integers that stand for floats, as the StableHLO specification has them.

An array of a quantized type is the array of its integers. An op computes with the floats that they
stand for, and its result is rounded to integers again, except where it only moves elements.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jax import lax

from jax2tf._src.stablehlo.program import Op, Quantization, TensorType, Type
from jax2tf._src.util.typing import HloValue as Array

# They move elements, if all have the same scales.
_MOVES = {
    f"stablehlo.{name}"
    for name in (
        *("broadcast", "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim"),
        *("dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice"),
        *("dynamic_update_slice", "gather", "pad", "real_dynamic_slice", "reshape", "reverse"),
        *("select", "slice", "torch_index_select", "transpose"),
    )
}
# They hand arrays on, or read their bits.
_INTEGERS = {"func.call"} | {
    f"stablehlo.{name}"
    for name in (
        *("all_gather", "all_to_all", "bitcast_convert", "call", "collective_broadcast"),
        *("collective_permute", "composite", "constant", "custom_call", "get_dimension_size"),
        *("get_tuple_element", "optimization_barrier", "tuple"),
    )
}


def moves_integers(op: Op) -> bool:
    """Whether an op takes and gives integers: ops with regions do, whose own ops compute."""
    if op.regions or op.name in _INTEGERS:
        return True
    if op.name not in _MOVES:
        return False
    types = (*op.operand_types, *op.types)
    kinds = [kind for t in types if (kind := getattr(t, "quantization", None)) is not None]
    return all(kind.is_same(kinds[0]) for kind in kinds)


def of_floats(op: Op) -> Op:
    """The op on floats. Its values have numbers of their own: what is known of integers is not."""
    return dataclasses.replace(
        op,
        operands=tuple(-1 - number for number in op.operands),
        results=tuple(-1 - number for number in op.results),
        operand_types=tuple(map(_expressed, op.operand_types)),
        types=tuple(map(_expressed, op.types)),
    )


def _expressed(kind: Type) -> Type:
    quantization = getattr(kind, "quantization", None)
    return TensorType(kind.shape, quantization.expressed) if quantization else kind  # type: ignore[union-attr]


def _parameters(quantization: Quantization, rank: int, dtype: np.dtype) -> tuple[Array, Array]:
    """Scales, and zero points of the dtype, in shapes that broadcast against the tensor.

    They are NumPy's: the region of a reduction may hold no arrays of JAX.
    """
    scales = np.asarray(quantization.scales, quantization.expressed)
    zeros = np.asarray(quantization.zero_points).astype(dtype)
    if quantization.axis is None:
        return scales[0], zeros[0]
    shape = [1] * rank
    shape[quantization.axis] = len(scales)
    return scales.reshape(shape), zeros.reshape(shape)


def dequantize(x: Array, kind: Type) -> Array:
    """The floats that integers stand for; another array as it is."""
    quantization = getattr(kind, "quantization", None)
    if quantization is None:
        return x
    scales, zeros = _parameters(quantization, x.ndim, np.dtype(np.int32))
    integers = lax.convert_element_type(x, np.int32) - zeros
    return lax.convert_element_type(integers, quantization.expressed) * scales


def quantize(x: Array, kind: Type) -> Array:
    """The integers for floats: rounded to the nearest, ties to even, within the limits."""
    quantization = getattr(kind, "quantization", None)
    if quantization is None:
        return x
    dtype = quantization.expressed
    scales, zeros = _parameters(quantization, x.ndim, dtype)
    lowest, highest = (dtype.type(n) for n in (quantization.lowest, quantization.highest))
    scaled = lax.clamp(lowest, x / scales + zeros, highest)
    rounded = lax.round(scaled, lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.convert_element_type(rounded, kind.dtype)  # type: ignore[union-attr]
