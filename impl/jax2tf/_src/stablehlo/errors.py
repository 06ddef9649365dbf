"""What stops a module from being read: one exception for each op, with its place."""

from __future__ import annotations

from jax2tf._src.api.errors import LoadError
from jax2tf._src.stablehlo.program import Op


def refused(op: Op, reason: str, remedy: str) -> LoadError:
    """The error for an op that has no counterpart in JAX."""
    name = op.name
    if target := op.attributes.get("call_target_name"):
        name = f"{name} @{target}"
    place = f" It stands at {op.location}." if op.location else ""
    return LoadError(
        f"jax2tf.load: cannot read the op {name}: {reason}.{place} What to do: {remedy}."
    )
