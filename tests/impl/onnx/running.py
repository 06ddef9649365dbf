"""Writes functions of TensorFlow's ops as ONNX, and runs them in ONNX Runtime.

written = Written(lambda x: tf.raw_ops.Neg(x=x), tf.TensorSpec([None, 3], tf.float32))
written.check(np.ones([2, 3], np.float32))
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import tensorflow as tf

from jax2tf._src.export.onnx import writer
from jax2tf._src.graph.from_tensorflow import program_of
from jax2tf._src.graph.graph import Program


class Written:
    """A function of tensors as a model of ONNX that the strict checker accepts.

    Args:
      function: takes tensors; gives one, or a list of them. Its inputs are x0, x1, ..., its outputs
        y0, y1, ...
      specs: a tf.TensorSpec for each input.
      shapes: names of open sizes by input, such as {"x0": ("b", 3)}.
      options: those of `writer.model_of`, such as `opset`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *specs: tf.TensorSpec,
        shapes: Mapping[str, Sequence[int | str | None]] | None = None,
        **options: Any,
    ):
        self._function = function
        self.program = program_of_function(function, *specs, shapes=shapes)
        self.model = ir.to_proto(writer.model_of(self.program, **options))
        onnx.checker.check_model(self.model, full_check=True)
        onnx.shape_inference.infer_shapes(self.model, strict_mode=True, check_type=True)
        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads = 1
        session.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            self.model.SerializeToString(), session, providers=["CPUExecutionProvider"]
        )

    def ops(self) -> list[str]:
        """The op types of all nodes, those of inner graphs too."""
        return _ops(self.model.graph)

    def run(self, *arrays: Any) -> list[np.ndarray]:
        """The results in ONNX Runtime."""
        feed = {f"x{i}": np.asarray(x) for i, x in enumerate(arrays)}
        taken = {given.name for given in self.session.get_inputs()}
        return self.session.run(None, {name: x for name, x in feed.items() if name in taken})

    def check(self, *arrays: Any, ulps: int = 0) -> None:
        """Compares with the function's results in TensorFlow.

        Args:
          arrays: the arguments.
          ulps: how many units in the last place a number may differ; with 0 every bit is compared,
            except that a NaN is as good as another.
        """
        __tracebackhide__ = True
        expected = _listed(self._function(*map(tf.constant, arrays)))
        results = self.run(*arrays)
        assert len(results) == len(expected)
        for result, tensor in zip(results, expected, strict=True):
            assert_same(result, tensor.numpy(), ulps)


def program_of_function(
    function: Callable[..., Any],
    *specs: tf.TensorSpec,
    shapes: Mapping[str, Sequence[int | str | None]] | None = None,
) -> Program:
    """The graph of a function, with the inputs x0, x1, ... and the outputs y0, y1, ..."""

    def named(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        results = _listed(function(*tensors))
        return {f"y{i}": tf.identity(result) for i, result in enumerate(results)}

    signature = [tf.TensorSpec(s.shape, s.dtype, f"x{i}") for i, s in enumerate(specs)]
    traced = tf.function(named, autograph=False, input_signature=signature)
    by_name = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    return program_of(traced.get_concrete_function(), by_name)


def assert_same(result: np.ndarray, expected: np.ndarray, ulps: int = 0) -> None:
    """Compares dtype, shape and each number; see `Written.check`."""
    __tracebackhide__ = True
    assert result.dtype == expected.dtype, f"{result.dtype=}, but should be {expected.dtype}"
    assert result.shape == expected.shape, f"{result.shape=}, but should be {expected.shape}"
    if result.dtype.kind != "f":
        np.testing.assert_array_equal(result, expected)
        return
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    known = ~np.isnan(expected)
    far = np.abs(_place(result[known]) - _place(expected[known])) > ulps
    assert not far.any(), (
        f"{far.sum()} of {far.size} numbers differ by more than {ulps} ULPs: "
        f"{result[known][far][:5]}, but should be {expected[known][far][:5]}"
    )
    if not ulps:
        np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


def _place(x: np.ndarray) -> np.ndarray:
    """The position of each number among the numbers of its dtype, in their order."""
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(object)
    smallest = -(1 << (8 * x.dtype.itemsize - 1))
    return np.where(bits >= 0, bits, smallest - bits)


def _listed(results: Any) -> list[tf.Tensor]:
    return list(results) if isinstance(results, list | tuple) else [results]


def _ops(graph: onnx.GraphProto) -> list[str]:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [node.op_type for node in graph.node] + [op for g in inner for op in _ops(g)]
