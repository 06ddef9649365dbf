"""Polymorphic shapes, in the order of a call:

specs.py        what the caller wrote, as the symbolic shapes that JAX traces
solving.py      dimension variables solved from the shapes of the arguments
checks.py       what the trace assumed of them, checked when the function runs
expressions.py  a symbolic dimension evaluated, as an int or a tensor
"""

from __future__ import annotations

from jax2tf.dims.checks import check
from jax2tf.dims.expressions import Size, Values, evaluate, evaluate_expression, parse
from jax2tf.dims.solving import Solution, solve
from jax2tf.dims.specs import (
    Assumptions,
    PolyShape,
    Spec,
    assumptions,
    is_static,
    may_be_zero,
    new_scope,
    spec_leaves,
    symbolic_shape,
)

__all__ = [
    "Assumptions",
    "PolyShape",
    "Size",
    "Solution",
    "Spec",
    "Values",
    "assumptions",
    "check",
    "evaluate",
    "evaluate_expression",
    "is_static",
    "may_be_zero",
    "new_scope",
    "parse",
    "solve",
    "spec_leaves",
    "symbolic_shape",
]
