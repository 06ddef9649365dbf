"""What can be known of a jaxpr before any tensor is there.

Which rule lowers each equation and with which params, where values are kept, when each is last
read, and what its ops are called.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence

import jax
import numpy as np
import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import foreign, refusals, registry
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.passes import broadcasts, empties, idioms, keys, legalize, masks
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import inner_jaxprs
from jax2tf._src.tracing.traits import CALLBACKS, CONTROL_FLOW
from jax2tf._src.util import dtypes
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.typing import Atom, Param, aval_of


@dataclasses.dataclass(slots=True)
class Constant:
    """A literal of a jaxpr, with its eager tensor once that was needed."""

    value: np.ndarray
    tensor: tf.Tensor | None = None


@dataclasses.dataclass(slots=True)
class Step:
    """One equation, ready to run.

    Attributes:
      eqn: the equation.
      rule: the rule's function, and `params` what it gets by keyword.
      inputs: slot numbers or constants.
      outputs: slot numbers.
      last_uses: slots that hold a value which no later step reads.
      scope: the name scope of its ops.
      compiled: whether only XLA can run it, so that eager mode and graphs have it compile the step.
      is_idiom: whether it stands for an idiom, which the target has an op for.
    """

    eqn: jex_core.JaxprEqn
    rule: Callable[..., registry.Lowered]
    params: dict[str, Param]
    inputs: list[int | Constant]
    outputs: list[int]
    last_uses: list[int]
    scope: str
    multiple_results: bool
    compiled: bool
    is_idiom: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    """A jaxpr for one target, ready to run.

    Attributes:
      n_inputs: how many of the first slots hold constants and arguments.
      size: how many slots there are.
      steps: the equations to run.
      outputs: slot numbers or constants.
      refused: the first equation whose primitive has no rule; its step raises, and so do those of
        others.
    """

    n_inputs: int
    size: int
    steps: list[Step]
    outputs: list[int | Constant]
    refused: jex_core.JaxprEqn | None


_PLANS: weakref.WeakKeyDictionary[jex_core.Jaxpr, dict[Target, Plan]] = weakref.WeakKeyDictionary()


def plan_of(jaxpr: jex_core.Jaxpr, target: Target) -> Plan:
    """The plan of a jaxpr, made once for each target."""
    plans = _PLANS.setdefault(jaxpr, {})
    if target not in plans:
        plans[target] = _make_plan(jaxpr, target)
    return plans[target]


def _make_plan(jaxpr: jex_core.Jaxpr, target: Target) -> Plan:
    slots: dict[jex_core.Var, int] = {}

    def slot(var: jex_core.Var) -> int:
        return slots.setdefault(var, len(slots))

    def ref(atom: Atom) -> int | Constant:
        if isinstance(atom, jex_core.Literal):
            aval = aval_of(atom)
            return Constant(as_numpy(atom.val, aval.dtype))
        return slots[atom]

    inputs = [slot(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
    converted = masks.conversions(jaxpr)
    masked = masks.products(jaxpr, converted)
    empty = {e for e in jaxpr.eqns if empties.are_all_results(e)}
    places = {e: place for e, place in idioms.found(jaxpr, target).items() if e not in empty}
    replaced = {
        **broadcasts.unrepeated_operands(jaxpr, target),
        **masked,
        **{eqn: place.operands for eqn, place in places.items()},
        **dict.fromkeys(empty, ()),
    }
    kept = set(_variables(jaxpr.outvars))
    equations = broadcasts.with_kept_dimensions(
        _read_equations(jaxpr, replaced, kept), replaced, kept, target
    )
    operands = [replaced.get(eqn, eqn.invars) for eqn in equations]
    last_use = {v: i for i, atoms in enumerate(operands) for v in _variables(atoms)}
    steps, refused = [], None
    for i, eqn in enumerate(equations):
        found = _rule_and_params(eqn, target, empty, places, masked)
        if found is None:
            refused = refused or eqn
        rule, params = found or (functools.partial(_refuse, eqn, target), {})
        steps.append(
            Step(
                eqn=eqn,
                rule=rule,
                params=params,
                inputs=[ref(v) for v in operands[i]],
                outputs=[slot(v) for v in eqn.outvars],
                last_uses=[
                    slots[v]
                    for v in set(_variables(operands[i]))
                    if last_use[v] == i and v not in kept
                ],
                scope=_scope(eqn),
                multiple_results=(
                    places[eqn].gives_many if eqn in places else eqn.primitive.multiple_results
                ),
                is_idiom=eqn in places,
                compiled=_needs_compiler(eqn),
            )
        )
    return Plan(len(inputs), len(slots), steps, [ref(v) for v in jaxpr.outvars], refused)


def _read_equations(
    jaxpr: jex_core.Jaxpr,
    replaced: Mapping[jex_core.JaxprEqn, Sequence[Atom]],
    kept: set[jex_core.Var],
) -> list[jex_core.JaxprEqn]:
    """The equations without those that nothing reads once others have the operands `replaced`."""
    if not replaced:
        return jaxpr.eqns
    read = set(kept)
    equations = []
    for eqn in reversed(jaxpr.eqns):
        if not eqn.effects and read.isdisjoint(eqn.outvars):
            continue
        read.update(_variables(replaced.get(eqn, eqn.invars)))
        equations.append(eqn)
    return equations[::-1]


def _rule_and_params(
    eqn: jex_core.JaxprEqn,
    target: Target,
    empty: Container[jex_core.JaxprEqn],
    places: Mapping[jex_core.JaxprEqn, idioms.Place],
    masked: masks.Products,
) -> tuple[Callable[..., registry.Lowered], dict[str, Param]] | None:
    if eqn in empty:
        return empties.nothing, {}
    if eqn in places:
        return places[eqn].rule, places[eqn].params
    if eqn in masked:
        return masks.select, {}
    instead = legalize.rule_of(eqn, target)
    if instead is not None:
        return instead, {}
    # A dtype decides between rules alone; its name takes longer than to find the one that there is.
    has_choice = eqn.invars and registry.ops_of(eqn.primitive)
    dtype = str(getattr(eqn.invars[0].aval, "dtype", "")) if has_choice else None
    rule = registry.find(eqn.primitive, target, dtype) or foreign.rule(eqn)
    if rule is None:
        return None
    if not rule.takes_keys and keys.has_keys(eqn):
        rule = keys.ON_DATA
    return rule.function, registry.select_params(rule, eqn)


def _variables(atoms: Sequence[Atom]) -> Iterator[jex_core.Var]:
    return (a for a in atoms if not isinstance(a, jex_core.Literal))


def _needs_compiler(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation has a dtype that only XLA knows, and does not just call a jaxpr."""
    if eqn.primitive in CALLBACKS:
        return False
    names = {_name(getattr(v.aval, "dtype", "")) for v in (*eqn.invars, *eqn.outvars)}
    if eqn.primitive in CONTROL_FLOW:
        return not names.isdisjoint(compiled_calls.COMPILED_CONTROL_FLOW_DTYPES)
    return not names.isdisjoint(compiled_calls.COMPILED_DTYPES) and not any(
        map(_is_called, inner_jaxprs(eqn))
    )


