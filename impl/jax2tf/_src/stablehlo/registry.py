"""The table of rules: one function for each op, custom call and composite."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from jax2tf._src.util.typing import PyTree

Rule = Callable[..., PyTree]

OPS: dict[str, Rule] = {}
CUSTOM_CALLS: dict[str, Rule] = {}
COMPOSITES: dict[str, Rule] = {}

# Attributes that say nothing about the numbers: where arrays lie, what a compiler may do.
_IGNORED = ("mhlo.", "sdy.", "jax.", "xla.", "xla_", "tf.", "tf_saved_model.")


def reads(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of ops: `rule(step, *operands, **attributes)`."""
    return _registering(OPS, names)


def reads_custom_call(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of custom calls by target; attributes are those of backend_config."""
    return _registering(CUSTOM_CALLS, names)


def reads_composite(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of composites by name: attributes are its composite_attributes."""
    return _registering(COMPOSITES, names)


def _registering(table: dict[str, Rule], names: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            if name in table:
                raise ValueError(f"two rules for {name}")
            table[name] = rule
        return rule

    return register


def keywords(rule: Rule, attributes: Mapping[str, PyTree]) -> dict[str, PyTree]:
    """The attributes that the rule takes.

    Raises:
      LookupError: an attribute is there that the rule does not know, or one is missing.
    """
    known = inspect.signature(rule).parameters
    named = {name for name, p in known.items() if p.kind is p.KEYWORD_ONLY}
    given = {k: v for k, v in attributes.items() if not k.startswith(_IGNORED)}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in known.values())
    if (unknown := sorted(given.keys() - named)) and not takes_all:
        raise LookupError(f"no rule reads its attribute {unknown[0]!r}")
    needed = {name for name in named if known[name].default is inspect.Parameter.empty}
    if missing := sorted(needed - given.keys()):
        raise LookupError(f"it lacks the attribute {missing[0]!r}")
    return given
