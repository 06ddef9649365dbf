"""The ops that a function becomes: one table for every family, by function and target.

A list of ops is in the order of the graph; a dict says how many there are of each. What computes
nothing is not counted (see `ops_in_order`). Tests that assert anything else of a graph stand with
their family.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.running import graph_of, ops_in_order

EVERY = ("xla", "tensorflow")
WITH_XLA = ("xla",)
WITHOUT_XLA = ("tensorflow",)


class Row(NamedTuple):
    """A function, the shapes and dtype of its arguments, and the ops of its graph."""

    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    ops: list[str] | dict[str, int]
    targets: Sequence[str] = EVERY
    dtype: Any = np.float32


def _arguments(row: Row) -> list[np.ndarray]:
    return [np.ones(shape, row.dtype) for shape in row.shapes]


# Float32 in, one op of this name out; those that a target of no XLA ops does not have stand below.
_FLOAT_OPS: dict[str, Callable[..., Any]] = {
    "Abs": lax.abs, "Acosh": lax.acosh, "Asinh": lax.asinh, "Ceil": lax.ceil, "Cos": lax.cos,
    "Exp": lax.exp, "Floor": lax.floor, "IsFinite": lax.is_finite, "Log": lax.log, "Neg": lax.neg,
    "Reciprocal": lambda x: lax.integer_pow(x, -1),
    "Round": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "Rsqrt": lax.rsqrt,
    "Sigmoid": lax.logistic, "Sin": lax.sin, "Sqrt": lax.sqrt, "Square": lax.square,
    "Tanh": lax.tanh, "Maximum": jax.nn.relu, "Minimum": lambda x: lax.min(2.0, x),
    "AddV2": lambda x: lax.add(x, x), "Atan2": lambda x: lax.atan2(x, x),
    "Equal": lambda x: lax.eq(x, x), "Mul": lambda x: x * x, "Less": lambda x: lax.lt(x, x),
    "LessEqual": lambda x: lax.le(x, x), "Pow": lambda x: x**x,
    "NextAfter": lambda x: lax.nextafter(x, x), "NotEqual": lambda x: lax.ne(x, x),
    "RealDiv": lambda x: lax.div(x, x), "Sub": lambda x: lax.sub(x, x),
    "Complex": lambda x: lax.complex(x, x),
}  # fmt: skip

# What engines that read graphs do not have.
_FLOAT_OPS_WITH_XLA: dict[str, Callable[..., Any]] = {
    "Acos": lax.acos, "Asin": lax.asin, "Atan": lax.atan, "Atanh": lax.atanh, "Cosh": lax.cosh,
    "Expm1": lax.expm1, "Log1p": lax.log1p, "Sinh": lax.sinh, "Tan": lax.tan,
    "TruncateMod": lambda x: lax.rem(x, x),
}  # fmt: skip

# A constant rules out the case in which the op differs from JAX.
_INTEGER_OPS: dict[str, Callable[..., Any]] = {
    "BitwiseAnd": lambda x: x & x, "BitwiseOr": lambda x: x | x, "BitwiseXor": lambda x: x ^ x,
    "Invert": lambda x: ~x, "TruncateDiv": lambda x: lax.div(x, 3), "Sign": lax.sign,
    "TruncateMod": lambda x: lax.rem(x, np.array([3, -3, 1], np.int32)),
    "LeftShift": lambda x: lax.shift_left(x, 31),
    "RightShift": lambda x: lax.shift_right_arithmetic(x, 31),
}  # fmt: skip

_BOOL_OPS: dict[str, Callable[..., Any]] = {
    "LogicalAnd": lambda x: x & x, "LogicalOr": lambda x: x | x, "NotEqual": lambda x: x ^ x,
    "LogicalNot": lambda x: ~x,
}  # fmt: skip

ELEMENTWISE = {
    **{f"{op} of floats": Row(f, [(3,)], [op]) for op, f in _FLOAT_OPS.items()},
    **{f"{op} of floats": Row(f, [(3,)], [op], WITH_XLA) for op, f in _FLOAT_OPS_WITH_XLA.items()},
    **{
        f"{op} of integers": Row(f, [(3,)], [op], WITH_XLA, np.int32)
        for op, f in _INTEGER_OPS.items()
    },
    **{f"{op} of bools": Row(f, [(3,)], [op], WITH_XLA, np.bool_) for op, f in _BOOL_OPS.items()},
    "max keeps a NaN of either operand": Row(
        lax.max,
        [(3,), (3,)],
        {"IsNan": 1, "LessEqual": 1, "LogicalOr": 1, "SelectV2": 1},
        WITH_XLA,
    ),
    # The scalar is broadcast before TensorFlow's optimiser can move it.
    "complex scalar": Row(lambda x: 2 * x, [(3,)], ["BroadcastTo", "Mul"], WITH_XLA, np.complex64),
    "complex scalar without XLA": Row(lambda x: 2 * x, [(3,)], ["Mul"], WITHOUT_XLA, np.complex64),
    "copy": Row(lambda x: jnp.copy(x), [(3,)], [], WITH_XLA),
    "stop_gradient": Row(lambda x: lax.stop_gradient(x), [(3,)], [], WITH_XLA),
    "optimization_barrier": Row(lambda x: lax.optimization_barrier(x), [(3,)], [], WITH_XLA),
    "device_put": Row(lambda x: jax.jit(jax.device_put)(x), [(3,)], [], WITH_XLA),
}

SPECIAL = {
    "bessel_i0e": Row(lax.bessel_i0e, [(3,)], ["BesselI0e"], WITH_XLA),
    "bessel_i1e": Row(lax.bessel_i1e, [(3,)], ["BesselI1e"], WITH_XLA),
    "erf": Row(lax.erf, [(3,)], ["Erf"], WITH_XLA),
    "erfc": Row(lax.erfc, [(3,)], ["Erfc"], WITH_XLA),
    "lgamma": Row(lax.lgamma, [(3,)], ["Lgamma"], WITH_XLA),
    # Narrow floats are computed in float32.
    "lgamma of float16": Row(lax.lgamma, [(3,)], ["Cast", "Lgamma", "Cast"], WITH_XLA, np.float16),
}

_CAST = [
    (np.float32, np.float16),
    (np.float32, jnp.bfloat16),
    (np.float32, jnp.float8_e4m3fn),
    (np.float32, np.complex64),
    (np.int32, np.float32),
    (np.int32, np.int8),
    (np.uint8, np.int32),
    (np.bool_, np.float32),
]

CONVERSIONS = {
    **{
        f"{np.dtype(old)} to {np.dtype(new)}": Row(
            partial(lax.convert_element_type, new_dtype=new), [(3,)], ["Cast"], dtype=old
        )
        for old, new in _CAST
    },
    "to bool is a comparison": Row(
        lambda x: lax.convert_element_type(x, bool), [(3,)], ["NotEqual"], WITH_XLA
    ),
    "reduce_precision": Row(
        lambda x: lax.reduce_precision(x, 5, 10), [(3,)], ["XlaReducePrecision"], WITH_XLA
    ),
}

ARRAYS = {
    "reshape": Row(lambda x: lax.reshape(x, (12,)), [(3, 4)], ["Reshape"]),
    "transpose": Row(lambda x: x.T, [(3, 4)], ["Transpose"]),
    "broadcast": Row(lambda x: jnp.broadcast_to(x, (2, 3, 4)), [(3, 4)], ["BroadcastTo"]),
    "expand_dims": Row(lambda x: x[:, None], [(3, 4)], ["ExpandDims"]),
    "squeeze": Row(lambda x: lax.squeeze(x, (0,)), [(1, 4)], ["Squeeze"]),
    "rev": Row(lambda x: lax.rev(x, (1,)), [(3, 4)], ["ReverseV2"]),
    "rev of two axes": Row(lambda x: lax.rev(x, (0, 1)), [(3, 4)], ["ReverseV2"], WITH_XLA),
    # LiteRT and OpenVINO reverse one axis at a time.
    "rev of two axes without XLA": Row(
        lambda x: lax.rev(x, (0, 1)), [(3, 4)], ["ReverseV2"] * 2, WITHOUT_XLA
    ),
    "concatenate": Row(lambda x: jnp.concatenate([x, x, x]), [(3, 4)], ["ConcatV2"]),
    # Alone, unstack is jitted, and jitted functions are compiled.
    "unstack": Row(lambda x: jnp.unstack(x), [(3, 4)], ["Unpack"]),
    "split": Row(lambda x: lax.split(x, (2, 2), 1), [(3, 4)], ["Split"]),
    "split in unequal parts": Row(lambda x: lax.split(x, (1, 3), 1), [(3, 4)], ["SplitV"]),
    "tile": Row(lambda x: jnp.tile(x, (2, 2)), [(3, 4)], ["Tile"]),
    "slice": Row(lambda x: lax.slice(x, (0, 1), (1, 3)), [(3, 4)], ["Slice"]),
    "slice with strides": Row(
        lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), [(3, 4)], ["StridedSlice"]
    ),
    "pad": Row(lambda x: lax.pad(x, 0.0, [(1, 2, 0), (0, 1, 0)]), [(3, 4)], ["PadV2"]),
    "pad that cuts": Row(
        lambda x: lax.pad(x, 0.0, [(-1, 0, 0), (0, -2, 0)]), [(3, 4)], ["Slice"], WITH_XLA
    ),
    "pad between elements": Row(
        lambda x: lax.pad(x, 0.0, [(0, 0, 1), (0, 0, 0)]), [(3, 4)], ["XlaPad"], WITH_XLA
    ),
    "pad between elements without XLA": Row(
        lambda x: lax.pad(x, 0.0, [(0, 0, 1), (0, 0, 0)]),
        [(3, 4)],
        ["ExpandDims", "PadV2", "Reshape", "Slice"],
        WITHOUT_XLA,
    ),
    # What changes nothing is no op. (That reshape to itself is none is JAX's doing.)
    "reshape to itself": Row(lambda x: lax.reshape(x, x.shape), [(3, 4)], [], WITH_XLA),
    "identity permutation": Row(lambda x: lax.transpose(x, (0, 1)), [(3, 4)], [], WITH_XLA),
    "broadcast to itself": Row(
        lambda x: lax.broadcast_in_dim(x, x.shape, (0, 1)), [(3, 4)], [], WITH_XLA
    ),
    "concatenate of one": Row(lambda x: lax.concatenate([x], 0), [(3, 4)], [], WITH_XLA),
    "split in one": Row(lambda x: lax.split(x, (3,), 0), [(3, 4)], [], WITH_XLA),
    "pad of nothing": Row(
        lambda x: lax.pad(x, 0.0, [(0, 0, 0), (0, 0, 0)]), [(3, 4)], [], WITH_XLA
    ),
    "select of one": Row(lambda x: lax.select_n(np.array(False), x), [(3, 4)], [], WITH_XLA),
    "convert to itself": Row(
        lambda x: lax.convert_element_type(x, np.float32), [(3, 4)], [], WITH_XLA
    ),
}

REDUCTIONS = {
    "sum": Row(lambda x: lax.reduce_sum(x, axes=(0, 1)), [(2, 3)], ["Sum"], WITH_XLA),
    "prod": Row(lambda x: lax.reduce_prod(x, axes=(1,)), [(2, 3)], ["Prod"], WITH_XLA),
    "reduce": Row(
        lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + a, (1,)),
        [(2, 3)],
        ["XlaVariadicReduceV2"],
        WITH_XLA,
    ),
}

CUMULATIVE = {
    "cumsum": Row(lambda x: lax.cumsum(x, 1), [(2, 3)], ["Cumsum"], WITH_XLA),
    "cumprod": Row(lambda x: lax.cumprod(x, 1, reverse=True), [(2, 3)], ["Cumprod"], WITH_XLA),
    "cummax": Row(lambda x: lax.cummax(x, 1), [(2, 3)], ["XlaReduceWindow"], WITH_XLA),
}

SORTING = {
    "sort": Row(lambda x: lax.sort(x, dimension=0), [(2, 3)], ["XlaVariadicSort"], WITH_XLA),
}

WINDOWS = {
    "max pool": Row(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
        [(1, 8, 8, 3)],
        {"MaxPool": 1},
        WITHOUT_XLA,
    ),
}


def _einsum(equation: str) -> Callable[..., jax.Array]:
    return partial(jnp.einsum, equation)


def _conv(strides=(1, 1), padding="SAME", **params) -> Callable[..., jax.Array]:
    params = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), **params}
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **params)


def _transposed_conv(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_transpose(x, w, (2, 2), "SAME")


_HIGHEST = partial(lax.dot, precision="highest")
_IMAGE, _FILTER = (1, 8, 8, 3), (3, 3, 3, 4)

CONTRACTIONS = {
    "ik,kj->ij": Row(_einsum("ik,kj->ij"), [(3, 4), (4, 5)], {"MatMul": 1}),
    "ik,jk->ij": Row(_einsum("ik,jk->ij"), [(3, 4), (5, 4)], {"MatMul": 1}),
    "ki,kj->ij": Row(_einsum("ki,kj->ij"), [(4, 3), (4, 5)], {"MatMul": 1}),
    "btd,df->btf": Row(
        _einsum("btd,df->btf"), [(2, 3, 4), (4, 5)], {"BatchMatMulV2": 1}, WITHOUT_XLA
    ),
    "btd,df->btf, one matrix of rows": Row(
        _einsum("btd,df->btf"), [(2, 3, 4), (4, 5)], {"MatMul": 1, "Reshape": 2}, WITH_XLA
    ),
    "btd,fd->btf": Row(
        _einsum("btd,fd->btf"), [(2, 3, 4), (5, 4)], {"BatchMatMulV2": 1}, WITHOUT_XLA
    ),
    "btd,fd->btf, one matrix of rows": Row(
        _einsum("btd,fd->btf"), [(2, 3, 4), (5, 4)], {"MatMul": 1, "Reshape": 2}, WITH_XLA
    ),
    "bhtd,bhsd->bhts": Row(
        _einsum("bhtd,bhsd->bhts"), [(2, 3, 4, 5), (2, 3, 6, 5)], {"BatchMatMulV2": 1}
    ),
    "bthd,bshd->bhts": Row(
        _einsum("bthd,bshd->bhts"),
        [(2, 4, 3, 5), (2, 6, 3, 5)],
        {"BatchMatMulV2": 1, "Transpose": 2},
    ),
    # MatMul cannot be told a precision; XLA can.
    "highest precision": Row(_HIGHEST, [(3, 4), (4, 5)], {"XlaDotV2": 1}, WITH_XLA),
    "highest precision without XLA": Row(_HIGHEST, [(3, 4), (4, 5)], {"MatMul": 1}, WITHOUT_XLA),
    "highest precision of bfloat16": Row(
        _HIGHEST, [(3, 4), (4, 5)], {"MatMul": 1}, WITH_XLA, jnp.bfloat16
    ),
}

CONVOLUTION = {
    "strides": Row(_conv((2, 2)), [_IMAGE, _FILTER], {"Conv2D": 1}),
    "padding": Row(_conv(padding=((1, 2), (0, 1))), [_IMAGE, _FILTER], {"Conv2D": 1}),
    "dilation": Row(_conv(rhs_dilation=(2, 2)), [_IMAGE, _FILTER], {"Conv2D": 1}),
    "groups": Row(_conv(feature_group_count=2), [(1, 8, 8, 4), (3, 3, 2, 4)], {"Conv2D": 1}),
    "depthwise": Row(
        _conv(feature_group_count=4),
        [(1, 8, 8, 4), (3, 3, 1, 4)],
        {"DepthwiseConv2dNative": 1, "Transpose": 1},
    ),
    "channels first": Row(
        _conv(dimension_numbers=("NCHW", "OIHW", "NCHW")),
        [(1, 3, 8, 8), (4, 3, 3, 3)],
        {"Conv2D": 1, "Transpose": 3},
    ),
    "transposed": Row(
        _transposed_conv,
        [_IMAGE, _FILTER],
        {"Conv2DBackpropInput": 1, "ReverseV2": 1, "Transpose": 1},
        WITH_XLA,
    ),
    # LiteRT and OpenVINO reverse one axis at a time.
    "transposed without XLA": Row(
        _transposed_conv,
        [_IMAGE, _FILTER],
        {"Conv2DBackpropInput": 1, "ReverseV2": 2, "Transpose": 1},
        WITHOUT_XLA,
    ),
}

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "special": SPECIAL,
    "conversions": CONVERSIONS,
    "arrays": ARRAYS,
    "reductions": REDUCTIONS,
    "cumulative": CUMULATIVE,
    "sorting": SORTING,
    "windows": WINDOWS,
    "contractions": CONTRACTIONS,
    "convolution": CONVOLUTION,
}


@pytest.mark.parametrize(
    ("row", "target"),
    [
        pytest.param(row, target, id=f"{family}, {name}, {target}")
        for family, rows in FAMILIES.items()
        for name, row in rows.items()
        for target in row.targets
    ],
)
def test_the_ops_of_a_function(row, target):
    ops = ops_in_order(graph_of(row.function, target, *_arguments(row)))
    assert (collections.Counter(ops) if isinstance(row.ops, dict) else ops) == row.ops


@pytest.mark.parametrize("op", _FLOAT_OPS_WITH_XLA)
def test_what_engines_lack_is_computed_by_other_ops(op):
    ops = ops_in_order(graph_of(_FLOAT_OPS_WITH_XLA[op], "tensorflow", np.ones(3, np.float32)))
    assert not _FLOAT_OPS_WITH_XLA.keys() & set(ops)


# The function and the shapes of its arguments.
COMPOSED: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "betainc": (lax.betainc, [(3,)] * 3),
    "digamma": (lax.digamma, [(3,)]),
    "erf_inv": (lax.erf_inv, [(3,)]),
    "igamma": (lax.igamma, [(3,)] * 2),
    "igamma_grad_a": (lax.igamma_grad_a, [(3,)] * 2),
    "igammac": (lax.igammac, [(3,)] * 2),
    "polygamma": (lax.polygamma, [(3,)] * 2),
    "zeta": (lax.zeta, [(3,)] * 2),
    "cummax": (lambda x: lax.cummax(x, 1), [(2, 3)]),
    "sort": (lambda x: lax.sort(x), [(2, 3)]),
    "top_k": (lambda x: lax.top_k(x, 2), [(2, 3)]),
    "reduce": (
        lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 0 * a, (1,)),
        [(2, 3)],
    ),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), [(3,)]),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_without_xla_no_op_is_xlas(name):
    function, shapes = COMPOSED[name]
    args = [np.ones(shape, np.float32) for shape in shapes]
    ops = ops_in_order(graph_of(function, "tensorflow", *args))
    assert ops
    assert not [op for op in ops if op.startswith("Xla")]
