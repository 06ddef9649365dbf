"""The registry of lowering rules: one rule for a primitive, or one for each op that it may be.

    @register("sin")
    def _sin(ctx, x):
        return tf.sin(x)

Operands are positional tensors; the primitive's params are keyword-only, so that the signature says
what the rule reads. A rule is found in this order:

1. the rule registered for the primitive and an op (`op="XlaSort"`), where the target takes that op;
2. otherwise, the one registered for the primitive without an op;
3. otherwise, for a primitive of another library, its own implementation (_src/lowering/foreign.py);
4. otherwise the primitive is refused at conversion, naming it and the user's source line.

A name stands for JAX's primitive of that name, and for no other primitive that is called so.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf
from jax.extend import core as jex_core

from jax2tf._src.targets.target import Target
from jax2tf._src.tracing.primitives import named
from jax2tf._src.util.typing import Param

# A rule returns one tensor, or as many as its primitive has results.
Lowered: TypeAlias = tf.Tensor | Sequence[tf.Tensor]

# These params never change the values of a result on one device. A rule need not name them.
IGNORED_PARAMS = frozenset(
    {
        "accuracy",  # a hint to XLA: which polynomial; results stay within the op's own error
        "sharding",
        "out_sharding",
        "weak_type",  # a type-level flag of JAX's; the dtype carries all that TensorFlow has
        "name",
        "memory_space",  # of an accelerator; TensorFlow places tensors itself
        "branches_platforms",  # which platform each branch is for: platform_index has chosen
    }
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A lowering rule and the params that its signature names.

    Attributes:
      function: called as `function(ctx, *operands, **params)`.
      params: the params it names.
      takes_all: whether it has a `**params` of its own.
      takes_keys: whether it knows that typed PRNG keys come as their data, with dimensions of its
        own behind the logical ones. All other rules get data only: passes/keys.py wraps them.
    """

    function: Callable[..., Lowered]
    params: frozenset[str]
    takes_all: bool
    takes_keys: bool = False

    @property
    def where(self) -> str:
        """`module.function`, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


# The rules of each primitive, by the op that they need; "" for a rule that needs none.
_RULES: dict[jex_core.Primitive, dict[str, Rule]] = {}


def register(
    *primitives: str | jex_core.Primitive,
    op: str = "",
    takes_keys: bool = False,
) -> Callable[[Callable[..., Lowered]], Callable[..., Lowered]]:
    """Registers the decorated function as the rule of `primitives`.

    Args:
      *primitives: names of JAX's primitives, or primitives themselves.
      op: the op of TensorFlow that the rule lowers to, if it is only for targets that take that op.
      takes_keys: see `Rule`.

    Raises:
      ValueError: a primitive already has a rule for that op; both are named. Or no supported
        version of JAX has a primitive of that name.
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
    """The rule for a primitive of a dtype in graphs for a target, or None."""
    rules = _RULES.get(primitive, {})
    for op in rules:
        if op and target.wants(op) and (dtype is None or target.takes(op, dtype)):
            return rules[op]
    return rules.get("")


def ops_of(primitive: jex_core.Primitive) -> list[str]:
    """The ops that a primitive has rules for."""
    return [op for op in _RULES.get(primitive, ()) if op]


def primitives(target: Target) -> frozenset[str]:
    """The names of all primitives that have a rule for a target."""
    return frozenset(primitive.name for primitive in _RULES if find(primitive, target))


def select_params(rule: Rule, eqn: jex_core.JaxprEqn) -> dict[str, Param]:
    """The params of an equation that its rule takes.

    Raises:
      TypeError: a param that the rule does not name, and that may change values, is listed. Silence
        about an unknown param is how wrong numbers are made.
    """
    params = eqn.params
    if rule.takes_all:
        return params
    unknown = [
        name
        for name, value in params.items()
        # None is JAX's way to say that an option was not given.
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
