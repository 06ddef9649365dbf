"""Registers lowering rules: one for a primitive, or one for each op that it may be lowered to.

    @register("sin")
    def _sin(ctx, x):
        return ops.sin(x)

Operands are positional tensors; the primitive's params are keyword-only, so that the signature says
what the rule reads. A rule is found in this order:

1. the rule registered for the primitive and an op (`op="XlaSort"`), if the target takes that op;
2. otherwise, the rule registered for the primitive without an op;
3. otherwise, for a primitive of another library, its own implementation (_src/lowering/foreign.py);
4. otherwise the conversion fails with an error that names the primitive and the user's source line.

A name stands for JAX's primitive only, even if another library has a primitive of the same name.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from jax.extend import core as jex_core

from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Param

# A rule returns one tensor, or as many as its primitive has results. Who calls it knows which.
Lowered: TypeAlias = Any

# These params never change the values of a result on one device. Rules may leave them out.
IGNORED_PARAMS = frozenset(
    {
        "accuracy",  # a hint to XLA: which polynomial; results stay within the op's own error
        "sharding",
        "out_sharding",
        "weak_type",  # a flag of JAX's types; TensorFlow has only the dtype
        "name",
        "memory_space",  # a memory of an accelerator; TensorFlow places tensors itself
        "branches_platforms",  # the platform of each branch; platform_index has chosen one
    }
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A lowering rule and the params that its signature names.

    Attributes:
      function: called as `function(ctx, *operands, **params)`.
      params: the names of the params in the signature.
      takes_all: whether the signature has `**params`.
      takes_keys: whether the rule handles the data of typed PRNG keys, whose own dimensions follow
        the logical ones. All other rules get data without keys: passes/keys.py wraps them.
    """

    function: Callable[..., Lowered]
    params: frozenset[str]
    takes_all: bool
    takes_keys: bool = False

    @property
    def where(self) -> str:
        """The name of the function in messages, as `module.function`."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


# The rules of each primitive, by the op that they need. The key "" holds a rule that needs no op.
_RULES: dict[jex_core.Primitive, dict[str, Rule]] = {}


def register(
    *primitives: str | jex_core.Primitive,
    op: str = "",
    takes_keys: bool = False,
) -> Callable[[Callable[..., Lowered]], Callable[..., Lowered]]:
    """Registers the decorated function as the rule of `primitives`.

    Args:
      *primitives: names of JAX's primitives, or primitives themselves.
      op: a TensorFlow op. The rule then serves only the targets that take this op.
      takes_keys: see `Rule`.

    Raises:
      ValueError: a primitive already has a rule for that op (the error names both rules), or no
        supported version of JAX has a primitive of that name.
    """

    def decorate(function: Callable[..., Lowered]) -> Callable[..., Lowered]:
        rule = _rule(function, takes_keys)
        for each in primitives:
            for primitive in named(each) if isinstance(each, str) else (each,):
                add(primitive, op, rule)
        return function

    return decorate


def register_table(table: dict[str, Callable[..., Lowered]], *, op: str = "") -> None:
    """Registers rules, one line each: `{"sin": rule_of_sin}`."""
    for primitive, function in table.items():
        register(primitive, op=op)(function)


def add(primitive: jex_core.Primitive, op: str, rule: Rule) -> None:
    """Puts one rule into the registry."""
    rules = _RULES.setdefault(primitive, {})
    if op in rules:
        raise ValueError(
            f"primitive '{primitive}' has two rules{f' for the op {op}' if op else ''}: "
            f"{rules[op].where} and {rule.where}"
        )
    rules[op] = rule


def find(primitive: jex_core.Primitive, target: Target, dtype: str | None = None) -> Rule | None:
    """Returns the rule for a primitive and dtype in graphs for a target, or None."""
    rules = _RULES.get(primitive, {})
    for op in rules:
        if op and target.wants(op) and (dtype is None or target.takes(op, dtype)):
            return rules[op]
    return rules.get("")


def has_rule(primitive: jex_core.Primitive) -> bool:
    """Returns whether a primitive has a rule for some target."""
    return primitive in _RULES


def ops_of(primitive: jex_core.Primitive) -> list[str]:
    """Returns the ops that have a rule of their own for a primitive."""
    return [op for op in _RULES.get(primitive, ()) if op]


def primitives(target: Target) -> frozenset[str]:
    """Returns the names of all primitives that have a rule for a target."""
    return frozenset(primitive.name for primitive in _RULES if find(primitive, target))


def select_params(rule: Rule, eqn: jex_core.JaxprEqn) -> dict[str, Param]:
    """Returns the params of an equation that its rule takes.

    Raises:
      TypeError: the equation has params that the rule does not name and that may change values.
        The error lists them. Ignoring them could give wrong numbers.
    """
    params = eqn.params
    if rule.takes_all:
        return params
    unknown = [
        name
        for name, value in params.items()
        # In JAX, None says that an option was not given.
        if name not in rule.params and name not in IGNORED_PARAMS and value is not None
    ]
    if unknown:
        raise TypeError(
            f"the rule {rule.where} of primitive '{eqn.primitive.name}' does not know the params "
            f"{', '.join(f'{p}={params[p]!r}' for p in unknown)}"
        )
    return {name: value for name, value in params.items() if name in rule.params}


def _rule(function: Callable[..., Lowered], takes_keys: bool) -> Rule:
    parameters = inspect.signature(function).parameters.values()
    return Rule(
        function,
        frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
        takes_keys,
    )
