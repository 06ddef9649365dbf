"""Lowers equations that a target lacks, or computes wrongly, by other equations or ops.

The target says which equations: `computes_in` lists dtypes that it computes in another dtype,
`lacks` the ops that it does not take, and `quirks` its errors. Most of these equations become a JAX
function of the operands. It is traced and lowered in place, and may be legalized again. `WAYS`
lists the ways in their order.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType

from jax import lax
from jax.extend import core as jex_core

from jax2tf._src import ops
from jax2tf._src.lowering.context import Context
from jax2tf._src.lowering.emit.equation_jaxprs import jaxpr_of
from jax2tf._src.lowering.passes import keys, switched_off
from jax2tf._src.lowering.passes.legalize import (
    bit_counts,
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
from jax2tf._src.lowering.registry import Lowered
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.util import dtypes
from jax2tf._src.util.dtypes import DType
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor

LoweringRule = Callable[..., Lowered]
RuleOf = Callable[[jex_core.JaxprEqn, Target], LoweringRule | None]


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to lower equations that a target lacks.

    Attributes:
      applies: says whether a target may need this way.
      rule_of: returns the rule of an equation, or None. The rule takes no params, since it can read
        them from the equation.
      reason: why the way has this place in the list.
      takes_keys: whether the way handles equations with PRNG keys.
    """

    name: str
    applies: Callable[[Target], bool]
    rule_of: RuleOf
    reason: str
    takes_keys: bool = False


def _always(target: Target) -> bool:
    del target
    return True


def _lacks_ops_or_dtypes(target: Target) -> bool:
    return bool(target.computes_in or target.lacks)


def _by(
    function_of: Callable[[jex_core.JaxprEqn, Target], emulated_dtypes.Function | None],
    carriers: Mapping[str, str] = MappingProxyType({}),
) -> RuleOf:
    """Returns a `RuleOf` that traces the JAX function of an equation; see `_traced`."""

    def rule_of(eqn: jex_core.JaxprEqn, target: Target) -> LoweringRule | None:
        function = function_of(eqn, target)
        return None if function is None else functools.partial(_traced, function, carriers)

    return rule_of


def _squeezed_keys(eqn: jex_core.JaxprEqn, target: Target) -> LoweringRule | None:
    is_moved = eqn.primitive is lax.squeeze_p and not target.takes_arrays("uint32")
    return keys.ON_DATA.function if is_moved and keys.has_keys(eqn) else None


def _emulated(eqn: jex_core.JaxprEqn, target: Target) -> LoweringRule | None:
    carriers = _carriers(eqn, target)
    if all(name == carrier for name, carrier in carriers.items()):
        return None
    function = emulated_dtypes.function_of(eqn, carriers, target)
    if function is None:
        return None
    if int16.may_leave_the_range(eqn, target):
        function = functools.partial(emulated_dtypes.with_results_in_range, function)
    return functools.partial(_traced, function, carriers)


_ANYWHERE = "No other way takes its equations, so that it may stand anywhere."
WAYS = (
    Way(
        "boundaries",
        _always,
        _by(boundaries.function_of, boundaries.CARRIERS),
        _ANYWHERE,
        takes_keys=True,
    ),
    Way("squeezed keys", _always, _squeezed_keys, _ANYWHERE, takes_keys=True),
    Way("ranks", _always, _by(ranks.function_of), _ANYWHERE),
    Way(
        "integers",
        _always,
        _by(integers.function_of),
        "It comes before emulated dtypes, whose division and clamp of uint32 need exact int32.",
    ),
    Way("bitcasts", _always, _by(bitcasts.function_of), _ANYWHERE),
    Way(
        "moves of bits",
        _always,
        _by(bit_moves.function_of),
        "It comes before emulated dtypes, which would cast the floats that are only moved.",
        takes_keys=True,
    ),
    Way("reduce_precision", _always, _by(reduce_precision.function_of), _ANYWHERE),
    Way("int16", _always, _by(int16.function_of, int16.CARRIERS), _ANYWHERE),
    Way(
        "emulated dtypes",
        _lacks_ops_or_dtypes,
        _emulated,
        "It comes after integers and moves of bits, which have other forms of its equations.",
    ),
    Way("bools", _lacks_ops_or_dtypes, _by(bools.function_of), _ANYWHERE),
    Way("contractions", _lacks_ops_or_dtypes, _by(contractions.function_of), _ANYWHERE),
    Way("random bits", _lacks_ops_or_dtypes, _by(random_bits.function_of), _ANYWHERE),
    Way("special functions", _lacks_ops_or_dtypes, _by(special_functions.function_of), _ANYWHERE),
    Way("linear algebra", _lacks_ops_or_dtypes, _by(linalg.function_of), _ANYWHERE),
    Way("nextafter", _lacks_ops_or_dtypes, _by(nextafter.function_of), _ANYWHERE),
    Way("counts of bits", _lacks_ops_or_dtypes, _by(bit_counts.function_of), _ANYWHERE),
    Way("bits", _lacks_ops_or_dtypes, bits.rule_of, _ANYWHERE),
    Way("comparisons", _lacks_ops_or_dtypes, integers.rule_of, _ANYWHERE),
)


