"""Lists the passes of a conversion in their order, each with its reason.

A conversion runs these lists from top to bottom:

1. `ON_TRACE` rewrites a whole jaxpr once for all targets, after JAX has traced it.
2. `FOR_TARGET` and `FOR_GRAPH` rewrite a whole jaxpr for one target.
3. `ON_EQUATIONS` replaces or removes equations of one jaxpr; inner jaxprs are included.
4. `RULES`: the first entry that knows an equation lowers it. `legalize.WAYS` is such a list too.
5. `ON_TENSORS` needs tensors, so it decides while the interpreter runs.

The programs of the devices of a mesh (emit/mesh) are not a pass: jax.shard_map's rule traces them.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.lowering import foreign, registry
from jax2tf._src.lowering.passes import (
    Instead,
    Pass,
    broadcasts,
    compiled_runs,
    complex_as_real,
    constant_folding,
    empties,
    idioms,
    keys,
    known_results,
    legalize,
    masks,
    switched_off,
    value_checks,
    without,
)
from jax2tf._src.lowering.passes.dead_code import without_dead_code
from jax2tf._src.lowering.passes.repeats import with_shared_repeats
from jax2tf._src.ops import surroundings
from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing import jaxprs
from jax2tf._src.tracing.jaxprs import variables
from jax2tf._src.tracing.trace import Trace
from jax2tf._src.util.identity import Identity
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Atom, Param

# Called after each pass with the name of the pass and the new jaxpr.
Seen = Callable[[str, jex_core.ClosedJaxpr], None]
Simplify = Callable[[jex_core.ClosedJaxpr, value_checks.Choice], jex_core.ClosedJaxpr]
JaxprPass = Pass[
    Callable[[Trace, Target], bool], Callable[[jex_core.ClosedJaxpr], jex_core.ClosedJaxpr]
]

# `applies` gets `is_lowered`. JAX differentiates the jaxprs that are not lowered.
ON_TRACE: tuple[Pass[Callable[[bool], bool], Simplify], ...] = (
    Pass(
        "value checks",
        lambda is_lowered: True,
        value_checks.without_checks,
        "It is the first, so that the derivative of a program without checks has none either.",
    ),
    Pass(
        "references",
        lambda is_lowered: is_lowered,
        lambda jaxpr, _: compat.jaxprs.without_references(jaxpr),
        "It comes before dead code, which sees a write to a reference as a side effect.",
    ),
    Pass(
        "dead code",
        lambda is_lowered: is_lowered,
        lambda jaxpr, _: without_dead_code(jaxpr),
        "It is the last, because the passes before it leave equations that nothing reads.",
    ),
)


def simplified(
    jaxpr: jex_core.ClosedJaxpr,
    is_lowered: bool,
    choice: value_checks.Choice = "raise",
    seen: Seen | None = None,
) -> jex_core.ClosedJaxpr:
    """Runs the passes of `ON_TRACE` on a jaxpr.

    Args:
      jaxpr: the jaxpr that JAX traced.
      is_lowered: True if the jaxpr is lowered to ops, False if JAX differentiates it.
      choice: how callbacks that check values are treated.
      seen: called after each pass.
    """
    for each in ON_TRACE:
        if each.applies(is_lowered) and each.name not in switched_off():
            jaxpr = each.run(jaxpr, choice)
            if seen is not None:
                seen(each.name, jaxpr)
    return jaxpr


def _has_complex_to_avoid(trace: Trace, target: Target) -> bool:
    is_lacking = "complex64" in target.computes_in
    return is_lacking and complex_as_real.has_complex(trace.jaxpr.jaxpr)


def _compiles_runs(trace: Trace, target: Target) -> bool:
    is_wanted = target.wants(Optimization.COMPILED_RUNS) and target.wants("XlaLaunch")
    return is_wanted and target.placement is None and not surroundings.in_compiled_function()


FOR_TARGET: tuple[JaxprPass, ...] = (
    Pass(
        "known results",
        lambda trace, target: target.wants(Optimization.KNOWN_RESULTS),
        known_results.with_known_results,
        "It is the first, because JAX computes the program as it was written.",
    ),
    Pass(
        "complex numbers as real ones",
        _has_complex_to_avoid,
        complex_as_real.without_complex,
        "It comes before shared repeats, because it traces the program again, and would open the "
        "functions that are shared.",
    ),
)
FOR_GRAPH: tuple[JaxprPass, ...] = (
    Pass(
        "shared repeats",
        lambda trace, target: trace.shares and target.shares_repeats,
        with_shared_repeats,
        "It comes last of the passes over a whole jaxpr, so that it sees the equations that are "
        "lowered. Eager mode has no functions to share.",
    ),
    Pass(
        "compiled runs",
        _compiles_runs,
        compiled_runs.with_compiled_runs,
        "It comes after shared repeats, which would take a run apart to share a part of it.",
    ),
)


def for_target(trace: Trace, target: Target, seen: Seen | None = None) -> Trace:
    """Runs the passes of `FOR_TARGET` on a trace; calls `seen` after each."""
    for each in FOR_TARGET:
        if each.name not in switched_off() and each.applies(trace, target):
            trace = trace.cached("after pass", functools.partial(_after, each, trace), each.name)
            if seen is not None:
                seen(each.name, trace.jaxpr)
    return trace


def _after(each: JaxprPass, trace: Trace) -> Trace:
    return dataclasses.replace(trace, jaxpr=each.run(trace.jaxpr))


def for_graph(trace: Trace, target: Target, seen: Seen | None = None) -> jex_core.ClosedJaxpr:
    """Runs the passes of `FOR_GRAPH` on the jaxpr of a trace; calls `seen` after each."""
    jaxpr = trace.jaxpr
    for each in FOR_GRAPH:
        if each.name not in switched_off() and each.applies(trace, target):
            jaxpr = trace.cached("after pass", functools.partial(each.run, jaxpr), each.name)
            if seen is not None:
                seen(each.name, jaxpr)
    return jaxpr


def use_counts(trace: Trace, target: Target) -> collections.Counter[Identity]:
    """Counts the equations of `for_graph` that call each inner jaxpr, by the jaxpr's identity.

    JAX uses the same object for all calls of a jitted function on the same avals.
    """
    return trace.cached(
        "use counts",
        lambda: jaxprs.count_uses(for_graph(trace, target).jaxpr),
        trace.shares and target.shares_repeats,
        _compiles_runs(trace, target),
    )


@dataclasses.dataclass(frozen=True)
class Block:
    """The equations of one jaxpr on their way to a plan.

    Attributes:
      jaxpr: the jaxpr of the equations.
      target: the target for which the equations are lowered.
      equations: the equations that are lowered.
      instead: the replacements of some equations.
      taken_by: the names of the passes that made these replacements.
    """

    jaxpr: jex_core.Jaxpr
    target: Target
    equations: Sequence[jex_core.JaxprEqn]
    instead: Mapping[jex_core.JaxprEqn, Instead] = dataclasses.field(default_factory=dict)
    taken_by: Mapping[jex_core.JaxprEqn, str] = dataclasses.field(default_factory=dict)

    def operands(self, eqn: jex_core.JaxprEqn) -> Sequence[Atom]:
        """Returns the operands of the equation as it is lowered."""
        instead = self.instead.get(eqn)
        return eqn.invars if instead is None else instead.operands


EquationPass = Pass[Callable[[Target], bool], Callable[[Block], Block]]
Found = Mapping[jex_core.JaxprEqn, Instead]


def _taking(
    name: str,
    find: Callable[[jex_core.Jaxpr, Target], Found],
    applies: Callable[[Target], bool],
    reason: str,
) -> EquationPass:
    """Makes a pass that replaces equations which no earlier pass has replaced."""

    def run(block: Block) -> Block:
        found = find(block.jaxpr, block.target)
        if not found:
            return block
        taken_by = {**dict.fromkeys(found, name), **block.taken_by}
        return dataclasses.replace(block, instead={**found, **block.instead}, taken_by=taken_by)

    return Pass(name, applies, run, reason)


def _always(target: Target) -> bool:
    del target
    return True


def _without_unread(block: Block) -> Block:
    """Removes equations whose readers have other operands now."""
    if not block.instead:
        return block
    read = set(variables(block.jaxpr.outvars))
    equations = []
    for eqn in reversed(block.equations):
        if not eqn.effects and read.isdisjoint(eqn.outvars):
            continue
        read.update(variables(block.operands(eqn)))
        equations.append(eqn)
    return dataclasses.replace(block, equations=equations[::-1])


def _with_kept_dimensions(block: Block) -> Block:
    operands = {eqn: instead.operands for eqn, instead in block.instead.items()}
    kept = set(variables(block.jaxpr.outvars))
    equations = broadcasts.with_kept_dimensions(block.equations, operands, kept, block.target)
    return dataclasses.replace(block, equations=equations)


ON_EQUATIONS: tuple[EquationPass, ...] = (
    _taking(
        "empties",
        empties.found,
        _always,
        "It is the first, because no op of an idiom may get an array without elements.",
    ),
    _taking(
        "idioms",
        idioms.found,
        idioms.has_some,
        "It comes before masks and broadcasts, because one op stands for what these would change.",
    ),
    _taking(
        "masks",
        masks.found,
        _always,
        "It comes before broadcasts: a product with a mask is a select of whole arrays.",
    ),
    _taking(
        "broadcasts",
        broadcasts.unrepeated_operands,
        _always,
        "It is the last to take equations: it changes operands, and leaves the rule to RULES.",
    ),
    Pass(
        "unread equations",
        _always,
        _without_unread,
        "It comes after all that take operands away, and before reductions are looked at, which "
        "may have been read by an equation that is gone.",
    ),
    Pass(
        "kept dimensions",
        lambda target: target.wants(Optimization.BROADCAST_OPERANDS),
        _with_kept_dimensions,
        "It is the last, because it joins two equations if nothing else reads the first.",
    ),
)


def block_of(
    jaxpr: jex_core.Jaxpr, target: Target, seen: Callable[[str, Block], None] | None = None
) -> Block:
    """Runs the passes of `ON_EQUATIONS` on a jaxpr's equations; calls `seen` after each."""
    block = Block(jaxpr, target, jaxpr.eqns)
    for each in ON_EQUATIONS:
        if each.name not in switched_off() and each.applies(target):
            block = each.run(block)
            if seen is not None:
                seen(each.name, block)
    return block


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """The rule that lowers an equation.

    Attributes:
      made_by: the name of the pass, or of the entry of `RULES`, that chose the rule.
      rule: the function that makes the ops.
      params: the keyword arguments of `rule`.
      gives_many: whether `rule` returns a list of results.
    """

    made_by: str
    rule: Callable[..., registry.Lowered]
    params: dict[str, Param]
    gives_many: bool


