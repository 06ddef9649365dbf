"""Products: convolutions, dot products, batch norms, and Fourier transforms."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import jax.numpy as jnp
from jax import lax

from jax2tf._src.stablehlo.evaluator import Step, as_array, takes_sizes
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree

Numbers = Mapping[str, PyTree]


def precision(config: tuple[str, ...]) -> PyTree:
    levels = tuple(lax.Precision[level] for level in config)
    return None if not levels or set(levels) == {lax.Precision.DEFAULT} else levels


def _algorithm(text: str) -> lax.DotAlgorithmPreset:
    """Reads `#stablehlo.dot_algorithm<lhs_precision_type = f32, ...>`; JAX has presets of these."""
    fields = dict(re.findall(r"(\w+) = (\w+)", text))
    left, right = (_float_name(fields[f"{side}_precision_type"]) for side in ("lhs", "rhs"))
    name = f"{left}_{right}_{_float_name(fields['accumulation_type'])}"
    if (count := fields["num_primitive_operations"]) != "1":
        name += f"_X{count}"
    if fields["allow_imprecise_accumulation"] == "true":
        name += "_FAST_ACCUM"
    return lax.DotAlgorithmPreset[name]


def _float_name(element: str) -> str:
    return "ANY_F8" if element.startswith("f8") else element.upper()


@reads("stablehlo.dot_general")
def _dot_general(
    step: Step,
    x: Array,
    y: Array,
    *,
    dot_dimension_numbers: Numbers,
    precision_config: tuple[str, ...] = (),
    algorithm: str = "",
) -> Array:
    contracting, batching = (
        tuple(dot_dimension_numbers[f"{side}_{name}_dimensions"] for side in ("lhs", "rhs"))
        for name in ("contracting", "batching")
    )
    return lax.dot_general(
        x,
        y,
        (contracting, batching),
        precision=_algorithm(algorithm) if algorithm else precision(precision_config),
        preferred_element_type=step.result.dtype,
    )


@reads("stablehlo.dot")
def _dot(step: Step, x: Array, y: Array, *, precision_config: tuple[str, ...] = ()) -> Array:
    numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return lax.dot_general(
        x,
        y,
        numbers,
        precision=precision(precision_config),
        preferred_element_type=step.result.dtype,
    )


@reads("stablehlo.einsum")
def _einsum(step: Step, x: Array, y: Array, *, einsum_config: str) -> Array:
    return jnp.einsum(einsum_config, x, y, preferred_element_type=step.result.dtype)


@reads("stablehlo.unary_einsum")
def _unary_einsum(step: Step, x: Array, *, einsum_config: str) -> Array:
    return jnp.einsum(einsum_config, x)


@reads("stablehlo.convolution")
def _convolution(
    step: Step,
    x: Array,
    kernel: Array,
    *,
    dimension_numbers: Numbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    window_strides: tuple[int, ...] | None = None,
    padding: PyTree = None,
    lhs_dilation: tuple[int, ...] | None = None,
    rhs_dilation: tuple[int, ...] | None = None,
    window_reversal: tuple[bool, ...] | None = None,
    precision_config: tuple[str, ...] = (),
) -> Array:
    specs = _specs(dimension_numbers)
    n_spatial = x.ndim - 2
    if window_reversal and any(window_reversal):
        spatial = dimension_numbers["kernel_spatial_dimensions"]
        reversed_axes = zip(spatial, window_reversal, strict=True)
        kernel = lax.rev(kernel, [axis for axis, is_reversed in reversed_axes if is_reversed])
    pads = [(0, 0)] * n_spatial if padding is None else [_pair(pad) for pad in padding]
    return lax.conv_general_dilated(
        x,
        kernel,
        window_strides or (1,) * n_spatial,
        pads,
        lhs_dilation,
        rhs_dilation,
        specs,
        feature_group_count,
        batch_group_count,
        precision(precision_config),
        step.result.dtype,
    )


def _pair(pad: PyTree) -> tuple[PyTree, PyTree]:
    low, high = (size if not hasattr(size, "item") else size.item() for size in pad)
    return low, high


@reads("stablehlo.dynamic_conv")
@takes_sizes
def _dynamic_conv(
    step: Step, x: Array, kernel: Array, padding: Array, **attributes: PyTree
) -> Array:
    sizes = step.sizes(padding, "padding")
    pairs = list(zip(sizes[::2], sizes[1::2], strict=True))
    return _convolution(step, as_array(x), as_array(kernel), padding=pairs, **attributes)


def _specs(numbers: Numbers) -> lax.ConvDimensionNumbers:
    return lax.ConvDimensionNumbers(
        (
            numbers["input_batch_dimension"],
            numbers["input_feature_dimension"],
            *numbers["input_spatial_dimensions"],
        ),
        (
            numbers["kernel_output_feature_dimension"],
            numbers["kernel_input_feature_dimension"],
            *numbers["kernel_spatial_dimensions"],
        ),
        (
            numbers["output_batch_dimension"],
            numbers["output_feature_dimension"],
            *numbers["output_spatial_dimensions"],
        ),
    )


@reads("stablehlo.fft")
def _fft(step: Step, x: Array, *, fft_type: str, fft_length: tuple[int, ...]) -> Array:
    return lax.fft(x, fft_type, fft_length)


def _along(x: Array, feature_index: int, vector: Array) -> Array:
    """A vector of one number for each feature, broadcast to the shape of `x`."""
    return lax.broadcast_in_dim(vector, x.shape, (feature_index,))


def _moments(x: Array, feature_index: int) -> tuple[Array, Array]:
    axes = tuple(i for i in range(x.ndim) if i != feature_index)
    mean = jnp.mean(x, axes)
    return mean, jnp.mean(lax.square(x - _along(x, feature_index, mean)), axes)


def _normalized(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float, axis: int
) -> Array:
    deviation = lax.sqrt(variance + jnp.asarray(epsilon, variance.dtype))
    centered = (x - _along(x, axis, mean)) / _along(x, axis, deviation)
    return centered * _along(x, axis, scale) + _along(x, axis, offset)


@reads("stablehlo.batch_norm_inference")
def _batch_norm_inference(
    step: Step,
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> Array:
    return _normalized(x, scale, offset, mean, variance, epsilon, feature_index)


@reads("stablehlo.batch_norm_training")
def _batch_norm_training(
    step: Step, x: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> list[Array]:
    mean, variance = _moments(x, feature_index)
    result = _normalized(x, scale, offset, mean, variance, epsilon, feature_index)
    return [result, mean, variance]


@reads("stablehlo.batch_norm_grad")
def _batch_norm_grad(
    step: Step,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    cotangent: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> list[Array]:
    """The gradients by operand, scale and offset, as the specification writes them."""
    axes = tuple(i for i in range(x.ndim) if i != feature_index)
    count = jnp.asarray(x.size // max(x.shape[feature_index], 1), x.dtype)
    full = functools.partial(_along, x, feature_index)
    centered = x - full(mean)
    deviation = lax.sqrt(variance + jnp.asarray(epsilon, variance.dtype))
    by_offset = jnp.sum(cotangent, axes)
    by_product = jnp.sum(cotangent * centered, axes)
    inner = count * cotangent - full(by_offset)
    inner = inner - centered * full(by_product) / full(lax.square(deviation))
    by_operand = full(scale / deviation) / count * inner
    return [by_operand, by_product / deviation, by_offset]
