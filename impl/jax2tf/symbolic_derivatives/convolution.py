"""The transpose of a convolution whose window slides over dimensions of unknown size.

JAX's own rule asks for a convolution with paddings that depend on the size, and JAX takes no such
paddings. A convolution of stride 1 without padding has a transpose whose paddings are numbers: the
others are one of those between an explicit padding and a strided slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax.extend.core import primitives
from jax.interpreters import ad

from jax2tf import dims

_CONV = primitives.conv_general_dilated_p


def _transpose(operand: int, with_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """The transpose with respect to an operand; `with_numbers` is JAX's own."""

    def rule(cotangent: Any, *operands: Any, **params: Any) -> Any:
        lhs_shape = operands[0].aval.shape if operand == 0 else operands[0].shape
        sizes = [lhs_shape[d] for d in params["dimension_numbers"].lhs_spec[2:]]
        if dims.is_static(sizes) or _has_stride_1(**params):
            return with_numbers(cotangent, *operands, **params)

        def linear(x: jax.Array) -> jax.Array:
            both: list[Any] = list(operands)
            both[operand] = x
            return _by_stride_1(*both, **params)

        aval = operands[operand].aval
        spec = jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        return jax.linear_transpose(linear, spec)(cotangent)[0]

    return rule


def _has_stride_1(
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    lhs_dilation: Sequence[int],
    **_: Any,
) -> bool:
    return {*window_strides, *lhs_dilation} == {1} and all(map(dims.is_static, padding))


_of_jax: Any = ad.primitive_transposes[_CONV]
ad.defbilinear(_CONV, *map(_transpose, (0, 1), _of_jax.args))


def _by_stride_1(
    lhs: jax.Array,
    rhs: jax.Array,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    lhs_dilation: Sequence[int],
    dimension_numbers: Any,
    **params: Any,
) -> jax.Array:
    ones = (1,) * len(window_strides)
    config = [(0, 0, 0)] * lhs.ndim
    for d, (low, high), dilation in zip(
        dimension_numbers.lhs_spec[2:], padding, lhs_dilation, strict=True
    ):
        config[d] = (low, high, dilation - 1)
    strides = [1] * lhs.ndim
    for d, stride in zip(dimension_numbers.out_spec[2:], window_strides, strict=True):
        strides[d] = stride
    whole = _CONV.bind(
        lax.pad(lhs, lhs.dtype.type(0), config),
        rhs,
        window_strides=ones,
        padding=((0, 0),) * len(ones),
        lhs_dilation=ones,
        dimension_numbers=dimension_numbers,
        **params,
    )
    return lax.slice(whole, (0,) * whole.ndim, whole.shape, strides)
