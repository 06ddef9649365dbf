"""The table of ONNX Runtime's dtypes lists those that run, and no others."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

from jax2tf._src.export.onnx.rules import dtypes
from tests.impl.onnx.special_numbers import NUMBERS

_KINDS = {
    "bool": onnx.TensorProto.BOOL,
    "bfloat16": onnx.TensorProto.BFLOAT16,
    **{dtype: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for dtype in NUMBERS},
}
_DTYPES = tuple(_KINDS)

# ONNX Runtime computes these, but wrongly: shown below.
_WRONG = {
    ("Sign", "float16"),
    *((op, "int64") for op in ("Sign", "Max", "Min", "Clip", "ReduceMax", "ReduceMin")),
}
# The rules do without these too: they exist only from opset 20 on, or lose NaN.
_UNUSED = {
    *((op, "bfloat16") for op in ("IsNaN", "IsInf", "Sign")),
    *((op, "bool") for op in ("ReduceMax", "ReduceMin")),
}

_ONE = np.array([1])
_OF_IMAGES = ("Conv", "ConvTranspose", "AveragePool", "MaxPool", "Resize")
_ATTRIBUTES = {
    "BitShift": {"direction": "LEFT"},
    "Einsum": {"equation": "ij,jk->ik"},
    "AveragePool": {"kernel_shape": [1, 1]},
    "MaxPool": {"kernel_shape": [1, 1]},
}
# More operands: those that have the dtype of the first one, and others.
_OPERANDS = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Equal"), 2),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "MatMul", "Einsum"), 2),
    **dict.fromkeys(("Conv", "ConvTranspose"), 2),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"), 2),
}
_CONSTANTS = {
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"), _ONE),
    "TopK": _ONE,
    **dict.fromkeys(("Expand", "Tile"), np.array([3, 3])),
    "Pad": np.array([1, 1, 1, 1]),
    "Resize": np.ones(4, np.float32),
    **dict.fromkeys(("CumSum", "CumProd"), np.array(1)),
}
_OF_BOOL = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf"}
_OF_INT64 = {"ArgMax", "ArgMin"}


def _session(op, dtype, opset):
    kind = _KINDS[dtype]
    value = onnx.helper.make_tensor_value_info
    shape = [None] * (4 if op in _OF_IMAGES else 2)
    inputs = [value(f"x{i}", kind, shape) for i in range(_OPERANDS.get(op, 1))]
    if op == "Where":
        inputs = [
            value("c", onnx.TensorProto.BOOL, [None, None]),
            *inputs,
            value("y", kind, [None, None]),
        ]
    if op == "Clip":
        inputs += [value(name, kind, []) for name in ("low", "high")]
    constants = [onnx.numpy_helper.from_array(_CONSTANTS[op], "n")] if op in _CONSTANTS else []
    result = {
        **dict.fromkeys(_OF_BOOL, _KINDS["bool"]),
        **dict.fromkeys(_OF_INT64, _KINDS["int64"]),
    }
    outputs = [value("y0", result.get(op, kind), None)]
    if op == "TopK":
        outputs.append(value("y1", _KINDS["int64"], None))
    # The second operand of a Resize is left out.
    left_out = [""] if op == "Resize" else []
    operands = [*(x.name for x in inputs), *left_out, *(x.name for x in constants)]
    node = onnx.helper.make_node(op, operands, [y.name for y in outputs], **_ATTRIBUTES.get(op, {}))
    graph = onnx.helper.make_graph([node], "graph", inputs, outputs, constants)
    opsets = [onnx.helper.make_opsetid("", opset)]
    version = onnx.helper.find_min_ir_version_for(opsets)
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _runs(op, dtype):
    try:
        _session(op, dtype, 26 if op == "CumProd" else 21)
    except (state.Fail, state.InvalidGraph, state.NotImplemented):
        return False
    return True


@pytest.mark.parametrize("op", dtypes.KERNELS)
def test_the_dtypes_of_an_op(op):
    listed = dtypes.KERNELS[op]
    runs = {dtype for dtype in _DTYPES if _runs(op, dtype)}
    left_out = {dtype for name, dtype in _WRONG | _UNUSED if name == op}
    assert listed | (left_out & runs) == runs


@pytest.mark.parametrize(("op", "dtype"), sorted(_WRONG))
def test_a_kernel_that_is_left_out_is_wrong(op, dtype):
    session = _session(op, dtype, 21)
    if op == "Sign" and dtype == "float16":
        (result,) = session.run(None, {"x0": np.full([3, 3], np.nan, dtype)})
        assert not np.isnan(result).any()
        return
    # The high halves are equal, and the low halves are of two signs as int32.
    x = np.array([[2**31, 1, 2, 3, 4, 5, 6, 7, 8, 2**31 + 5, 1, 1]] * 3)
    y = x[:, ::-1].copy()
    right = {
        "Sign": lambda: np.sign(x),
        "Max": lambda: np.maximum(x, y),
        "Min": lambda: np.minimum(x, y),
        "Clip": lambda: np.clip(x, 3, 2**31 + 2),
        "ReduceMax": lambda: x.max(1, keepdims=True),
        "ReduceMin": lambda: x.min(1, keepdims=True),
    }[op]()
    feed = {"x0": x, "x1": y, "low": np.array(3), "high": np.array(2**31 + 2)}
    feed = {value.name: feed[value.name] for value in session.get_inputs()}
    assert not np.array_equal(session.run(None, feed)[0], right)
