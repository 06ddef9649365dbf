"""The dtypes and the precision in which XLA computes contractions and convolutions."""

from __future__ import annotations

import jax
from jax import lax

from jax2tf._src import compat
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType


def compute_dtype(lhs: DType, rhs: DType, out: DType) -> DType:
    """The dtype to which XLA converts a contraction's operands: the wider of theirs and `out`.

    JAX itself casts operands of different dtypes to the dtype of the result.
    """
    return out if lhs != rhs or _width(out) >= _width(lhs) else lhs


def _width(dtype: DType) -> tuple[bool | int, ...]:
    """Sorts dtypes in XLA's order of precision."""
    return (
        dtype.is_complex,
        dtype.is_floating,
        dtype.is_integer,
        dtype.size,
        dtype == dtypes.bfloat16,
    )


def precision_config(precision: lax.PrecisionLike) -> bytes:
    """XLA's PrecisionConfig message for JAX's `precision`, empty for the default."""
    config = compat.xla.xla_data.PrecisionConfig
    if isinstance(precision, jax.lax.DotAlgorithmPreset):
        algorithm = config.Algorithm.Value(f"ALG_DOT_{precision.name}")
        return bytes(config(algorithm=algorithm).SerializeToString())
    both = precision if isinstance(precision, tuple) else (precision, precision)
    default = jax.lax.Precision.DEFAULT
    asked = [p if isinstance(p, jax.lax.Precision) else default for p in both]
    if all(p is default for p in asked):
        return b""
    values = [config.Precision.Value(p.name) for p in asked]
    return bytes(config(operand_precision=values).SerializeToString())


def precision_of_convolution(precision: lax.PrecisionLike) -> bytes:
    """Like `precision_config`; a dot algorithm does not apply to a convolution."""
    is_of_products = isinstance(precision, jax.lax.DotAlgorithmPreset | jax.lax.DotAlgorithm)
    return b"" if is_of_products else precision_config(precision)
