"""Graphs that are made without TensorFlow, as ONNX in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from jax2tf._src.export.onnx import writer
from jax2tf._src.graph.graph import Program
from jax2tf._src.graph.make import branch, constant, loop, make, making


def run(maker, results, *arrays):
    """The results in ONNX Runtime, and the shapes of the outputs in the file."""
    names = [f"y{i}" for i in range(len(results))]
    model = ir.to_proto(writer.model_of(Program(maker.graph(results), names, {})))
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = dict(zip((x.name for x in session.get_inputs()), arrays, strict=True))
    return session.run(None, feed), [x.shape for x in session.get_outputs()]


X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)


def test_computed_shapes():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", "n", 3))
        (shape,) = make("Shape", [x])
        places = [np.array([i], np.int32) for i in (0, 1, 1)]
        (size,) = make("StridedSlice", [shape, *places], {"shrink_axis_mask": 1})
        (flat,) = make("Reshape", [x, *make("Pack", [size, np.int32(-1)])])
        (doubled,) = make("ConcatV2", [flat, flat, 0])
    (y,), (dims,) = run(maker, [doubled], X)
    np.testing.assert_array_equal(y, np.concatenate([X.reshape(2, 6)] * 2))
    assert dims == ["2*b", "3*n"]


def test_a_loop_within_a_branch():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b", "n", 3))
        (total,) = make("Sum", [x, [0, 1, 2]])
        (is_positive,) = make("Greater", [total, 0.0])

        def step(i, y):
            return [*make("AddV2", [i, 1]), *make("AddV2", [*make("Mul", [y, 2.0]), x])]

        def looped():
            first = constant(np.int32(0))
            return loop(lambda i, _: make("Less", [i, 3])[0], step, [first, x])[1:]

        (y,) = branch(is_positive, looped, lambda: make("Neg", [x]))
    for array in (X, -X):
        (result,), (dims,) = run(maker, [y], array)
        np.testing.assert_array_equal(result, 15 * array if array is X else -array)
        assert dims == ["b", "n", 3]


def test_a_program_is_written_twice():
    with making() as maker:
        x = maker.argument("x", np.float32, ("b",))
        (y,) = make("Square", [x])
        results = [*make("AddV2", [y, y])]
    for _ in range(2):
        (result,), _ = run(maker, results, np.ones(3, np.float32))
        np.testing.assert_array_equal(result, [2, 2, 2])
