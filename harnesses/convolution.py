"""Convolutions: conv_general_dilated with all its params, and the functions that use it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.contractions import HALVES
from harnesses.harness import (
    ALL,
    INT4,
    INTEGERS,
    Arg,
    Bools,
    Family,
    Integers,
    Normal,
    Uniform,
    define,
)
from harnesses.reductions import narrowed

family = Family("convolution")

# ULPs of the largest element: sums are taken in another order, and rounded once where dtypes are
# narrow. A complex product is three real ones, added up.
ULPS = {"bfloat16": 1, "float16": 1, "float32": 6, "float64": 6, "complex64": 8, "complex128": 8}
ULPS |= {f"float8_{name}": 1 for name in ("e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
MAIN = [np.dtype(getattr(jnp, d)) for d in ("float32", "int32", "bfloat16", "complex64", "int64")]
NUMBERS = {
    0: ("NC", "IO", "NC"),
    1: ("NWC", "WIO", "NWC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NDHWC", "DHWIO", "NDHWC"),
}


def _arg(shape: tuple[int, ...], dtype: Any) -> Arg:
    return Bools(shape) if np.dtype(dtype) == bool else Normal(shape, dtype)


def _conv(rank: int, **params: Any) -> Callable[..., Any]:
    defaults = {
        "window_strides": (1,) * rank,
        "padding": "VALID",
        "dimension_numbers": NUMBERS.get(rank),
    }
    return lambda lhs, rhs: lax.conv_general_dilated(lhs, rhs, **{**defaults, **params})


def _define(case: str, fun: Callable[..., Any], args: list[Arg], dtype: Any, **params: Any) -> None:
    define(
        "conv_general_dilated",
        case,
        fun,
        args,
        dtype=dtype,
        params=params,
        ulps=ULPS,
        scale="array",
    )


def _case(case: str, lhs: Any, rhs: Any, dtype: np.dtype, **params: Any) -> None:
    args = [_arg(lhs, dtype), _arg(rhs, dtype)]
    _define(case, _conv(len(lhs) - 2, **params), args, dtype, **params)


LHS, RHS = (2, 7, 8, 4), (3, 3, 4, 6)
STRIDED = {"window_strides": (2, 2), "padding": "SAME"}


@family.builder
def convolutions_on_every_dtype() -> None:
    """A strided convolution of every dtype, and sums of integers that overflow."""
    for dtype in ALL:
        _case("", LHS, RHS, dtype, **STRIDED)
    for dtype in INT4:
        fun, _ = narrowed(_conv(2, **STRIDED), [], dtype)
        # No sum overflows: XLA's CPU backend casts such a one to int8 without wrapping it first.
        small = [Integers((1, 3, 3, 1), np.int8, 0, 2), Integers((2, 2, 1, 2), np.int8, 0, 2)]
        _define("", fun, small, dtype, **STRIDED)
    for dtype in INTEGERS:
        whole = [Integers((1, 4, 4, 2), dtype), Integers((3, 3, 2, 2), dtype)]
        _define("overflow", _conv(2), whole, dtype)


# Sums of so many terms of one sign lose digits unless they are kept in a wider dtype.
MANY_TERMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "strided": ((2, 9, 9, 64), (3, 3, 64, 8), STRIDED),
    "depthwise": ((2, 15, 15, 8), (11, 11, 1, 8), {"feature_group_count": 8}),
    "volume": ((1, 5, 5, 5, 16), (3, 3, 3, 16, 4), {"padding": "SAME"}),
    "transposed": ((2, 5, 5, 64), (4, 4, 64, 8), {"padding": [(2, 2)] * 2, "lhs_dilation": (2, 2)}),
}


@family.builder
def sums_of_many_terms() -> None:
    """Sums of many terms, of the floats whose sums are kept in float32."""
    for case, (lhs, rhs, params) in MANY_TERMS.items():
        for dtype in HALVES:
            _define(
                f"many_terms_{case}",
                _conv(len(lhs) - 2, **params),
                [Uniform(lhs, dtype), Uniform(rhs, dtype)],
                dtype,
                **params,
            )


# Shapes of input (batch, space, features) and filter (space, in, out), and what is special.
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "valid": (LHS, RHS, {}),
    "same": (LHS, RHS, {"padding": "SAME"}),
    "same_lower": (LHS, RHS, {"window_strides": (2, 2), "padding": "SAME_LOWER"}),
    "pointwise": (LHS, (1, 1, 4, 6), {}),
    "pointwise_strided": (LHS, (1, 1, 4, 6), {"window_strides": (2, 2)}),
    "strides_differ": (LHS, RHS, {"window_strides": (1, 2), "padding": "SAME"}),
    "one_window_of_one_feature": ((2, 7, 4, 1), (2, 3, 1, 6), {"window_strides": (1, 2)}),
    "one_window_of_one_feature_same": (
        (2, 7, 2, 1),
        (2, 3, 1, 6),
        {"window_strides": (1, 3), "padding": "SAME"},
    ),
    "one_window_of_groups_of_one_feature": (
        (2, 7, 4, 2),
        (2, 3, 1, 6),
        {"window_strides": (1, 2), "feature_group_count": 2},
    ),
    "stride_beyond_window": (LHS, (1, 2, 4, 6), {"window_strides": (3, 3)}),
    "padding": (LHS, RHS, {"window_strides": (2, 1), "padding": ((1, 2), (0, 3))}),
    "padding_beyond_window": (LHS, RHS, {"padding": ((4, 0), (3, 5))}),
    "padding_negative": (LHS, RHS, {"padding": ((-1, 0), (0, -2))}),
    "dilated": (LHS, RHS, {"rhs_dilation": (2, 3), "padding": "SAME"}),
    "dilated_strided": (
        LHS,
        RHS,
        {"rhs_dilation": (2, 1), "window_strides": (1, 2), "padding": ((1, 2), (0, 3))},
    ),
    "groups": (LHS, (3, 3, 2, 6), {**STRIDED, "feature_group_count": 2}),
    "groups_dilated": (
        LHS,
        (3, 3, 2, 6),
        {"feature_group_count": 2, "rhs_dilation": (2, 2), "padding": "SAME"},
    ),
    "depthwise": (LHS, (3, 3, 1, 4), {**STRIDED, "feature_group_count": 4}),
    "depthwise_multiplied": (LHS, (3, 3, 1, 8), {"feature_group_count": 4, "padding": "SAME"}),
    "depthwise_strides_differ": (
        LHS,
        (3, 3, 1, 4),
        {"feature_group_count": 4, "window_strides": (1, 2)},
    ),
    "depthwise_dilated": (LHS, (3, 3, 1, 4), {"feature_group_count": 4, "rhs_dilation": (2, 2)}),
    "depthwise_padding": (
        LHS,
        (3, 3, 1, 4),
        {"feature_group_count": 4, "padding": ((1, 0), (2, 1))},
    ),
    "batch_groups": (LHS, RHS, {**STRIDED, "batch_group_count": 2}),
    "batch_groups_all": (LHS, (3, 3, 4, 2), {"batch_group_count": 2, "rhs_dilation": (2, 2)}),
    "transposed_same": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (2, 2), "padding": ((2, 1),) * 2},
    ),
    "transposed_valid": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (2, 2), "padding": ((2, 2),) * 2},
    ),
    "transposed_more": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (3, 2), "padding": ((1, 4), (2, 3))},
    ),
    "transposed_much_more": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (3, 2), "padding": ((3, 4), (2, 9))},
    ),
    "transposed_negative": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (3, 2), "padding": ((-1, 0), (0, -1))},
    ),
    "transposed_strided": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (2, 2), "window_strides": (3, 1), "padding": ((2, 2), (2, 2))},
    ),
    "transposed_groups": (
        (2, 4, 5, 4),
        (3, 3, 2, 6),
        {"lhs_dilation": (2, 2), "feature_group_count": 2, "padding": ((2, 2), (2, 2))},
    ),
    "transposed_dilated": (
        (2, 4, 5, 3),
        (3, 3, 3, 4),
        {"lhs_dilation": (2, 2), "rhs_dilation": (2, 1), "padding": ((4, 2), (2, 2))},
    ),
    "everything": (
        (4, 4, 5, 3),
        (3, 3, 3, 4),
        {
            "window_strides": (2, 1),
            "padding": ((4, 2), (2, 2)),
            "lhs_dilation": (2, 2),
            "rhs_dilation": (2, 1),
            "batch_group_count": 2,
        },
    ),
    "rank_0": ((2, 6), (6, 4), {}),
    "rank_0_groups": ((2, 6), (3, 4), {"feature_group_count": 2}),
    "rank_0_batch_groups": ((4, 6), (6, 4), {"batch_group_count": 2}),
    "rank_1": ((2, 9, 4), (3, 4, 5), {"window_strides": (2,), "padding": "SAME"}),
    "rank_1_causal": ((2, 9, 4), (3, 4, 5), {"padding": ((4, 0),), "rhs_dilation": (2,)}),
    "rank_1_depthwise": ((2, 9, 4), (3, 1, 4), {"feature_group_count": 4}),
    "rank_1_transposed": ((2, 9, 4), (3, 4, 5), {"lhs_dilation": (2,), "padding": ((2, 2),)}),
    "rank_3_one_window_of_one_feature": (
        (1, 2, 5, 4, 1),
        (2, 2, 3, 1, 4),
        {"window_strides": (1, 1, 2)},
    ),
    "rank_3": ((2, 5, 6, 4, 3), (3, 2, 2, 3, 4), {"window_strides": (2, 1, 1), "padding": "SAME"}),
    "rank_3_padding": ((2, 5, 6, 4, 3), (3, 2, 2, 3, 4), {"padding": ((1, 0), (0, 2), (0, 0))}),
    "rank_3_dilated": ((2, 5, 6, 4, 3), (3, 2, 2, 3, 4), {"rhs_dilation": (1, 2, 1)}),
    "rank_3_groups": ((2, 5, 6, 4, 4), (3, 2, 2, 2, 4), {"feature_group_count": 2}),
    "rank_3_transposed": (
        (2, 3, 3, 2, 3),
        (3, 2, 2, 3, 4),
        {"lhs_dilation": (2, 2, 1), "padding": ((2, 1), (1, 2), (1, 0))},
    ),
    "no_batch": ((0, 7, 8, 4), RHS, STRIDED),
    "no_features": ((2, 7, 8, 0), (3, 3, 0, 6), STRIDED),
    "no_result_features": (LHS, (3, 3, 4, 0), STRIDED),
    "window_too_large": ((2, 2, 2, 4), RHS, {}),
}


@family.builder
def params_of_convolutions() -> None:
    """Strides, padding, dilation, groups and ranks."""
    for case, (lhs, rhs, params) in CASES.items():
        for dtype in MAIN:
            _case(case, lhs, rhs, dtype, **params)


@family.builder
def params_with_other_dtypes() -> None:
    """Some of these params, of dtypes that have kernels of their own."""
    for name in ("float16", "float64", "bool", "uint8"):
        for case in ("padding", "dilated", "groups", "depthwise", "transposed_same", "rank_3"):
            lhs, rhs, params = CASES[case]
            _case(case, lhs, rhs, np.dtype(name), **params)
    # Not of float32: XLA's CPU backend reads beyond the input there, with JAX 0.10.
    _case("padding_of_both_signs", LHS, RHS, np.dtype("float64"), padding=((-1, 2), (0, -3)))


DIMENSION_NUMBERS = {
    "nchw": ("NCHW", "OIHW", "NCHW"),
    "nchw_to_nhwc": ("NCHW", "HWIO", "NHWC"),
    "chnw": ("CHNW", "IHOW", "HNCW"),
    "chwn": ("CHWN", "IHWO", "HWNC"),
}
_SIZES = {"N": 2, "C": 4, "H": 7, "W": 8}, {"I": 4, "O": 6, "H": 3, "W": 2}


@family.builder
def layouts_of_convolutions() -> None:
    """Dimensions of operands and results in other orders."""
    for case, numbers in DIMENSION_NUMBERS.items():
        lhs, rhs = (
            tuple(sizes[d] for d in spec) for sizes, spec in zip(_SIZES, numbers[:2], strict=True)
        )
        for dtype in MAIN[:2]:
            _case(case, lhs, rhs, dtype, dimension_numbers=numbers, **STRIDED)


PREFERRED = [
    ("int8", "int32"),
    ("int8", "float32"),
    ("uint8", "uint32"),
    ("int16", "bfloat16"),
    ("bfloat16", "float32"),
    ("bfloat16", "float16"),
    ("float16", "float32"),
    ("float16", "bfloat16"),
    ("float32", "float64"),
    ("complex64", "complex128"),
    ("bool", "float32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e4m3fn", "bfloat16"),
]


@family.builder
def preferred_element_types() -> None:
    """Results of another dtype than that of the operands."""
    for name, preferred in PREFERRED:
        dtype = np.dtype(getattr(jnp, name))
        _case(f"to_{preferred}", LHS, RHS, dtype, preferred_element_type=preferred)


@family.builder
def precisions_of_convolutions() -> None:
    """Each precision of a convolution."""
    for precision in ("default", "high", "highest"):
        for name in ("float32", "bfloat16", "complex64"):
            dtype = np.dtype(getattr(jnp, name))
            _case(f"precision_{precision}", LHS, RHS, dtype, precision=precision)


def _gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a weighted sum of the result, by input and by filter."""

    def weighted(lhs: jax.Array, rhs: jax.Array) -> jax.Array:
        out = fun(lhs, rhs)
        return (out * (lax.iota(out.dtype, out.size).reshape(out.shape) / out.size)).sum()

    return jax.grad(weighted, (0, 1))


