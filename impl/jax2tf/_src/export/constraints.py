"""Assigns each constraint on open dimensions to the signatures that have the dimensions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from jax import export as jax_export

from jax2tf._src import compat
from jax2tf._src.dims import specs
from jax2tf._src.export.signatures import Signature, variables_of


def with_constraints(
    signatures: Sequence[Signature], constraints: Sequence[str] | jax_export.SymbolicScope
) -> tuple[Signature, ...]:
    """The signatures, each with the constraints that name only its own dimensions.

    Args:
      signatures: each with the constraints of the scope of its specs' symbolic dimensions.
      constraints: the caller's constraints on all signatures.

    Raises:
      ValueError: a constraint cannot be read, or no signature has its dimensions.
    """
    constraints = specs.constraints_of(constraints, "jax2tf.export")
    if isinstance(constraints, jax_export.SymbolicScope):
        constraints = compat.jaxprs.explicit_constraints(constraints)
    every = dict.fromkeys([*constraints, *(text for s in signatures for text in s.constraints)])
    constrained = tuple(_with_own(signature, constraints) for signature in signatures)
    for text in every:
        if not any(text in signature.constraints for signature in constrained):
            raise _without_a_signature(text, signatures)
    return constrained


def _with_own(signature: Signature, constraints: Sequence[str]) -> Signature:
    texts = tuple(dict.fromkeys([*signature.constraints, *constraints]))
    scope = specs.new_scope(texts)
    present = _solved(variables_of(signature), scope)
    own = tuple(
        text for text in texts if _solved(specs.variables_of_constraint(text), scope) <= present
    )
    return dataclasses.replace(signature, constraints=own)


def _solved(names: Iterable[str], scope: jax_export.SymbolicScope) -> set[str]:
    """The variables left after JAX applies equations: it writes 2*b for `a` if "a == 2*b"."""
    dims = [jax_export.symbolic_shape(name, scope=scope)[0] for name in names]
    return set(specs.variables_of(dims))


def _without_a_signature(constraint: str, signatures: Sequence[Signature]) -> ValueError:
    names = ", ".join(sorted(specs.variables_of_constraint(constraint)))
    have = "; ".join(f"{s.name!r} has {', '.join(variables_of(s)) or 'none'}" for s in signatures)
    return ValueError(
        f"jax2tf.export: polymorphic_constraints has {constraint!r}, and the specs of no signature "
        f"have the open dimensions {names}: {have}. What to do: name the dimensions so in the "
        "specs, or leave the constraint out"
    )
