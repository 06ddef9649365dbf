"""Lowers primitives without a rule, from other libraries, jax.experimental or a newer JAX.

Each primitive is lowered in the first of these ways that exists:

1. by the JAX function that JAX compiles (jax.interpreters.mlir.lower_fun): the primitives of
   jax.experimental.sparse and jax.custom_batching.custom_vmap have one;
2. by the interpreter of pallas_call, if it was made with interpret=True;
3. by the primitive's own implementation, if that is a JAX function;
4. by its StableHLO in an XlaCallModule op, if the target wants XLA ops. Functions that jax.export
   made have nothing but StableHLO.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
from jax import export
from jax.extend import core as jex_core

from jax2tf._src import compat, dims, ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.registry import Lowered, Rule
from jax2tf._src.native import xla_call_module
from jax2tf._src.targets.target import FOR_XLA
from jax2tf._src.tracing.trace import Trace, trace_of
from jax2tf._src.util import dtypes
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval, Param, PyTree


def rule(eqn: jex_core.JaxprEqn) -> Rule | None:
    """Returns a rule for an equation whose primitive has none registered, or None."""
    primitive = eqn.primitive
    if _is_call_of_exported(eqn):
        return _AS_MODULE
    if _function_of(eqn) is not None:
        return _AS_FUNCTION
    if not compat.primitives.is_implemented_by_jax(primitive):
        return _AS_IMPLEMENTED
    return _AS_MODULE if compat.primitives.is_compiled_by_others(primitive) else None


def _is_call_of_exported(eqn: jex_core.JaxprEqn) -> bool:
    return isinstance(eqn.params.get("exported"), export.Exported)


def _function_of(eqn: jex_core.JaxprEqn) -> Callable[..., PyTree] | None:
    """Returns the JAX function that computes the equation, with its params bound, or None."""
    if eqn.primitive.name == "pallas_call" and compat.primitives.is_implemented_by_jax(
        eqn.primitive
    ):
        return compat.primitives.pallas_interpreter(eqn.params)
    function = compat.primitives.compiled_function(eqn.primitive)
    return None if function is None else functools.partial(function, **eqn.params)


def _as_function(ctx: Context, *operands: Tensor, **_: object) -> Lowered:
    function = _function_of(ctx.eqn)
    assert function is not None, ctx.eqn.primitive
    return _traced(ctx, function, operands)


def _as_implemented(ctx: Context, *operands: Tensor, **params: Param) -> Lowered:
    try:
        return _traced(ctx, functools.partial(ctx.eqn.primitive.impl, **params), operands)
    # The implementation needs concrete values, as NumPy does, so JAX cannot trace it.
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        if not compat.primitives.is_compiled_by_others(ctx.eqn.primitive):
            raise ctx.unsupported(
                "there is no lowering rule for it, and its own implementation is no JAX function",
                "call it through jax.pure_callback, or keep it outside the converted function",
            ) from error
    return _as_module(ctx, *operands, **params)


def _traced(ctx: Context, function: Callable[..., PyTree], operands: Sequence[Tensor]) -> Lowered:
    trace = ctx.cached(
        "foreign",
        lambda: trace_of(jax.jit(function).trace(*_specs(ctx.avals_in)), ctx.trace.simplify),
        ctx.eqn,
    )
    results = ctx.inline(trace.jaxpr, *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


def _as_module(ctx: Context, *operands: Tensor, **params: Param) -> Lowered:
    if not ctx.wants("XlaCallModule"):
        raise ctx.unsupported(
            "JAX has it as StableHLO alone, which only XLA runs",
            f"{FOR_XLA}; or, if jax.export made it, convert the function that was exported, in "
            "place of what was exported",
        )
    exported = params.get("exported")
    options = xla_call_module.Options(exported.platforms if exported is not None else None)
    dimensions = (d for aval in (*ctx.avals_in, *ctx.avals_out) for d in getattr(aval, "shape", ()))
    names = dims.variables_of(dimensions)

    def whole(*args: jax.Array) -> PyTree:
        results = ctx.eqn.primitive.bind(*args[len(names) :], **params)
        return results if ctx.eqn.primitive.multiple_results else [results]

    def trace() -> Trace:
        # The module reads dimension variables from its arguments' shapes. These come first.
        sizes = [jax.ShapeDtypeStruct((dim, 0), bool) for dim in names.values()]
        return trace_of(jax.jit(whole).trace(*sizes, *_specs(ctx.avals_in)), ctx.trace.simplify)

    sized = [ops.zeros(ctx.shape((dim, 0)), dtypes.bool_) for dim in names.values()]
    inner = ctx.cached("foreign module", trace, ctx.eqn)
    results = xla_call_module.call(inner, options, ctx, [*sized, *operands])
    return results if ctx.eqn.primitive.multiple_results else results[0]


def _specs(avals: Sequence[Aval]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


_AS_FUNCTION, _AS_IMPLEMENTED, _AS_MODULE = (
    Rule(function, frozenset(), takes_all=True, takes_keys=True)
    for function in (_as_function, _as_implemented, _as_module)
)
