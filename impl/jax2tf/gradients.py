"""tf.custom_gradient around a lowered function: the gradient is JAX's vjp.

The vjp is traced and lowered only when TensorFlow asks for it, by the same way as the function
itself, so that JAX's custom rules hold and the gradient differentiates in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf import compat
from jax2tf.trace import Trace, trace_of

LowerTrace = Callable[[Trace, Sequence[tf.Tensor]], list[tf.Tensor]]


def differentiable(
    trace: Trace, lower: LowerTrace, args: Sequence[tf.Tensor], with_gradient: bool, name: str
) -> list[tf.Tensor]:
    """The results of `trace` on `args`, with JAX's vjp as their gradient.

    Args:
      trace: what to run.
      lower: lowers a trace on tensors.
      args: one tensor for each argument of the trace.
      with_gradient: False makes TensorFlow raise a LookupError when it is asked to differentiate.
      name: the function's name, for the error.
    """
    if tf.executing_eagerly() and not compat.tape_may_record(list(args)):
        return lower(trace, args)
    if not with_gradient:
        message = f"the gradient of {name} was switched off by with_gradient=False"
        return [
            tf.raw_ops.PreventGradient(input=result, message=message)
            for result in lower(trace, args)
        ]

    @tf.custom_gradient
    def with_vjp(*tensors: tf.Tensor) -> Any:
        def vjp(*cotangents: tf.Tensor) -> list[tf.Tensor | None]:
            return _vjp(trace, lower, tensors, cotangents, name)

        return lower(trace, tensors), vjp

    return list(with_vjp(*args))


def _vjp(
    trace: Trace,
    lower: LowerTrace,
    args: Sequence[tf.Tensor],
    cotangents: Sequence[tf.Tensor],
    name: str,
) -> list[tf.Tensor | None]:
    outputs = [i for i, aval in enumerate(trace.jaxpr.out_avals) if _is_inexact(aval)]
    inputs = [i for i, aval in enumerate(trace.jaxpr.in_avals) if _is_inexact(aval)]
    gradients: list[tf.Tensor | None] = [None] * len(args)
    if not (outputs and inputs):
        return gradients
    vjp_trace = trace.cached("vjp", lambda: _trace_vjp(trace, inputs, outputs))
    # TensorFlow's gradient of a complex value is the conjugate of JAX's.
    operands = [*args, *(_conjugate(cotangents[i]) for i in outputs)]
    results = differentiable(vjp_trace, lower, operands, True, f"the gradient of {name}")
    for i, result in zip(inputs, results, strict=True):
        gradients[i] = _conjugate(result)
    return gradients


def _trace_vjp(trace: Trace, inputs: list[int], outputs: list[int]) -> Trace:
    function = jex_core.jaxpr_as_fun(trace.differentiable_jaxpr)
    n_args = len(trace.jaxpr.in_avals)

    def vjp(*operands: jax.Array) -> tuple[jax.Array, ...]:
        args, cotangents = list(operands[:n_args]), operands[n_args:]

        def of_inexact(*inexact: jax.Array) -> list[jax.Array]:
            for i, value in zip(inputs, inexact, strict=True):
                args[i] = value
            results = function(*args)
            return [results[i] for i in outputs]

        _, pullback = jax.vjp(of_inexact, *(args[i] for i in inputs))
        return pullback(list(cotangents))

    avals = [*trace.jaxpr.in_avals, *(trace.jaxpr.out_avals[i] for i in outputs)]
    specs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    return trace_of(jax.jit(vjp).trace(*specs))


def _is_inexact(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.inexact)


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor
