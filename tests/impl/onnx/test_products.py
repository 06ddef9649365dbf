"""Products of matrices in ONNX Runtime against TensorFlow."""

import jax
import numpy as np
import onnxruntime as ort
import pytest
import tensorflow as tf
from onnx import TensorProto, helper, numpy_helper

import jax2tf
from tests.impl.onnx.compared import check
from tests.impl.onnx.special_numbers import FLOATS, random

RAW = tf.raw_ops
TOLERANCE = {"float16": 4e-3, "bfloat16": 0.02, "float32": 1e-6, "float64": 1e-14}
MATRICES = [
    ((3, 4), (4, 5)),
    ((1, 4), (4, 1)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((3, 4), (4, 0)),
]
BATCHES = [
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 4), (6, 2, 4, 5)),
]


@pytest.mark.parametrize("dtype", ["int32", "int64", *FLOATS, "bfloat16"])
@pytest.mark.parametrize(("left", "right"), MATRICES)
def test_products_of_matrices(dtype, left, right):
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        x = random(left[::-1] if a else left, dtype, 2)
        y = random(right[::-1] if b else right, dtype, 3)

        def product(x, y, a=a, b=b):
            return RAW.MatMul(a=x, b=y, transpose_a=a, transpose_b=b)

        # ONNX Runtime fuses a transpose with a product over nothing, and gives any numbers.
        are_open = (False,) if left == (3, 0) else (False, True)
        check(product, x, y, relative=TOLERANCE.get(dtype, 0.0), are_open=are_open)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", *FLOATS, "bfloat16"])
@pytest.mark.parametrize(("left", "right"), BATCHES)
def test_products_of_batches(dtype, left, right):
    relative = TOLERANCE.get(dtype, 0.0)
    x, y = random(left, dtype, 2), random(right, dtype, 3)
    check(lambda x, y: RAW.BatchMatMulV2(x=x, y=y), x, y, relative=relative)
    x = np.swapaxes(x, -1, -2).copy()
    check(lambda x, y: RAW.BatchMatMulV2(x=x, y=y, adj_x=True), x, y, relative=relative)


@pytest.mark.parametrize("dtype", ["int32", "int64", *FLOATS])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("...ij,jk->...ik", (2, 3, 4), (4, 5)),
        ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ],
)
def test_einsum(dtype, equation, left, right):
    x, y = random(left, dtype, 2), random(right, dtype, 3)
    relative = TOLERANCE.get(dtype, 0.0)
    check(lambda x, y: RAW.Einsum(inputs=[x, y], equation=equation), x, y, relative=relative)


# Each has a factor that float32 does not hold, in front of a product of matrices or behind it.
SCALED = {
    "result": lambda x, y: (x @ y) * 0.1,
    "operand": lambda x, y: (x * 0.1) @ y,
    "both": lambda x, y: ((x @ y) / 3) @ y,
    "transposed": lambda x, y: ((x @ y) * 0.1).T @ x,
    "read_twice": lambda x, y: ((x * 0.1) @ y, x * 0.1),
    "between": lambda x, y: (z := (x @ y) * 0.1, z @ y),
    "vector": lambda x, y: (x[0] @ y) * 0.1,
    "number": lambda x, y: (x[0] @ y[0]) * 0.1,
    "square_root": lambda x, y: (x @ y) / np.sqrt(2.0),
    "in_a_loop": lambda x, y: jax.lax.fori_loop(0, 3, lambda _, c: (c @ y) * 0.1, x),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("size", [3, "b"])
def test_factors_of_products_keep_their_digits(name, size, tmp_path):
    with jax.enable_x64(True):
        specs = [f"{size}, 4:float64", "4, 4:float64"]
        path = tmp_path / "model.onnx"
        jax2tf.export(SCALED[name], None, specs, path, verify=False)
        x, y = random((3, 4), "float64", 2), random((4, 4), "float64", 3)
        session = ort.InferenceSession(path)
        names = [argument.name for argument in session.get_inputs()]
        results = session.run(None, dict(zip(names, (x, y), strict=True)))
        expected = jax.tree.leaves(jax.jit(SCALED[name])(x, y))
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, other, rtol=1e-13, atol=1e-14, strict=True)


def test_onnx_runtime_rounds_a_factor_of_float64():
    # export/onnx/factors.py is not needed any more if this fails.
    third = numpy_helper.from_array(np.float64(1 / 3), "third")
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["product"]),
        helper.make_node("Mul", ["product", "third"], ["y"]),
    ]
    inputs, outputs = ([value(n, TensorProto.DOUBLE, [2, 2])] for n in "xy")
    graph = helper.make_graph(nodes, "scaled", inputs, outputs, [third])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString())
    x = np.eye(2)
    assert 1e-9 < np.abs(session.run(None, {"x": x})[0] - x / 3).max() < 1e-7
