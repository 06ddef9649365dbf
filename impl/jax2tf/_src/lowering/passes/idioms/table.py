"""Lists the idioms: JAX functions as patterns, and the engines' ops for them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.fusions import before_relu
from jax2tf._src.lowering.emit.index_geometry import as_one_index
from jax2tf._src.lowering.passes.idioms import quotients, resizing
from jax2tf._src.lowering.passes.idioms.matching import Match
from jax2tf._src.lowering.registry import Lowered
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Dim, Param

_FLOAT32 = ("float32",)
_FLOATS = ("bfloat16", "float16", "float32", "float64")
_INDEX = jax.ShapeDtypeStruct((), np.int32)
_ROW = jax.ShapeDtypeStruct((1, 3), np.float32)
_EXAMPLE = jax.ShapeDtypeStruct((2, 3), np.float32)
_MASK = jax.ShapeDtypeStruct((2, 3), np.bool_)
_MASK_OF_ROWS = jax.ShapeDtypeStruct((3,), np.bool_)
_IMAGES = jax.ShapeDtypeStruct((2, 2, 3, 3), np.float32)


def _anything(*avals: Aval, **options: Param) -> bool:
    return True


def _are_of_channels(x: Aval, *parameters: Aval) -> bool:
    """Whether the parameters have only the last dimension of x; their others have size one."""
    rank = len(x.shape)
    alone = (1,) * (rank - 1) + tuple(x.shape[-1:])
    return rank > 1 and all(tuple(p.shape) == alone for p in parameters)


def _nothing(found: Match) -> dict[str, Param]:
    del found
    return {}


@dataclasses.dataclass(frozen=True)
class Idiom:
    """A function that JAX computes by several primitives, and an engine by one op.

    Attributes:
      name: the name by which a target switches the idiom on. Idioms share a name if they write the
        same function in several ways.
      function: the pattern, `function(*arrays, **numbers, **options)` in JAX. The matcher searches
        for its equations.
      rule: makes the op: `rule(ctx, *tensors, **numbers, **options)`.
      numbers: the names of the pattern's scalars, which must be literals.
      options: gets a match of the primitives only, and returns keywords, such as axes, with which
        the pattern is traced again.
      dtypes: the dtypes of the first array for which the engines have the op.
      accepts: gets avals and options, and says whether the idiom is used for them.
      examples: the arrays for which the pattern is traced to find its primitives.
      example_options: the options of that trace, if `function` has no defaults.
      if_finite: whether the idiom removes equations that only guard NaN and infinity. Every target
        that assumes finite numbers takes it.
    """

    name: str
    function: Callable[..., jax.Array]
    rule: Callable[..., Lowered]
    numbers: tuple[str, ...] = ()
    options: Callable[[Match], dict[str, Param]] = _nothing
    dtypes: Sequence[str] = _FLOAT32
    accepts: Callable[..., bool] = _anything
    examples: Sequence[jax.ShapeDtypeStruct] = (_EXAMPLE,)
    example_options: Mapping[str, Param] = dataclasses.field(default_factory=dict, hash=False)
    if_finite: bool = False


def _of_operand(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def rule(ctx: Context, x: Tensor) -> Tensor:
        del ctx
        return function(x)

    return rule


def _first(ctx: Context, *tensors: Tensor) -> Tensor:
    del ctx
    return tensors[0]


def _leaky_relu(ctx: Context, x: Tensor, negative_slope: np.ndarray) -> Tensor:
    return ops.leaky_relu(x, float(negative_slope))


def _relu(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda ctx, x: function(before_relu(ctx, x))


def _hard_swish(ctx: Context, x: Tensor) -> Tensor:
    return x * (ops.relu6(x + 3.0) / 6.0)


def _softmax_by_hand(x: jax.Array) -> jax.Array:
    powers = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return powers / jnp.sum(powers, -1, keepdims=True)


def _softmax(ctx: Context, x: Tensor) -> Tensor:
    shares = ops.softmax(x)
    if ctx.target.assume_finite or not ctx.has(Quirk.NAN_IN_PARTS_OF_SOFTMAX):
        return shares
    # The shares of a row add up to 1, or to NaN.
    last = ctx.vector([x.shape.rank - 1])
    return shares / ops.raw.Sum(input=shares, axis=last, keep_dims=True)


# A smaller number in the scores of an attention hides an element.
_OF_MASKS = -1e3
# A score this far below all others gives a share of less than half a step of 8-bit integers.
_BELOW = 8.0


def _kept(x: jax.Array, mask: jax.Array, floor: ArrayLike) -> jax.Array:
    return jnp.where(mask, x, floor)


def _hidden(x: jax.Array, mask: jax.Array, floor: ArrayLike) -> jax.Array:
    return jnp.where(mask, floor, x)


def _kept_by_sum(x: jax.Array, mask: jax.Array, floor: ArrayLike) -> jax.Array:
    return x + jnp.where(mask, 0.0, floor)


def _hidden_by_sum(x: jax.Array, mask: jax.Array, floor: ArrayLike) -> jax.Array:
    return x + jnp.where(mask, floor, 0.0)


def _masked_softmaxes() -> list[Idiom]:
    """Returns softmaxes of scores that a mask keeps or hides, by a select or by a sum."""
    return [
        Idiom(
            "masked_softmax",
            lambda x, mask, floor, softmax=softmax, masked=masked: softmax(masked(x, mask, floor)),
            partial(_masked_softmax, masked=masked),
            numbers=("floor",),
            examples=(_EXAMPLE, mask),
        )
        for softmax in (jax.nn.softmax, _softmax_by_hand)
        for masked in (_kept, _hidden, _kept_by_sum, _hidden_by_sum)
        for mask in (_MASK, _MASK_OF_ROWS)
    ]


def _masked_softmax(
    ctx: Context,
    x: Tensor,
    mask: Tensor,
    floor: np.ndarray,
    masked: Callable[..., jax.Array],
) -> Tensor:
    hides = masked in (_hidden, _hidden_by_sum)
    if floor < _OF_MASKS:
        # A number like -1e9 would stretch the quantised range: all scores would be one integer.
        last = ctx.vector([x.shape.rank - 1])
        other = ops.raw.Min(input=x, axis=last, keep_dims=True) - _BELOW
    else:
        other = ops.constant(floor) if masked in (_kept, _hidden) else x + floor
    return ops.softmax(ops.where(mask, other, x) if hides else ops.where(mask, x, other))


def _gelu_by_erf(x: jax.Array) -> jax.Array:
    return x * 0.5 * (1.0 + lax.erf(x / math.sqrt(2.0)))


def _gelu_by_erf_of_product(x: jax.Array) -> jax.Array:
    return 0.5 * x * (1.0 + lax.erf(x * math.sqrt(0.5)))


def _gelu(ctx: Context, x: Tensor) -> Tensor:
    # Form: as_it_is_fused.
    if ctx.wants("erf"):
        return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))
    return ops.gelu(x)


def _gelu_by_tanh(ctx: Context, x: Tensor) -> Tensor:
    return ops.gelu(x, approximate=True)


def _axes_of_sum(found: Match) -> dict[str, Param]:
    return {"axis": found.params(lax.reduce_sum_p)["axes"]}


def _mean(ctx: Context, x: Tensor, axis: Sequence[int], keepdims: bool) -> Tensor:
    if any(x.shape[a] == 0 for a in axis):
        # Some engines return 0 for the mean of no elements.
        return ops.reduce_sum(x, axis, keepdims) * ops.constant(math.nan, x.dtype)
    return ops.raw.Mean(input=x, axis=ctx.vector(axis), keep_dims=keepdims)


def _variance(ctx: Context, x: Tensor, axis: Sequence[int], keepdims: bool) -> Tensor:
    mean = _mean(ctx, x, axis, True)
    return _mean(ctx, ops.squared_difference(x, mean), axis, keepdims)


def _standardized(x: jax.Array, *, epsilon: ArrayLike) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + epsilon)


def _standardized_by_root(x: jax.Array, *, epsilon: ArrayLike) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + epsilon)


def _standardized_by_guarded(x: jax.Array, *, epsilon: ArrayLike) -> jax.Array:
    """Writes a layer norm as equinox does, which keeps a variance from being negative."""
    variance = jnp.maximum(0.0, x.var(-1, keepdims=True))
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(variance + epsilon)


def _flax_layer_norm(
    x: jax.Array, *scale: jax.Array, epsilon: ArrayLike, expanded: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """Writes a layer norm as flax.linen and flax.nnx do, with or without a scale."""
    mean = x.mean(-1)
    variance = jnp.maximum(0.0, lax.square(x).mean(-1) - lax.square(mean))
    factor = lax.rsqrt(expanded(variance) + epsilon)
    return (x - expanded(mean)) * (factor * scale[0] if scale else factor)


def _reshaped(x: jax.Array) -> jax.Array:
    return x.reshape(*x.shape, 1)


def _layer_norm(ctx: Context, x: Tensor, *scale: Tensor, epsilon: np.ndarray) -> Tensor:
    # Form: as_it_is_fused, with a power, and a quotient by a root.
    last = ctx.vector([x.shape.rank - 1])
    centered = x - ops.raw.Mean(input=x, axis=last, keep_dims=True)
    variance = ops.raw.Mean(input=ops.pow(centered, 2.0), axis=last, keep_dims=True)
    standardized = centered / ops.sqrt(variance + epsilon)
    return standardized * ops.reshape(scale[0], [-1]) if scale else standardized


def _batch_norm(ctx: Context, x: Tensor, mean: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
    # Engines merge a product and a sum into the weights and bias of the convolution before it.
    del ctx
    return x * scale + (offset - mean * scale)


def _batch_norm_by_factors(
    ctx: Context,
    x: Tensor,
    mean: Tensor,
    factor: Tensor,
    scale: Tensor,
    offset: Tensor,
) -> Tensor:
    return _batch_norm(ctx, x, mean, factor * scale, offset)


def _batch_norm_by_root(
    ctx: Context,
    x: Tensor,
    mean: Tensor,
    root: Tensor,
    scale: Tensor,
    offset: Tensor,
) -> Tensor:
    return _batch_norm(ctx, x, mean, scale / root, offset)


def _classes(found: Match) -> dict[str, Param]:
    shape = found.params(lax.iota_p)["shape"]
    return {
        "num_classes": shape[-1],
        "dtype": found.params(lax.convert_element_type_p)["new_dtype"],
    }


def _one_hot(ctx: Context, x: Tensor, num_classes: Dim, dtype: np.dtype) -> Tensor:
    return ops.one_hot(x, ctx.dim(num_classes), dtype=dtypes.to_tf(dtype))


def _by_axis(
    name: str, function: Callable[..., jax.Array], rule: Callable[..., Lowered]
) -> list[Idiom]:
    """Returns the idioms of a reduction, with and without `keepdims`."""
    return [
        Idiom(
            name,
            partial(function, axis=-1, keepdims=keepdims),
            partial(rule, keepdims=keepdims),
            options=_axes_of_sum,
        )
        for keepdims in (False, True)
    ]


def _cube(rank: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((2,) * rank, np.float32)


def _update_of_slice(operand: jax.Array, update: jax.Array, *starts: jax.Array) -> jax.Array:
    # lax.dynamic_update_slice would count a negative start from the end.
    return lax.dynamic_update_slice_p.bind(operand, update, *starts)


def _dynamic_update_slice(ctx: Context, operand: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    del ctx
    # The op keeps the slice inside the operand, as JAX does.
    return ops.dynamic_update_slice(operand, update, as_one_index(starts))


IDIOMS: tuple[Idiom, ...] = (
    Idiom("relu", jax.nn.relu, _relu(ops.relu)),
    Idiom("relu6", jax.nn.relu6, _relu(ops.relu6)),
    Idiom("relu6", lambda x: jnp.clip(x, 0.0, 6.0), _relu(ops.relu6)),
    Idiom("leaky_relu", jax.nn.leaky_relu, _leaky_relu, numbers=("negative_slope",)),
    Idiom("elu", jax.nn.elu, _of_operand(ops.elu)),
    Idiom("hard_swish", jax.nn.hard_swish, _hard_swish),
    Idiom("gelu", partial(jax.nn.gelu, approximate=True), _gelu_by_tanh),
    Idiom("gelu", partial(jax.nn.gelu, approximate=False), _gelu),
    Idiom("gelu", _gelu_by_erf, _gelu),
    Idiom("gelu", _gelu_by_erf_of_product, _gelu),
    *_masked_softmaxes(),
    Idiom("softmax", jax.nn.softmax, _softmax),
    Idiom("softmax", _softmax_by_hand, _softmax),
    Idiom("log_softmax", jax.nn.log_softmax, _of_operand(ops.log_softmax)),
    *_by_axis("mean", jnp.mean, _mean),
    *_by_axis("variance", jnp.var, _variance),
    *(
        Idiom("layer_norm", function, _layer_norm, numbers=("epsilon",))
        for function in (_standardized, _standardized_by_root, _standardized_by_guarded)
    ),
    *(
        Idiom(
            "layer_norm",
            partial(_flax_layer_norm, expanded=expanded),
            _layer_norm,
            numbers=("epsilon",),
            accepts=_are_of_channels if len(examples) > 1 else _anything,
            examples=examples,
        )
        for expanded in (partial(jnp.expand_dims, axis=-1), _reshaped)
        for examples in ((_EXAMPLE, _ROW), (_EXAMPLE,))
    ),
    Idiom(
        "batch_norm",
        lambda x, mean, scale, offset: (x - mean) * scale + offset,
        _batch_norm,
        examples=(_EXAMPLE, _ROW, _ROW, _ROW),
        accepts=_are_of_channels,
    ),
    *(
        Idiom(
            "batch_norm", function, rule, examples=(_EXAMPLE, *[_ROW] * 4), accepts=_are_of_channels
        )
        for function, rule in (
            (lambda x, mean, f, s, b: (x - mean) * f * s + b, _batch_norm_by_factors),
            (lambda x, mean, root, s, b: (x - mean) / root * s + b, _batch_norm_by_root),
        )
    ),
    # If an image shrinks, JAX's antialias reads more than the neighbouring pixels.
    *(
        Idiom(
            "resize",
            partial(resizing.resized, method="bilinear", antialias=antialias),
            resizing.resize(ops.raw.ResizeBilinear),
            options=resizing.shape_of(lax.transpose_p),
            accepts=resizing.are_enlarged,
            examples=(_IMAGES,),
            example_options={"shape": (2, 4, 6, 3)},
        )
        for antialias in (True, False)
    ),
    *(
        Idiom(
            "resize_by_products",
            partial(resizing.resized, method=method, antialias=antialias),
            resizing.resize_by_products(method, antialias),
            options=resizing.shape_of(lax.transpose_p),
            accepts=resizing.change_in_size,
            examples=(_IMAGES,),
            example_options={"shape": (2, 4, 6, 3)},
        )
        for method in ("bilinear", "cubic", "lanczos3", "lanczos5")
        for antialias in (True, False)
    ),
    Idiom(
        "resize_nearest",
        partial(resizing.resized, method="nearest", antialias=False),
        resizing.resize(ops.raw.ResizeNearestNeighbor),
        options=resizing.shape_of(lax.gather_p),
        accepts=resizing.are_multiplied,
        examples=(_IMAGES,),
        example_options={"shape": (2, 4, 6, 3)},
    ),
    Idiom("erf", lax.erf, _of_operand(ops.erf)),
    Idiom(
        "one_hot",
        partial(jax.nn.one_hot, num_classes=3),
        _one_hot,
        options=_classes,
        dtypes=("int32", "int64"),
        examples=(jax.ShapeDtypeStruct((2,), np.int32),),
    ),
    *(
        Idiom(
            "dynamic_update_slice",
            _update_of_slice,
            _dynamic_update_slice,
            dtypes=("float32", "int32", "int64", "int8", "bool"),
            examples=(*[_cube(rank)] * 2, *[_INDEX] * rank),
        )
        for rank in range(1, 6)
    ),
    Idiom("quotient", quotients.divided, quotients.quotient, numbers=("divisor",), dtypes=_FLOATS),
    # These guard the shift of logsumexp, and the case of equal infinities in logaddexp.
    Idiom(
        "finite",
        lambda x: jnp.where(jnp.isfinite(x), x, jnp.zeros_like(x)),
        _first,
        dtypes=_FLOATS,
        if_finite=True,
    ),
    Idiom(
        "finite",
        lambda x, difference, of_equals: jnp.where(difference != difference, of_equals, x),
        _first,
        dtypes=_FLOATS,
        examples=(_EXAMPLE, _EXAMPLE, _EXAMPLE),
        if_finite=True,
    ),
)
