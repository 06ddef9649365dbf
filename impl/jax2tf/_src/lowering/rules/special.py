"""Special functions: erf, lgamma, digamma, igamma, bessel, zeta, betainc ...

Most are TensorFlow's op of the same name, with JAX's values where TensorFlow's kernels, or the
algorithms of TensorFlow's XLA, differ at the edge of the domain. float16, bfloat16 and narrower
dtypes are computed in float32 and rounded once, as JAX does.

Some values at poles changed between JAX releases; comments name the versions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit import special_functions
from jax2tf._src.lowering.emit.compute_dtypes import IN_FLOAT32
from jax2tf._src.lowering.emit.elementwise import (
    Function,
    erf,
    erfc,
    in_kernel_dtype,
    in_one_shape,
    of_operands,
)
from jax2tf._src.lowering.emit.equation_jaxprs import jaxpr_of
from jax2tf._src.lowering.emit.special_functions import in_wide_dtype
from jax2tf._src.lowering.registry import register, register_table
from jax2tf._src.ops import raw
from jax2tf._src.util.tensors import Tensor

# Since JAX 0.11.0, igamma agrees with SciPy for an infinite shape parameter.
_IGAMMA_OF_INFINITY = jax.__version_info__ >= (0, 11, 0)


def _digamma(x: Tensor) -> Tensor:
    result = raw.Digamma(x=x)
    if special_functions.DIGAMMA_HAS_POLE:
        result = ops.where(ops.equal(x, 0), _scalar(-math.inf, x), result)
    return result


def _igamma(a: Tensor, x: Tensor) -> Tensor:
    # At a = 0, JAX uses its series for x < 1, which has no value there.
    return _at_igamma_limits(a, x, raw.Igamma(a=a, x=x), 0.0, 1.0, ops.equal(a, 0) & (x < 1))


def _igammac(a: Tensor, x: Tensor) -> Tensor:
    return _at_igamma_limits(a, x, raw.Igammac(a=a, x=x), 1.0, 0.0)


def _at_igamma_limits(
    a: Tensor,
    x: Tensor,
    inside: Tensor,
    lower: float,
    upper: float,
    undefined: Tensor | bool = False,
) -> Tensor:
    """`inside` for positive finite a and x, `lower` and `upper` at the limits, NaN elsewhere."""
    a_infinite, x_infinite = ops.equal(a, math.inf), ops.equal(x, math.inf)
    at_lower = ops.equal(x, 0) | a_infinite
    at_upper = ops.equal(a, 0) | x_infinite
    if not _IGAMMA_OF_INFINITY:
        at_lower &= ~x_infinite
        undefined |= a_infinite & (x >= 1) & ~x_infinite
    undefined |= ~((a >= 0) & (x >= 0)) | (at_lower & at_upper)
    result = ops.where(at_upper, _scalar(upper, x), inside)
    result = ops.where(at_lower, _scalar(lower, x), result)
    return ops.where(undefined, _scalar(math.nan, x), result)


def _igamma_grad_a(a: Tensor, x: Tensor) -> Tensor:
    finite = ops.is_finite(a) & ops.is_finite(x)
    nan = _scalar(math.nan, x)
    inside = ops.where(finite & (x >= 0), raw.IgammaGradA(a=a, x=x), nan)
    return ops.where(a > 0, ops.where(ops.equal(x, 0), _scalar(0, x), inside), nan)


def _betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """TensorFlow's op for positive finite a and b; else a step at x = 1 or x = 0."""
    step_at_one = ops.equal(a, math.inf) | ops.equal(b, 0)
    step_at_zero = ops.equal(b, math.inf) | ops.equal(a, 0)
    inside = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    result = ops.where(step_at_zero, ops.cast(x > 0, x.dtype), raw.Betainc(a=a, b=b, x=x))
    result = ops.where(step_at_one, ops.cast(x >= 1, x.dtype), result)
    return ops.where(inside & ~(step_at_one & step_at_zero), result, _scalar(math.nan, x))


def _scalar(value: float, like: Tensor) -> Tensor:
    return ops.constant(value, like.dtype)


_TABLE: dict[str, Function] = {
    "bessel_i0e": lambda x: raw.BesselI0e(x=x),
    "bessel_i1e": lambda x: raw.BesselI1e(x=x),
    "digamma": _digamma,
    "igamma": _igamma,
    "igamma_grad_a": _igamma_grad_a,
    "igammac": _igammac,
    "lgamma": lambda x: raw.Lgamma(x=x),
}

register_table(
    of_operands({name: in_kernel_dtype(rule, IN_FLOAT32) for name, rule in _TABLE.items()})
)
register("regularized_incomplete_beta")(in_one_shape(in_kernel_dtype(_betainc, IN_FLOAT32)))


def _traced(name: str) -> Function:
    """The rule of a primitive for which every target gets a JAX function."""
    of_floats = functools.partial(in_wide_dtype, getattr(special_functions, name))
    return functools.partial(_traced_or_shared, of_floats)


def _traced_or_shared(
    of_floats: Callable[..., Sequence[jax.Array]], ctx: Context, *operands: Tensor
) -> Tensor:
    def body(inner: Context, *variables: Tensor) -> list[Tensor]:
        jaxpr = ctx.traced("special", lambda: jaxpr_of(ctx.eqn, of_floats, {}))
        return inner.inline(jaxpr, *variables)

    by_variable = zip(ctx.eqn.invars, operands, strict=True)
    variables = [x for v, x in by_variable if isinstance(v, jex_core.Var)]
    if ctx.trace.counts[ctx.eqn.primitive] < 2:
        return body(ctx, *variables)[0]
    dtypes = tuple(aval.dtype for aval in ctx.avals_in)
    literals = tuple(str(v) for v in ctx.eqn.invars if isinstance(v, jex_core.Literal))
    key = (ctx.eqn.primitive.name, dtypes, literals)
    return ctx.function(key, body, *variables)[0]


for _name in ("erf_inv", "polygamma", "zeta"):
    register(_name)(_traced(_name))

# error_functions.py composes these two for targets that lack the op.
_ERRORS = {"erf": erf, "erfc": erfc}
for _name, _rule in _ERRORS.items():
    register_table(of_operands({_name: in_kernel_dtype(_rule, IN_FLOAT32)}), op=_name.capitalize())
