"""Finds the gradients that JAX has of a function that it cannot differentiate as a whole.

JAX refuses `jax.vjp` of all arguments if it has no derivative with respect to one of them, such as
one that a `while_loop` carries. `jax.grad` of another argument may still exist.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

import jax
import jax.numpy as jnp

from jax2tf._src import compat
from jax2tf._src.gradients.vjp import Vjp
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util.typing import Array

# JAX raises these when it cannot differentiate a function.
REFUSALS = (ValueError, NotImplementedError, compat.jaxprs.ClosedOverError)

# The most pairs of an argument and a result that are tested one by one. Each test takes a trace.
_MAX_PAIRS = 256


@dataclasses.dataclass(frozen=True)
class Differentiability:
    """The gradients that JAX has of a trace, and those that it refuses.

    Attributes:
      whole: a trace from arguments and cotangents to a gradient for each inexact argument. A
        gradient that JAX refuses is NaN if a cotangent that it depends on is not zero.
      refused: for each argument without a gradient, the results for which JAX refuses it.
      error: the error of JAX for one of them; None if nothing is refused.
    """

    whole: Trace
    refused: dict[int, frozenset[int]]
    error: Exception | None = None


def differentiability(vjp: Vjp, trace: Trace) -> Differentiability:
    """Finds the gradients of a trace with respect to all its inexact arguments."""
    try:
        return Differentiability(vjp.trace_whole(), {})
    except REFUSALS as error:
        refused = _refused_gradients(vjp, trace)
        if not refused:  # JAX has each single gradient, but not all of them together
            raise
        parts = _existing_vjps(vjp, trace, refused)

        def whole(args: list[Array], cotangents: list[Array]) -> list[Array]:
            return _gradients(vjp, parts, refused, args, cotangents)

        return Differentiability(vjp.trace_of_gradients(whole), refused, error)


def _refused_gradients(vjp: Vjp, trace: Trace) -> dict[int, frozenset[int]]:
    """For each argument without a gradient, the results for which JAX refuses it."""

    def is_refused(inputs: Sequence[int], outputs: Sequence[int]) -> bool:
        try:
            Vjp(trace, inputs, outputs).trace_whole()
        except REFUSALS:
            return True
        return False

    inputs = _failing(vjp.inputs, lambda some: is_refused(some, vjp.outputs))
    outputs = _failing(vjp.outputs, lambda some: is_refused(inputs, some))
    if len(inputs) * len(outputs) > _MAX_PAIRS:
        return dict.fromkeys(inputs, frozenset(outputs))
    return {i: frozenset(_failing(outputs, functools.partial(is_refused, [i]))) for i in inputs}


def _failing(candidates: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """The candidates that fail, by bisection: a group fails if one of its members does."""
    if not candidates or not fails(candidates):
        return []
    if len(candidates) == 1:
        return list(candidates)
    middle = len(candidates) // 2
    return [*_failing(candidates[:middle], fails), *_failing(candidates[middle:], fails)]


def _existing_vjps(vjp: Vjp, trace: Trace, refused: Mapping[int, Collection[int]]) -> list[Vjp]:
    """The vjps that JAX has, one for each group of results with the same arguments."""
    results: dict[tuple[int, ...], list[int]] = {}
    for o in vjp.outputs:
        inputs = tuple(i for i in vjp.inputs if o not in refused.get(i, ()))
        results.setdefault(inputs, []).append(o)
    return [Vjp(trace, inputs, outputs) for inputs, outputs in results.items() if inputs]


def _gradients(
    vjp: Vjp,
    parts: Sequence[Vjp],
    refused: Mapping[int, Collection[int]],
    args: Sequence[Array],
    cotangents: Sequence[Array],
) -> list[Array]:
    of_result = dict(zip(vjp.outputs, cotangents, strict=True))
    gradients: dict[int, Array] = {i: jnp.zeros_like(args[i]) for i in vjp.inputs}
    for part in parts:
        of_part = part.pulled_back(args, [of_result[o] for o in part.outputs])
        for i, gradient in zip(part.inputs, of_part, strict=True):
            gradients[i] = gradients[i] + gradient
    operands: list[Array] = [*(args[i] for i in vjp.inputs), *cotangents]
    for i, outputs in refused.items():
        is_used = jnp.stack([jnp.any(of_result[o] != 0) for o in sorted(outputs)]).any()
        gradients[i] = gradients[i] + _nan_if(is_used, jnp.zeros_like(args[i]), operands)
    return [gradients[i] for i in vjp.inputs]


@jax.custom_vjp
def _nan_if(which: Array, zeros: Array, operands: Sequence[Array]) -> Array:
    """NaN or zeros, without a derivative with respect to the operands."""
    del operands
    nan = complex(math.nan, math.nan) if jnp.iscomplexobj(zeros) else math.nan
    return jnp.where(which, jnp.asarray(nan, zeros.dtype), zeros)


def _nan_forward(which: Array, zeros: Array, operands: Sequence[Array]) -> tuple[Array, None]:
    return _nan_if(which, zeros, operands), None


def _nan_backward(residuals: None, cotangent: Array) -> NoReturn:
    raise NotImplementedError("a gradient that JAX does not have has no derivative either")


_nan_if.defvjp(_nan_forward, _nan_backward)
