"""Writes TensorFlow functions as ONNX."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from jax2tf._src.export.onnx import writer
from jax2tf._src.graph.from_tensorflow import Shape, program_of
from jax2tf._src.util.typing import PyTree


def model_of(
    concrete: PyTree, shapes: Mapping[str, Shape] | None = None, opset: int = writer.OPSET
) -> ir.Model:
    """The model of a concrete function from named tensors to a dict of named tensors.

    Args:
      concrete: a tf.types.experimental.ConcreteFunction with an input signature.
      shapes: the shapes of arguments by name, for open sizes with names.
      opset: the version of ONNX's ops.
    """
    return writer.model_of(program_of(concrete, shapes), opset)


def file_of(concrete: PyTree) -> bytes:
    """The model of a function as the content of a file; see `model_of`."""
    return ir.to_proto(model_of(concrete)).SerializeToString()
