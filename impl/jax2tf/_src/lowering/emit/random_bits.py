"""Random draws that XLA compiles, in graphs and in eager mode (optimisation "compiled_draws").

TensorFlow runs the generator of one draw as over a hundred ops, each of which goes through memory.
XLA fuses it into one loop, together with the ops that turn its bits into normal or other numbers.
"""

from __future__ import annotations

import math

from jax.extend import core as jex_core

from jax2tf._src import dims
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.emit.compute_dtypes import INT4
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.tracing import traits
from jax2tf._src.tracing.jaxprs import equations
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util import dtypes
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Aval

# Enough for the raw data of a key, or the bounds of a distribution.
_FEW_NUMBERS = 4

# The primitives of draws apart from calls: XLA fuses all of them except sorts.
_FUSED = traits.DRAWS | frozenset(
    {
        *named("random_wrap", "random_unwrap", "random_clone", "iota", "stop_gradient", "copy"),
        *named("broadcast_in_dim", "reshape", "slice", "squeeze", "concatenate", "transpose"),
        *named("stack", "unstack", "bitcast_convert_type", "convert_element_type"),
        *named("add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max", "min", "clamp"),
        *named("and", "or", "xor", "not", "shift_left", "shift_right_logical", "select_n"),
        *named("shift_right_arithmetic", "eq", "ne", "lt", "le", "gt", "ge", "nextafter", "floor"),
        *named("exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "pow"),
        *named("integer_pow", "square", "erf", "erf_inv", "logistic", "is_finite", "complex"),
        *named("reduce_sum", "reduce_max", "argmax", "cumsum", "sort"),
    }
)

# TensorFlow cannot hand these to compiled code as they are.
_NOT_HANDED_OVER = compiled_calls.COMPILED_DTYPES | {dtype.name for dtype in INT4}


def compiled(ctx: Context, jaxpr: jex_core.ClosedJaxpr, *args: Tensor) -> list[Tensor] | None:
    """The results of an equation that calls a jaxpr, compiled if it is a draw; else None.

    Like the functions of jax.random, a draw takes keys and a few numbers.
    """
    if not is_compiled(ctx) or not all(map(_is_small, ctx.avals_in)):
        return None
    if not ctx.cached("is a draw", lambda: _is_draw(jaxpr), Identity(jaxpr.jaxpr)):
        return None
    return compiled_calls.call(ctx, jaxpr, args, ctx.eqn.params["name"])


def is_compiled(ctx: Context) -> bool:
    """Whether XLA compiles an equation that draws random bits or calls a draw.

    XLA compiles again for each shape, so all shapes have to be static.
    """
    if (
        not (ctx.wants(Optimization.COMPILED_DRAWS) and ctx.wants("XlaLaunch"))
        or surroundings.in_compiled_function()
    ):
        return False
    avals = (*ctx.avals_in, *ctx.avals_out)
    return all(dims.is_static(dtypes.physical_shape(aval)) for aval in avals)


def _is_small(aval: Aval) -> bool:
    return dtypes.is_key(aval.dtype) or math.prod(aval.shape) <= _FEW_NUMBERS


def _is_draw(jaxpr: jex_core.ClosedJaxpr) -> bool:
    if jaxpr.consts or any(str(aval.dtype) in _NOT_HANDED_OVER for aval in jaxpr.out_avals):
        return False
    primitives = {eqn.primitive for eqn in equations(jaxpr.jaxpr)} - traits.CALLS
    return primitives <= _FUSED and not primitives.isdisjoint(traits.DRAWS)
