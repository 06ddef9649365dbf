"""Writes signatures as a LiteRT file through graphs of our own, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jax2tf._src.export import traced
from jax2tf._src.export.signatures import Signature
from jax2tf._src.export.tflite import packing, writer
from jax2tf._src.export.tflite.model import Model, count_ops
from jax2tf._src.graph.graph import Program
from jax2tf._src.tracing import arguments, functions
from jax2tf._src.util.typing import Option, PyTree


def programs_of(
    signatures: Sequence[Signature], params: PyTree, options: Mapping[str, Option]
) -> dict[str, Program]:
    """The graphs of signatures by name; the parameters are constants that they share.

    Args:
      signatures: the functions with their inputs.
      params: their parameters; None for functions of only inputs.
      options: the options of `convert`; those without a meaning for our graphs are left out.
    """
    params = functions.without_opaque_leaves(
        arguments.unwrap(() if params is None else params), functions.is_array_or_number
    )
    # JAX's arrays are copied once, so that signatures share them.
    return {s.name: traced.program_of(s, params, options) for s in signatures}


def content_of(programs: Mapping[str, Program]) -> tuple[bytes, int]:
    """The content of the file of these signatures, and the number of its ops."""
    model = Model([writer.signature_of(program, name) for name, program in programs.items()])
    return packing.content_of(model), count_ops(model)
