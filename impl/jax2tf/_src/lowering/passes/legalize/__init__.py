"""What a target has not, in what it has: the equations that are lowered otherwise for it.

The target says which ones: `computes_in` has the dtypes that it computes in another, `lacks` the
ops that it does not take, `quirks` what it gets wrong. Two ways lead around a lack:

- An equation of numbers that are held in another dtype becomes a JAX function of that dtype
  (held.py, unsigned.py, short.py), an integer contraction one of products and sums
  (contractions.py), a special function one of elementary functions (special.py), a factorisation
  one of loops over columns or rotations (linalg.py), the next float one of bits (neighbours.py),
  random bits those of sums and products (generators.py), the bits of one dtype those of another
  (bitcasts.py), fewer bits those of int32 (precision.py), floats that are moved their bits
  (moved.py), bools numbers (bools.py), what has
  operands of some ranks one of others (ranks.py), a quotient of integers one of estimates
  (integers.py), control flow that carries uint32 one of int32 (boundaries.py). It is traced, and
  lowered in place as any other, so that one lack may lead to another.
- Logic of bits and shifts of int32 become arithmetic (bits.py), comparisons of large ones become
  those of differences with zero (integers.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf
from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.equation_jaxprs import jaxpr_of
from jax2tf._src.lowering.passes import keys
from jax2tf._src.lowering.passes.legalize import (
    bit_moves,
    bitcasts,
    bits,
    bools,
    boundaries,
    contractions,
    emulated_dtypes,
    int16,
    integers,
    linalg,
    nextafter,
    random_bits,
    ranks,
    reduce_precision,
    special_functions,
)
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.util import dtypes

LoweringRule = Callable[..., tf.Tensor]


def rule_of(eqn: jex_core.JaxprEqn, target: Target) -> LoweringRule | None:
    """How an equation is lowered for a target that lacks what its rule makes; None if it does not.

    The rule takes no params: they stand in the equation.
    """
    function = boundaries.function_of(eqn, target)
    if function is not None:
        return functools.partial(_traced, function, boundaries.CARRIERS)
    if keys.has_keys(eqn):
        is_moved = eqn.primitive is lax.squeeze_p and not target.takes_arrays("uint32")
        return keys.ON_DATA.function if is_moved else None
    for module in (ranks, integers, bitcasts, bit_moves, reduce_precision):
        function = module.function_of(eqn, target)
        if function is not None:
            return functools.partial(_traced, function, {})
    function = int16.function_of(eqn, target)
    if function is not None:
        return functools.partial(_traced, function, int16.CARRIERS)
    if not (target.computes_in or target.lacks):
        return None
    carriers = _carriers(eqn, target)
    if any(name != carrier for name, carrier in carriers.items()):
        function = emulated_dtypes.function_of(eqn, carriers, target)
        if function is not None:
            if int16.may_leave_the_range(eqn, target):
                function = functools.partial(emulated_dtypes.with_results_in_range, function)
            return functools.partial(_traced, function, carriers)
    for module in (bools, contractions, random_bits, special_functions, linalg, nextafter):
        function = module.function_of(eqn, target)
        if function is not None:
            return functools.partial(_traced, function, {})
    return bits.rule_of(eqn, target) or integers.rule_of(eqn, target)


def _carriers(eqn: jex_core.JaxprEqn, target: Target) -> dict[str, str]:
    """The dtypes of an equation, each with the one in which the target computes."""
    # A complex number is two numbers by now, or stays.
    carriers = {
        name: name if name.startswith("complex") else target.computes_in.get(name, name)
        for name in _dtype_names(eqn)
    }
    is_of_few = eqn.primitive in emulated_dtypes.OF_FEW_ENGINES
    if is_of_few and "float16" in carriers and target.has(Quirk.FEW_FUNCTIONS_OF_FLOAT16):
        carriers["float16"] = "float32"
    return carriers


def _dtype_names(eqn: jex_core.JaxprEqn) -> set[str]:
    avals = (v.aval for v in (*eqn.invars, *eqn.outvars))
    return {str(aval.dtype) for aval in avals if hasattr(aval, "dtype")}


def _traced(
    function: emulated_dtypes.Function, carriers: dict[str, str], ctx: Context, *operands: tf.Tensor
) -> tf.Tensor:
    """The results of a JAX function of the operands, each in the dtype that carries it."""
    eqn = ctx.eqn
    jaxpr = ctx.traced("legal", lambda: jaxpr_of(eqn, function, carriers))
    given = zip(eqn.invars, operands, strict=True)
    variables = [x for v, x in given if isinstance(v, jex_core.Var)]
    results = ctx.inline(jaxpr, *(_to_carrier(ctx, x, carriers) for x in variables))
    results = [
        _cast(ctx, x, dtypes.to_tf(aval.dtype))
        for aval, x in zip(ctx.avals_out, results, strict=True)
    ]
    return results if eqn.primitive.multiple_results else results[0]


def _to_carrier(ctx: Context, x: tf.Tensor, carriers: dict[str, str]) -> tf.Tensor:
    """The tensor in the dtype that carries it: what it was cast from, if that is the same bits."""
    carrier = tf.as_dtype(carriers.get(x.dtype.name, x.dtype.name))
    if carrier == x.dtype:
        return x
    if tf.executing_eagerly():
        return _cast(ctx, x, carrier)
    if x.op.type == "Const":
        return ops.constant(tf.get_static_value(x).astype(carrier.as_numpy_dtype))
    if x.op.type in ("Bitcast", "Cast") and carrier.size == x.dtype.size:
        (before,) = x.op.inputs
        if before.dtype == carrier:
            return before
    return _cast(ctx, x, carrier)


def _cast(ctx: Context, x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The tensor in another dtype: for integers of as many bits an op that no converter moves."""
    are_integers = x.dtype.is_integer and dtype.is_integer
    is_same_size = are_integers and x.dtype.size == dtype.size and x.dtype != dtype
    if is_same_size and ctx.has(Quirk.MOVES_CASTS):
        return ops.bitcast(x, dtype)
    return ops.cast(x, dtype)
