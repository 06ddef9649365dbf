"""Writes a signature as ONNX through a graph of our own, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jax import export as jax_export

from jax2tf._src import dims
from jax2tf._src.api import own_graphs
from jax2tf._src.export.onnx import engine, opsets, storage, writer
from jax2tf._src.export.signatures import Signature, signatures_of
from jax2tf._src.graph.graph import Program
from jax2tf._src.tracing import arguments, functions
from jax2tf._src.util import option_checks
from jax2tf._src.util.typing import Option, PyTree


def program_of(signature: Signature, params: PyTree, options: Mapping[str, Option]) -> Program:
    """The graph of a signature; its parameters are constants.

    Args:
      signature: the function with its inputs.
      params: its parameters; None for functions of only inputs.
      options: the options of `convert`; those without a meaning for our graphs are left out.
    """
    return Traced(signature, params, options).program()


class Traced:
    """A signature that JAX has traced; see `program_of`.

    Attributes:
      calls_tensorflow: whether it calls functions of TensorFlow, which have no graph of ours.
    """

    def __init__(self, signature: Signature, params: PyTree, options: Mapping[str, Option]) -> None:
        self._signature = signature
        self._params = functions.without_opaque_leaves(
            arguments.unwrap(() if params is None else params), functions.is_array_or_number
        )
        self._conversion = own_graphs.conversion_of(
            signature.function,
            polymorphic_shapes=dims.OfInputs(signature.polymorphic_shapes),
            polymorphic_constraints=signature.constraints,
            **{name: value for name, value in options.items() if name in _OPTIONS},
        )
        args, kwargs = signature.arguments(_specs(signature))
        self._trace, _ = self._conversion.trace((self._params, *args), kwargs, own_graphs.described)
        self.calls_tensorflow = self._trace.calls_tensorflow

    def complexes(self) -> list[str]:
        """The names of complex inputs and outputs."""
        inputs = {spec.name: spec.dtype for spec in self._signature.inputs}
        avals = self._trace.jaxpr.out_avals
        names = self._signature.output_names(self._trace.results(avals))
        outputs = {name: aval.dtype for name, aval in zip(names, avals, strict=True)}
        both = {**inputs, **outputs}
        return [name for name, dtype in both.items() if np.issubdtype(dtype, np.complexfloating)]

    def program(self) -> Program:
        """The graph."""
        signature, trace = self._signature, self._trace
        names = [spec.name for spec in signature.inputs]
        graph = own_graphs.graph_of(self._conversion, trace, names, jax.tree.leaves(self._params))
        return Program(graph, signature.output_names(trace.results(graph.outputs)), {})


_OPTIONS = ("target", "assume_finite", "value_checks")


def parts_of(program: Program, opset: int | None) -> storage.Parts:
    """The model of a program, which the strict checker accepts."""
    parts = storage.parts_of(writer.model_of(program, opset or writer.OPSET))
    storage.check(parts)
    return parts


def _specs(signature: Signature) -> list[jax.ShapeDtypeStruct]:
    """The inputs for JAX; sizes with names are open, whatever the names are."""
    scope = jax_export.SymbolicScope()
    return [
        jax.ShapeDtypeStruct(
            jax_export.symbolic_shape(", ".join(map(str, spec.shape)), scope=scope), spec.dtype
        )
        for spec in signature.inputs
    ]


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
    program = program_of(signature, None, {"target": engine.TARGET})
    return storage.content_of(writer.model_of(program, opset or writer.OPSET))