@functools.cache
def _name(dtype: Hashable) -> str:
    return str(dtype)


def _is_called(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether a jaxpr takes arrays; that by which a scatter combines elements takes scalars."""
    return any(getattr(v.aval, "shape", ()) for v in jaxpr.invars)


def _refuse(eqn: jex_core.JaxprEqn, target: Target, *operands: tf.Tensor) -> registry.Lowered:
    del operands
    raise no_rule(eqn, target)


def no_rule(eqn: jex_core.JaxprEqn, target: Target) -> UnsupportedPrimitiveError:
    """The exception for a primitive that has no rule for the target."""
    name = eqn.primitive.name
    ops = registry.ops_of(eqn.primitive)
    if ops:
        reason = f"it is lowered to {' or '.join(ops)}, which the target {target.name!r} lacks"
        remedy = "convert for another target, or write that part with other functions"
    elif name in registry.primitives(target):
        reason = (
            "it is no primitive of JAX's, although it has the name of one, and it has no "
            "implementation in JAX functions (Primitive.def_impl) to be lowered instead"
        )
        remedy = "give it one, or keep it outside the converted function"
    else:
        return refusals.refusal(eqn)
    return refusals.unsupported(eqn, reason, remedy)


def _scope(eqn: jex_core.JaxprEqn) -> str:
    """A TensorFlow name scope that reads like the JAX program: `layer/transpose_jvp/sin`."""
    return _scope_of(
        compat.jaxprs.name_stack(eqn), str(eqn.params.get("name") or eqn.primitive.name)
    )


@functools.lru_cache(maxsize=4096)
def _scope_of(stack: str, name: str) -> str:
    parts = (identifier(part) for part in (*stack.split("/"), name))
    return "/".join(part for part in parts if part) or "op"


def as_numpy(value: object, dtype: np.dtype | None = None) -> np.ndarray:
    """A constant of a jaxpr as TensorFlow takes it: PRNG keys as their data, float0 as bool.

    Raises:
      ConversionError: it is a value that JAX traces, and no constant.
    """
    refusals.refuse_tracer(value)
    if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
        return compat.jaxprs.data_of_keys(value)
    array = np.asarray(value, dtype)
    return np.zeros(array.shape, bool) if array.dtype == jax.dtypes.float0 else array
