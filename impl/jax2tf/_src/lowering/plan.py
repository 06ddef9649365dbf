"""What can be known of a jaxpr before any tensor is there.

Which rule lowers each equation and with which params, where values are kept, when each is last
read, and what its ops are called.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable

import jax
import numpy as np
import tensorflow as tf
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
      made_by: the name of the pass, or of the entry of pipeline.RULES, whose rule it has.
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
        """Whether it stands for an idiom, which the target has an op for."""
        return self.made_by == "idioms"

    @property
    def lowered_by(self) -> str:
        """The pass or the entry of pipeline.RULES, and the function: `rule: module.function`."""
        rule = self.rule
        # A rule that traces a JAX function has this as its first argument.
        while isinstance(rule, functools.partial):
            first = rule.args[0] if rule.args else None
            rule = first if callable(first) else rule.func
        name = getattr(rule, "__qualname__", type(rule).__qualname__)
        return f"{self.made_by}: {rule.__module__.removeprefix('jax2tf._src.')}.{name}"


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


_PLANS: weakref.WeakKeyDictionary[jex_core.Jaxpr, dict[Hashable, Plan]] = (
    weakref.WeakKeyDictionary()
)


def plan_of(jaxpr: jex_core.Jaxpr, target: Target) -> Plan:
    """The plan of a jaxpr, made once for each target."""
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
