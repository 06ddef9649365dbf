"""The rules that write ops of the graph as nodes of ONNX, by the name of the op."""

from __future__ import annotations

from collections.abc import Callable

from jax2tf._src.util import registering
from jax2tf._src.util.typing import PyTree

# Takes the writer, the node and its operands as values of onnx-ir; gives the result, or a sequence
# of results where the op has several.
Rule = Callable[..., PyTree]

_rules: dict[str, Rule] = {}


def writes(*ops: str) -> Callable[[Rule], Rule]:
    """A decorator: the function `rule(writer, node, *operands)` writes these ops."""
    return registering.under(_rules, ops, "two rules write the op")


def rule_of(op: str) -> Rule | None:
    """The rule of an op; None if there is none."""
    return _rules.get(op)
