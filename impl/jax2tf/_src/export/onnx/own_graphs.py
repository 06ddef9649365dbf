"""Writes a signature as ONNX through a graph of our own, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jax2tf._src.export import traced
from jax2tf._src.export.onnx import engine, opsets, storage, writer
from jax2tf._src.export.signatures import signatures_of
from jax2tf._src.graph.graph import Program
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import PyTree


def parts_of(program: Program, opset: int | None) -> storage.Parts:
    """The model of a program, which the strict checker accepts."""
    parts = storage.parts_of(writer.model_of(program, opset or writer.OPSET))
    storage.check(parts)
    return parts


def file_of_jax(fun_jax: Callable[..., PyTree], specs: PyTree, opset: int | None = None) -> bytes:
    """The content of an ONNX file of a JAX function, as `jax2tf.export` writes it.

    Args:
      fun_jax: a function of only inputs.
      specs: the specs of its inputs, as `jax2tf.export` takes them.
      opset: the version of ONNX's ops, from 18 to the newest of the installed ONNX Runtime; 21 by
        default.

    Raises:
      TypeError, ValueError: as `jax2tf.export`.
      jax2tf.ConversionError: a part of the function has no lowering.
      NotImplementedError: the function has an op that no rule writes.
    """
    if opset is not None:
        option_checks.one_of(opset, "jax2tf.onnx.file_of_jax: opset", opsets.Opsets())
    (signature,) = signatures_of(fun_jax, None, specs)
    signature = dataclasses.replace(signature, one_namespace=True)
    program = traced.program_of(signature, None, {"target": engine.TARGET})
    return storage.content_of(writer.model_of(program, opset or writer.OPSET))