GRADIENTS = ("same", "same_lower", "dilated", "groups", "depthwise", "rank_1", "rank_3", "nchw")


@family.builder
def gradients_of_convolutions() -> None:
    """Gradients by input and by filter."""
    for case in GRADIENTS:
        lhs, rhs, params = CASES.get(case, ((2, 4, 7, 8), (6, 4, 3, 3), STRIDED))
        if case == "nchw":
            params = {**params, "dimension_numbers": DIMENSION_NUMBERS[case]}
        args = [_arg(lhs, np.float32), _arg(rhs, np.float32)]
        _define(f"gradient_{case}", _gradient(_conv(len(lhs) - 2, **params)), args, np.float32)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "lax_conv": (lambda a, b: lax.conv(a, b, (2, 2), "SAME"), (2, 3, 6, 7), (4, 3, 3, 3)),
    "lax_conv_with_general_padding": (
        lambda a, b: lax.conv_with_general_padding(a, b, (1, 1), ((1, 0), (0, 2)), (1, 2), (1, 1)),
        (2, 3, 6, 7),
        (4, 3, 3, 3),
    ),
    "lax_conv_transpose": (
        lambda a, b: lax.conv_transpose(a, b, (2, 2), "SAME"),
        (2, 4, 5, 3),
        (3, 3, 3, 4),
    ),
    "lax_conv_transpose_kernel": (
        lambda a, b: lax.conv_transpose(a, b, (2, 2), "VALID", transpose_kernel=True),
        (2, 4, 5, 4),
        (3, 3, 3, 4),
    ),
    "lax_conv_patches": (
        lambda a, b: lax.conv_general_dilated_patches(a, (2, 2), (1, 2), "SAME") + b,
        (2, 3, 6, 7),
        (1,),
    ),
    "lax_conv_local": (
        lambda a, b: lax.conv_general_dilated_local(a, b, (1, 1), "VALID", (2, 2)),
        (2, 3, 4, 5),
        (4, 12, 3, 4),
    ),
    "jnp_convolve": (lambda a, b: jnp.convolve(a, b, "full"), (9,), (4,)),
    "jnp_correlate": (lambda a, b: jnp.correlate(a, b, "same"), (9,), (4,)),
    "scipy_convolve": (lambda a, b: jax.scipy.signal.convolve(a, b), (5, 6), (3, 2)),
    "scipy_convolve2d": (
        lambda a, b: jax.scipy.signal.convolve2d(a, b, "same"),
        (5, 6),
        (3, 2),
    ),
    "vmap": (jax.vmap(_conv(2, **STRIDED)), (3, *LHS), (3, *RHS)),
    "vmap_of_filter": (jax.vmap(_conv(2, **STRIDED), (None, 0)), LHS, (3, *RHS)),
    "vmap_of_input": (jax.vmap(_conv(2, **STRIDED), (1, None)), (2, 3, *LHS[1:]), RHS),
}


@family.builder
def functions_over_convolutions() -> None:
    """The functions of jax.lax and jax.numpy that come down to a convolution."""
    for case, (fun, lhs, rhs) in FUNCTIONS.items():
        _define(case, fun, [_arg(lhs, np.float32), _arg(rhs, np.float32)], np.float32)