# The name of the entry of `RULES`, the rule, and its keyword arguments.
Lookup = tuple[str, Callable[..., registry.Lowered], dict[str, Param]]


def _legalized(eqn: jex_core.JaxprEqn, target: Target) -> Lookup | None:
    found = legalize.found(eqn, target)
    return None if found is None else (f"legalize: {found[0]}", found[1], {})


def _of_data(eqn: jex_core.JaxprEqn, target: Target) -> Lookup | None:
    if not keys.has_keys(eqn):
        return None
    rule = _registered(eqn, target)
    if rule is None or rule.takes_keys:
        return None
    return "keys", keys.ON_DATA.function, registry.select_params(keys.ON_DATA, eqn)


def _by_rule(eqn: jex_core.JaxprEqn, target: Target) -> Lookup | None:
    rule = _registered(eqn, target)
    return None if rule is None else ("rule", rule.function, registry.select_params(rule, eqn))


def _by_foreign_rule(eqn: jex_core.JaxprEqn, target: Target) -> Lookup | None:
    del target
    rule = foreign.rule(eqn)
    return None if rule is None else ("foreign", rule.function, registry.select_params(rule, eqn))


def _registered(eqn: jex_core.JaxprEqn, target: Target) -> registry.Rule | None:
    # The dtype matters only if there are several rules. Its name is slower than the lookup.
    has_choice = eqn.invars and registry.ops_of(eqn.primitive)
    dtype = str(getattr(eqn.invars[0].aval, "dtype", "")) if has_choice else None
    return registry.find(eqn.primitive, target, dtype)


