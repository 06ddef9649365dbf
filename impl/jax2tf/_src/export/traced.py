"""Signatures as graphs of our own, without TensorFlow: what the writers of ONNX and LiteRT read."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from jax import export as jax_export

from jax2tf._src import dims
from jax2tf._src.api import own_graphs
from jax2tf._src.export.signatures import Signature
from jax2tf._src.graph.graph import Program
from jax2tf._src.tracing import arguments, functions
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
        inputs = signature.inputs
        graph = own_graphs.graph_of(
            self._conversion,
            trace,
            [spec.name for spec in inputs],
            jax.tree.leaves(self._params),
            given=[spec.dtype for spec in inputs],
        )
        return Program(graph, signature.output_names(trace.results(graph.outputs)), {})


_OPTIONS = ("target", "assume_finite", "value_checks")


def _specs(signature: Signature) -> list[jax.ShapeDtypeStruct]:
    """The inputs for JAX; sizes with names are open, whatever the names are."""
    scope = jax_export.SymbolicScope()
    return [
        jax.ShapeDtypeStruct(
            jax_export.symbolic_shape(", ".join(map(str, spec.shape)), scope=scope), spec.dtype
        )
        for spec in signature.inputs
    ]
