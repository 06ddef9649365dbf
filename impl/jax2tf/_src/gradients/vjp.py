"""Traces JAX's vjp of a trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import dims
from jax2tf._src.lowering.passes import masks
from jax2tf._src.tracing.trace import Trace, trace_of, uncollected
from jax2tf._src.util import dtypes
from jax2tf._src.util.typing import Array, Aval, PyTree


class Vjp:
    """JAX's vjp of a trace with respect to some of its inexact arguments, all of them by default.

    Attributes:
      inputs: the indices of the arguments with gradients.
      outputs: the indices of the results with cotangents, by default those that are inexact and of
        a dtype that TensorFlow differentiates.
      sized: the indices of the arguments with symbolic shapes, from which dimension variables are
        solved.
    """

    def __init__(
        self,
        trace: Trace,
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
    ):
        self._trace = trace
        self._function = jex_core.jaxpr_as_fun(trace.differentiable_jaxpr)
        if inputs is None:
            inputs = [i for i, aval in enumerate(trace.jaxpr.in_avals) if _is_inexact(aval)]
        if outputs is None:
            outputs = [
                i
                for i, aval in enumerate(trace.jaxpr.out_avals)
                if _is_inexact(aval) and dtypes.to_tf(aval.dtype) in dtypes.DIFFERENTIABLE
            ]
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.sized = [
            i for i, aval in enumerate(trace.jaxpr.in_avals) if not dims.is_static(aval.shape)
        ]

    @property
    def is_differentiable(self) -> bool:
        """Whether there are inexact arguments and results."""
        return bool(self.inputs and self.outputs)

    def trace_whole(self) -> Trace:
        """A trace from arguments and cotangents to gradients."""

        def whole(args: list[jax.Array], cotangents: list[jax.Array]) -> PyTree:
            return self.pulled_back(args, cotangents)

        return self.trace_of_gradients(whole)

    def pulled_back(self, args: Sequence[Array], cotangents: Sequence[Array]) -> list[jax.Array]:
        """The gradients of `inputs` for the cotangents of `outputs`."""
        _, pullback = self._vjp(args)
        return list(pullback(list(cotangents)))

    def trace_of_gradients(self, whole: Callable[..., PyTree]) -> Trace:
        """A trace of a function of all arguments and of the cotangents of `outputs`."""
        return self._trace_of(whole, self._argument_specs(), self._cotangent_specs())

    def trace_split(self) -> tuple[Trace, Trace]:
        """A trace from arguments to results and residuals, and one from residuals to gradients.

        The first arguments of the second trace are those that dimension variables are solved from,
        and the last are the cotangents. A residual that is a converted truth value stays a truth
        value: it is smaller, and the backward pass recognises products with masks.
        """
        structure: list[PyTree] = []

        def forward(*args: jax.Array) -> PyTree:
            results, pullback = self._vjp(list(args))
            residuals, tree = jax.tree.flatten(pullback)
            structure.append(tree)
            return results, residuals

        forward_trace = self._trace_of(forward, *self._argument_specs())
        n_results = len(self._trace.jaxpr.out_avals)
        dtypes_of_residuals = [a.dtype for a in forward_trace.jaxpr.out_avals[n_results:]]

        def backward(
            sized: list[jax.Array], residuals: list[jax.Array], cotangents: list[jax.Array]
        ) -> PyTree:
            del sized
            converted = map(lax.convert_element_type, residuals, dtypes_of_residuals)
            return jax.tree.unflatten(structure[0], list(converted))(cotangents)

        forward_trace = dataclasses.replace(
            forward_trace, jaxpr=_with_masks(forward_trace.jaxpr, n_results)
        )
        residuals = [_spec(aval) for aval in forward_trace.jaxpr.out_avals[n_results:]]
        sized = [self._argument_specs()[i] for i in self.sized]
        backward_trace = self._trace_of(backward, sized, residuals, self._cotangent_specs())
        forward_trace = dataclasses.replace(
            forward_trace, paths=self._trace.paths, assumptions=self._trace.assumptions
        )
        return forward_trace, backward_trace

    @uncollected()
    def _trace_of(self, fun: Callable[..., PyTree], *specs: PyTree) -> Trace:
        trace = trace_of(jax.jit(fun).trace(*specs), self._trace.simplify)
        return dataclasses.replace(
            trace,
            large_constants=self._trace.large_constants,
            debug_callbacks=self._trace.debug_callbacks,
            is_vjp=True,
        )

    def _vjp(self, args: Sequence[Array]) -> tuple[list[jax.Array], Callable[..., PyTree]]:
        def of_inexact(*inexact: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
            operands = list(args)
            for i, value in zip(self.inputs, inexact, strict=True):
                operands[i] = value
            results = self._function(*operands)
            return [results[i] for i in self.outputs], results

        _, pullback, results = jax.vjp(of_inexact, *(args[i] for i in self.inputs), has_aux=True)
        return results, pullback

    def _argument_specs(self) -> list[jax.ShapeDtypeStruct]:
        return [_spec(aval) for aval in self._trace.jaxpr.in_avals]

    def _cotangent_specs(self) -> list[jax.ShapeDtypeStruct]:
        return [_spec(self._trace.jaxpr.out_avals[i]) for i in self.outputs]


def _with_masks(jaxpr: jex_core.ClosedJaxpr, n_results: int) -> jex_core.ClosedJaxpr:
    """The jaxpr with truth values for those residuals that are converted from them."""
    converted = masks.conversions(jaxpr.jaxpr)
    results, residuals = jaxpr.jaxpr.outvars[:n_results], jaxpr.jaxpr.outvars[n_results:]
    sources = [converted.get(r, r) if isinstance(r, jex_core.Var) else r for r in residuals]
    return jex_core.ClosedJaxpr(jaxpr.jaxpr.replace(outvars=[*results, *sources]), jaxpr.consts)


def _spec(aval: Aval) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _is_inexact(aval: Aval) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.inexact)
