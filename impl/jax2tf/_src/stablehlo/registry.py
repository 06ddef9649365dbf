"""The table of rules: one function for each op, custom call and composite."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from jax2tf._src.util import registering
from jax2tf._src.util.lru import cached
from jax2tf._src.util.typing import PyTree

Rule = Callable[..., PyTree]

OPS: dict[str, Rule] = {}
CUSTOM_CALLS: dict[str, Rule] = {}
COMPOSITES: dict[str, Rule] = {}

# Attributes that say nothing about the numbers: where arrays lie, what a compiler may do.
_IGNORED = ("mhlo.", "sdy.", "jax.", "xla.", "xla_", "tf.", "tf_saved_model.")


def reads(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of ops: `rule(step, *operands, **attributes)`."""
    return registering.under(OPS, names, "two rules for")


def reads_custom_call(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of custom calls by target; attributes are those of backend_config."""
    return registering.under(CUSTOM_CALLS, names, "two rules for")


def reads_composite(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of composites by name: attributes are its composite_attributes."""
    return registering.under(COMPOSITES, names, "two rules for")


@cached
def _parameters(rule: Rule) -> tuple[frozenset[str], frozenset[str], bool]:
    """The attributes that a rule knows, those that it needs, and whether it takes all others."""
    parameters = inspect.signature(rule).parameters
    named = {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    needed = frozenset(name for name, p in named.items() if p.default is p.empty)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return frozenset(named), needed, takes_all


def keywords(rule: Rule, attributes: Mapping[str, PyTree]) -> dict[str, PyTree]:
    """The attributes that the rule takes.

    Raises:
      LookupError: an attribute is there that the rule does not know, or one is missing.
    """
    named, needed, takes_all = _parameters(rule)
    given = {k: v for k, v in attributes.items() if not k.startswith(_IGNORED)}
    if (unknown := sorted(given.keys() - named)) and not takes_all:
        raise LookupError(f"no rule reads its attribute {unknown[0]!r}")
    if missing := sorted(needed - given.keys()):
        raise LookupError(f"it lacks the attribute {missing[0]!r}")
    return given
