"""Plans the lowering of a jaxpr before there are any tensors.

A plan holds the rule and the params of each equation, the slots of values, the last use of each
value, and the name scopes of the ops.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable

import jax
import numpy as np
from jax.extend import core as jex_core

from jax2tf._src import compat
from jax2tf._src.api.errors import UnsupportedPrimitiveError
from jax2tf._src.lowering import pipeline, refusals, registry
from jax2tf._src.lowering.emit import compiled_calls
from jax2tf._src.lowering.passes import switched_off
from jax2tf._src.lowering.pipeline import Chosen
from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.jaxprs import inner_jaxprs, variables
from jax2tf._src.tracing.traits import CALLBACKS, CONTROL_FLOW
from jax2tf._src.util import dtypes
from jax2tf._src.util.identifiers import identifier
from jax2tf._src.util.lru import cached
from jax2tf._src.util.tensors import Tensor
from jax2tf._src.util.typing import Atom, Param, aval_of


@dataclasses.dataclass(slots=True)
class Constant:
    """A literal of a jaxpr. Its eager tensor is made at the first use."""

    value: np.ndarray
    tensor: Tensor | None = None


@dataclasses.dataclass(slots=True)
class Step:
    """One equation, ready to run.

    Attributes:
      eqn: the equation.
      rule: the rule's function, which gets `params` as keyword arguments.
      inputs: slot numbers or constants.
      outputs: slot numbers.
      last_uses: slots whose values no later step reads.
      scope: the name scope of its ops.
      compiled: whether only XLA can run the step. XLA compiles it in eager mode and in graphs.
      made_by: the name of the pass, or of the entry of pipeline.RULES, that chose the rule.
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
    made_by: str

    @property
    def is_idiom(self) -> bool:
        """Whether the step is an idiom for which the target has an op."""
        return self.made_by == "idioms"

    @property
    def lowered_by(self) -> str:
        """Names `made_by` and the rule's function, for example `rule: module.function`."""
        rule = self.rule
        # The first argument of a rule that traces a JAX function is this JAX function.
        while isinstance(rule, functools.partial):
            first = rule.args[0] if rule.args else None
            rule = first if callable(first) else rule.func
        name = getattr(rule, "__qualname__", type(rule).__qualname__)
        return f"{self.made_by}: {rule.__module__.removeprefix('jax2tf._src.')}.{name}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The steps of one jaxpr for one target.

    Attributes:
      n_inputs: the number of slots, the first ones, that hold constants and arguments.
      size: the number of slots.
      steps: the equations to run.
      outputs: slot numbers or constants.
      refused: the first equation whose primitive has no rule. The steps of all such equations
        raise.
    """

    n_inputs: int
    size: int
    steps: list[Step]
    outputs: list[int | Constant]
    refused: jex_core.JaxprEqn | None


_PLANS: weakref.WeakKeyDictionary[jex_core.Jaxpr, dict[Hashable, Plan]] = (
    weakref.WeakKeyDictionary()
)


def plan_of(jaxpr: jex_core.Jaxpr, target: Target) -> Plan:
    """Returns the plan of a jaxpr; it is made once for each target."""
    plans = _PLANS.setdefault(jaxpr, {})
    key = (target, switched_off())
    if key not in plans:
        plans[key] = _make_plan(jaxpr, target)
    return plans[key]


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
    block = pipeline.block_of(jaxpr, target)
    kept = set(variables(jaxpr.outvars))
    operands = [block.operands(eqn) for eqn in block.equations]
    last_use = {v: i for i, atoms in enumerate(operands) for v in variables(atoms)}
    steps, refused = [], None
    for i, eqn in enumerate(block.equations):
        chosen = pipeline.chosen(block, eqn)
        if chosen is None:
            refused = refused or eqn
            chosen = Chosen("refused", functools.partial(_refuse, eqn, target), {}, False)
        steps.append(
            Step(
                eqn=eqn,
                rule=chosen.rule,
                params=chosen.params,
                inputs=[ref(v) for v in operands[i]],
                outputs=[slot(v) for v in eqn.outvars],
                last_uses=[
                    slots[v]
                    for v in set(variables(operands[i]))
                    if last_use[v] == i and v not in kept
                ],
                scope=_scope(eqn),
                multiple_results=chosen.gives_many,
                compiled=_needs_compiler(eqn),
                made_by=chosen.made_by,
            )
        )
    return Plan(len(inputs), len(slots), steps, [ref(v) for v in jaxpr.outvars], refused)


def _needs_compiler(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation computes with a dtype that only XLA supports; a mere call does not."""
    if eqn.primitive in CALLBACKS:
        return False
    names = {_name(getattr(v.aval, "dtype", "")) for v in (*eqn.invars, *eqn.outvars)}
    if eqn.primitive in CONTROL_FLOW:
        return not names.isdisjoint(compiled_calls.COMPILED_CONTROL_FLOW_DTYPES)
    return not names.isdisjoint(compiled_calls.COMPILED_DTYPES) and not any(
        map(_is_called, inner_jaxprs(eqn))
    )


@cached
def _name(dtype: Hashable) -> str:
    return str(dtype)


def _is_called(jaxpr: jex_core.Jaxpr) -> bool:
    """Whether a jaxpr takes arrays. The jaxpr that combines a scatter's elements takes scalars."""
    return any(getattr(v.aval, "shape", ()) for v in jaxpr.invars)


def _refuse(eqn: jex_core.JaxprEqn, target: Target, *operands: Tensor) -> registry.Lowered:
    del operands
    raise no_rule(eqn, target)


def no_rule(eqn: jex_core.JaxprEqn, target: Target) -> UnsupportedPrimitiveError:
    """Returns the exception for a primitive that has no rule for the target."""
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
    """Returns the TensorFlow name scope of an equation, such as `layer/transpose_jvp/sin`."""
    return _scope_of(
        compat.jaxprs.name_stack(eqn), str(eqn.params.get("name") or eqn.primitive.name)
    )


@cached
def _scope_of(stack: str, name: str) -> str:
    parts = (identifier(part) for part in (*stack.split("/"), name))
    return "/".join(part for part in parts if part) or "op"


def as_numpy(value: object, dtype: np.dtype | None = None) -> np.ndarray:
    """Returns a constant of a jaxpr for TensorFlow: PRNG keys as their data, float0 as bool.

    Raises:
      ConversionError: the value is a tracer, not a constant.
    """
    refusals.refuse_tracer(value)
    if isinstance(value, jax.Array) and dtypes.is_key(value.dtype):
        return compat.jaxprs.data_of_keys(value)
    array = np.asarray(value, dtype)
    return np.zeros(array.shape, bool) if array.dtype == jax.dtypes.float0 else array