def found(eqn: jex_core.JaxprEqn, target: Target) -> tuple[str, LoweringRule] | None:
    """Returns the name and the rule of the first way that lowers the equation, or None."""
    is_of_keys = keys.has_keys(eqn)
    for way in _ways(target, switched_off()):
        if way.takes_keys or not is_of_keys:
            rule = way.rule_of(eqn, target)
            if rule is not None:
                return way.name, rule
    return None


@cached
def _ways(target: Target, off: frozenset[str]) -> tuple[Way, ...]:
    return tuple(way for way in WAYS if way.applies(target) and way.name not in off)


def _carriers(eqn: jex_core.JaxprEqn, target: Target) -> dict[str, str]:
    """Maps each dtype of an equation to the dtype in which the target computes it."""
    # An earlier pass has split complex numbers into pairs; those that are left stay complex.
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
    function: emulated_dtypes.Function,
    carriers: Mapping[str, str],
    ctx: Context,
    *operands: Tensor,
) -> Lowered:
    """Traces and lowers a JAX function of the operands, each of which has its carrier dtype."""
    eqn = ctx.eqn
    jaxpr = ctx.traced("legalized", lambda: jaxpr_of(eqn, function, carriers))
    given = zip(eqn.invars, operands, strict=True)
    variables = [x for v, x in given if isinstance(v, jex_core.Var)]
    results = ctx.inline(jaxpr, *(_to_carrier(ctx, x, carriers) for x in variables))
    results = [
        _cast(ctx, x, dtypes.to_tf(aval.dtype))
        for aval, x in zip(ctx.avals_out, results, strict=True)
    ]
    return results if eqn.primitive.multiple_results else results[0]


def _to_carrier(ctx: Context, x: Tensor, carriers: Mapping[str, str]) -> Tensor:
    """Casts `x` to its carrier dtype, or returns the tensor of that dtype from which x was cast."""
    carrier = dtypes.DTYPES[carriers.get(x.dtype.name, x.dtype.name)]
    if carrier == x.dtype:
        return x
    if ops.executing_eagerly():
        return _cast(ctx, x, carrier)
    if x.op.type == "Const":
        return ops.constant(ops.get_static_value(x).astype(carrier.as_numpy_dtype))
    if x.op.type in ("Bitcast", "Cast") and carrier.size == x.dtype.size:
        (before,) = x.op.inputs
        if before.dtype == carrier:
            return before
    return _cast(ctx, x, carrier)


def _cast(ctx: Context, x: Tensor, dtype: DType) -> Tensor:
    """Casts `x`. If the converter moves Casts, integers of the same size are cast by Bitcast."""
    are_integers = x.dtype.is_integer and dtype.is_integer
    is_same_size = are_integers and x.dtype.size == dtype.size and x.dtype != dtype
    if is_same_size and ctx.has(Quirk.MOVES_CASTS):
        return ops.bitcast(x, dtype)
    return ops.cast(x, dtype)
