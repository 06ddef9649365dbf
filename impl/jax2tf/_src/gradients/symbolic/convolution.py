"""The transposes of a convolution with symbolic sizes.

They are convolutions too, and their paddings depend on the sizes. JAX's own rules pass these
paddings to lax.conv_general_dilated, which takes only numbers. Here a symbolic padding becomes
a lax.pad in front of a convolution without padding.

Notation for one spatial dimension: the operand has n elements that are `lhs_dilation` apart, with
`low` and `high` elements of padding. The kernel has k elements that are `rhs_dilation` apart. The
window takes m steps of `stride` elements. The formulas follow from the definition of the
convolution in the StableHLO specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
from jax import lax
from jax.interpreters import ad

from jax2tf._src.gradients.symbolic.padding import Cotangent, of_shape, padded
from jax2tf._src.util.symbolic_sizes import is_static, may_be_zero
from jax2tf._src.util.typing import Dim, Param, PyTree

_CONV = lax.conv_general_dilated_p
_of_jax: PyTree = ad.primitive_transposes[_CONV]


def _transposed_lhs(
    cotangent: jax.Array,
    lhs: ad.UndefinedPrimal,
    rhs: jax.Array,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Param,
    feature_group_count: int,
    batch_group_count: int,
    **params: Param,
) -> jax.Array:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    lhs_shape, kernel = lhs.aval.shape, lax.rev(rhs, rhs_spec[2:])
    groups = max(feature_group_count, batch_group_count)
    if groups > 1:
        kernel = _move_groups(kernel, groups, rhs_spec[0], rhs_spec[1])
    config = []
    for i, stride in enumerate(window_strides):
        n = _dilated(lhs_shape[lhs_spec[2 + i]], lhs_dilation[i])
        reach = _dilated(rhs.shape[rhs_spec[2 + i]], rhs_dilation[i]) - 1
        m = _dilated(cotangent.shape[out_spec[2 + i]], stride)
        low = reach - padding[i][0]
        config.append((low, n + reach - low - m, stride))
    result = _convolved(
        cotangent,
        kernel,
        config,
        window_strides=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=lax.ConvDimensionNumbers(
            out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec
        ),
        feature_group_count=groups,
        **params,
    )
    if batch_group_count > 1:
        result = _move_groups(result, batch_group_count, lhs_spec[1], lhs_spec[0])
    return of_shape(result, lhs_shape)


def _transposed_rhs(
    cotangent: jax.Array,
    lhs: jax.Array,
    rhs: ad.UndefinedPrimal,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Dim, Dim]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Param,
    feature_group_count: int,
    batch_group_count: int,
    **params: Param,
) -> jax.Array:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    rhs_shape = rhs.aval.shape
    kernel = _not_empty(cotangent, out_spec[2:])
    config = []
    for i, stride in enumerate(window_strides):
        n = _dilated(lhs.shape[lhs_spec[2 + i]], lhs_dilation[i])
        reach = _dilated(rhs_shape[rhs_spec[2 + i]], rhs_dilation[i]) - 1
        m = _dilated(kernel.shape[out_spec[2 + i]], stride)
        low = padding[i][0]
        config.append((low, m + reach - low - n, lhs_dilation[i]))
    result = _convolved(
        lhs,
        kernel,
        config,
        window_strides=rhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=lax.ConvDimensionNumbers(
            *((spec[1], spec[0], *spec[2:]) for spec in (lhs_spec, out_spec, rhs_spec))
        ),
        # Batch and channels of the operand change places, and so do the two kinds of groups.
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        **params,
    )
    return of_shape(result, rhs_shape)


def _not_empty(x: jax.Array, axes: Sequence[int]) -> jax.Array:
    """Pads each axis that may be empty to one element of 0: engines refuse an empty kernel."""
    config = [(0, 0, 0)] * x.ndim
    for axis in axes:
        if may_be_zero(x.shape[axis]):
            config[axis] = (0, jax.core.max_dim(1 - x.shape[axis], 0), 0)
    return padded(x, config)


def _dilated(size: Dim, dilation: int) -> Dim:
    """The dilated size, in the expression that JAX itself computes for it."""

    def dilate(x: jax.Array) -> jax.Array:
        return lax.pad(x, False, [(0, 0, dilation - 1)])

    return jax.eval_shape(dilate, jax.ShapeDtypeStruct((size,), bool)).shape[0]


def _convolved(
    lhs: jax.Array,
    rhs: jax.Array,
    config: Sequence[tuple[Dim, Dim, int]],
    *,
    dimension_numbers: Param,
    **params: Param,
) -> jax.Array:
    """Convolves with a padding of (low, high, dilation) in each spatial dimension of `lhs`."""
    conv, pad = list(config), [(0, 0, 0)] * lhs.ndim
    for i, (low, high, dilation) in enumerate(config):
        if not is_static((low, high)):
            pad[dimension_numbers.lhs_spec[2 + i]] = (low, high, dilation - 1)
            conv[i] = (0, 0, 1)
    return lax.conv_general_dilated(
        padded(lhs, pad),
        rhs,
        padding=[(int(low), int(high)) for low, high, _ in conv],
        lhs_dilation=[dilation for _, _, dilation in conv],
        dimension_numbers=dimension_numbers,
        **params,
    )


def _move_groups(x: jax.Array, groups: int, source: int, destination: int) -> jax.Array:
    """Splits the `source` axis into groups, and moves the groups in front of `destination`."""
    shape = list(x.shape)
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    shape[source] //= groups
    shape[destination] *= groups
    x = lax.reshape(x, split)
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(destination, source)
    return lax.reshape(lax.transpose(x, order), shape)


def _transpose(
    operand: int, of_jax: Callable[..., jax.Array], for_symbols: Callable[..., jax.Array]
) -> Callable[..., jax.Array]:
    """The transpose with respect to an operand; JAX's own rule serves sizes that are numbers."""

    def rule(cotangent: Cotangent, *operands: PyTree, **params: Param) -> jax.Array:
        sizes = [
            (x.aval.shape if i == operand else x.shape)[d]
            for i, (x, spec) in enumerate(
                zip(operands, params["dimension_numbers"][:2], strict=True)
            )
            for d in spec[2:]
        ]
        transpose = of_jax if is_static(sizes) else for_symbols
        return transpose(cotangent, *operands, **params)

    return rule


_FOR_SYMBOLS: Sequence[Callable[..., jax.Array]] = (_transposed_lhs, _transposed_rhs)
_RULES = zip(_of_jax.args, _FOR_SYMBOLS, strict=True)
ad.defbilinear(_CONV, *(_transpose(operand, *rule) for operand, rule in enumerate(_RULES)))
