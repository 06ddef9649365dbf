"""Ops on each element in ONNX Runtime against TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, INTEGERS, NUMBERS, SIGNED, numbers, pairs

RAW = tf.raw_ops

# By op, the dtypes of TensorFlow's kernel, and how many units in the last place ONNX Runtime
# differs.
OF_ONE = {
    **dict.fromkeys(("Abs", "Neg"), ((*SIGNED, *FLOATS), 0)),
    "Sign": ((*SIGNED, *FLOATS, "bfloat16"), 0),
    "Square": ((*NUMBERS, "bfloat16"), 0),
    **dict.fromkeys(("Ceil", "Floor", "Round", "Sqrt"), (FLOATS, 0)),
    "Rint": (("float32", "float64"), 0),
    **dict.fromkeys(("IsNan", "IsInf", "IsFinite"), ((*FLOATS, "bfloat16"), 0)),
    **dict.fromkeys(("Exp", "Log", "Reciprocal", "Rsqrt"), (FLOATS, 1)),
    **dict.fromkeys(("Sin", "Cos"), (FLOATS, 4)),
    **dict.fromkeys(("Asin", "Acos", "Atan", "Sinh", "Cosh", "Tan"), (("float16", "float32"), 2)),
    **dict.fromkeys(("Asinh", "Acosh", "Atanh", "Erf"), (("float16", "float32"), 2)),
    "Tanh": (("float16", "float64"), 1),
}
OF_TWO = {
    **dict.fromkeys(("AddV2", "Sub", "Mul"), ((*NUMBERS, "bfloat16"), 0)),
    **dict.fromkeys(("Equal", "NotEqual"), ((*NUMBERS, "bfloat16", "bool"), 0)),
    **dict.fromkeys(("Less", "LessEqual", "Greater", "GreaterEqual"), ((*NUMBERS, "bfloat16"), 0)),
    **dict.fromkeys(("Maximum", "Minimum"), ((*NUMBERS, "bfloat16"), 0)),
    **dict.fromkeys(("LogicalAnd", "LogicalOr"), (("bool",), 0)),
    "RealDiv": ((*FLOATS, "bfloat16"), 0),
    "SquaredDifference": (("int32", "int64", *FLOATS), 1),
    "DivNoNan": (FLOATS, 0),
    "MulNoNan": (FLOATS, 0),
    "Pow": (("float32", "float64"), 1),
}


def _cases(table):
    return [(op, dtype, ulps) for op, (dtypes, ulps) in table.items() for dtype in dtypes]


@pytest.mark.parametrize(("op", "dtype", "ulps"), _cases(OF_ONE))
def test_an_op_of_one_operand(op, dtype, ulps):
    function = getattr(RAW, op)
    # TensorFlow's Rsqrt of float32 is off by 2 units on processors with AVX-512, even for 1.
    reference = _in_float64(function) if op == "Rsqrt" else None
    check(lambda x: function(x=x), numbers(dtype), ulps=ulps, reference=reference)


def _in_float64(function):
    return lambda x: tf.cast(function(x=tf.cast(x, tf.float64)), x.dtype)


@pytest.mark.parametrize(("op", "dtype", "ulps"), _cases(OF_TWO))
def test_an_op_of_two_operands(op, dtype, ulps):
    # TensorFlow's kernels of extremes give either zero.
    signs = op not in ("Maximum", "Minimum")
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), *pairs(dtype), ulps=ulps, signs=signs)


@pytest.mark.parametrize("op", ["AddV2", "Maximum", "Less", "RealDiv"])
@pytest.mark.parametrize(
    "shapes", [((), ()), ((0,), (1,)), ((2, 0), (0,)), ((3,), ()), ((4, 1, 2), (3, 1))]
)
def test_shapes_broadcast(op, shapes):
    check(lambda x, y: getattr(RAW, op)(x=x, y=y), *(np.ones(s, np.float32) for s in shapes))


def test_small_results_of_tanh_are_close():
    check(lambda x: RAW.Tanh(x=x), numbers("float32"), relative=2e-7)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_logic_and_bits_keep_their_dtype(dtype):
    check(lambda x: RAW.LogicalNot(x=RAW.Equal(x=x, y=x)), numbers(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_angle_has_the_right_quadrant(dtype):
    y, x = pairs(dtype)
    check(lambda y, x: RAW.Atan2(y=y, x=x), y, x, ulps=1)


def test_an_angle_beside_a_constant_takes_few_nodes():
    ops = check(lambda y: RAW.Atan2(y=y, x=tf.constant(2.0)), numbers("float32"), ulps=1)
    assert ops == ["Div", "Atan"]


def test_a_sum_of_several_arrays():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(lambda x, y: RAW.AddN(inputs=[x, y, x]), x, x + 1)


@pytest.mark.parametrize("op", ["AddV2", "Sub", "Mul", "Less", "Equal", "RealDiv", "Maximum"])
def test_an_op_is_one_node(op):
    x = np.ones([2, 3], np.float32)
    assert len(check(lambda x, y: getattr(RAW, op)(x=x, y=y), x, x)) == 1


@pytest.mark.parametrize("opset", [18, 23, 26])
@pytest.mark.parametrize("op", ["IsInf", "Sign", "Round"])
def test_other_opsets(op, opset):
    check(lambda x: getattr(RAW, op)(x=x), numbers("float16"), opset=opset)
