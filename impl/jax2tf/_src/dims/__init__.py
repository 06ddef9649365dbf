"""Polymorphic shapes. The modules, in the order in which a call passes through them:

specs.py        shape specs of the caller, as the symbolic shapes that JAX traces
prefixes.py     the spec of each argument's leaves
solving.py      dimension variables solved from the shapes of the arguments
checks.py       assumptions of the trace, checked when the function runs
expressions.py  symbolic dimensions evaluated as ints or tensors
"""

from __future__ import annotations

from jax2tf._src.dims.advice import advising
from jax2tf._src.dims.checks import check
from jax2tf._src.dims.expressions import Size, Values, evaluate, evaluate_expression, parse
from jax2tf._src.dims.prefixes import OfInputs, spec_leaves
from jax2tf._src.dims.solving import Solution, solve
from jax2tf._src.dims.specs import (
    Assumptions,
    PolyShape,
    Spec,
    assumptions,
    constraints_of,
    new_scope,
    symbolic_shape,
    variables_of,
)
from jax2tf._src.util.symbolic_sizes import is_static, may_be_zero

__all__ = [
    "Assumptions",
    "OfInputs",
    "PolyShape",
    "Size",
    "Solution",
    "Spec",
    "Values",
    "advising",
    "assumptions",
    "check",
    "constraints_of",
    "evaluate",
    "evaluate_expression",
    "is_static",
    "may_be_zero",
    "new_scope",
    "parse",
    "solve",
    "spec_leaves",
    "symbolic_shape",
    "variables_of",
]