# `run` returns None for an equation that it does not know.
RULES: tuple[
    Pass[Callable[[Target], bool], Callable[[jex_core.JaxprEqn, Target], Lookup | None]], ...
] = (
    Pass(
        "legalize",
        _always,
        _legalized,
        "It is the first: what the target lacks, or gets wrong, is what the rule would make.",
    ),
    Pass(
        "keys",
        _always,
        _of_data,
        "It comes before the rules, most of which know nothing of PRNG keys.",
    ),
    Pass("rule", _always, _by_rule, "A rule is what nearly all equations have."),
    Pass(
        "foreign",
        _always,
        _by_foreign_rule,
        "It is the last: the implementation of a primitive serves only where nobody wrote a rule.",
    ),
)


def chosen(block: Block, eqn: jex_core.JaxprEqn) -> Chosen | None:
    """Returns the rule that lowers an equation of a block, or None."""
    gives_many = eqn.primitive.multiple_results
    instead = block.instead.get(eqn)
    if instead is not None and instead.rule is not None:
        if instead.gives_many is not None:
            gives_many = instead.gives_many
        return Chosen(block.taken_by[eqn], instead.rule, instead.params, gives_many)
    off = switched_off()
    for each in RULES:
        found = None if each.name in off else each.run(eqn, block.target)
        if found is not None:
            return Chosen(*found, gives_many)
    return None


ON_TENSORS: tuple[
    Pass[
        Callable[[Target], bool],
        Callable[[jex_core.JaxprEqn, Sequence[Tensor], Target], Sequence[np.ndarray] | None],
    ],
    ...,
] = (
    Pass(
        "constant folding",
        lambda target: target.has(Quirk.NO_FOLDING),
        constant_folding.folded,
        "It needs the operands as tensors, because only these tell which of them are constants.",
    ),
)


def on_tensors(
    eqn: jex_core.JaxprEqn, operands: Sequence[Tensor], target: Target
) -> Sequence[np.ndarray] | None:
    """Returns the results that a pass of `ON_TENSORS` computes for an equation, or None."""
    for each in ON_TENSORS:
        if each.applies(target) and each.name not in switched_off():
            values = each.run(eqn, operands, target)
            if values is not None:
                return values
    return None


def names() -> list[str]:
    """Returns the names of all passes, in their order."""
    lists = (ON_TRACE, FOR_TARGET, FOR_GRAPH, ON_EQUATIONS, RULES, legalize.WAYS, ON_TENSORS)
    return [each.name for passes in lists for each in passes]


@contextlib.contextmanager
def without_pass(name: str) -> Iterator[None]:
    """Switches the pass with this name off, for tests."""
    if name not in names():
        raise ValueError(f"there is no pass {name!r}; there are {', '.join(names())}")
    with without(name):
        yield
