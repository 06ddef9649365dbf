"""Calls and branches."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo import registry
from jax2tf._src.stablehlo.evaluator import TOKEN, Step, as_array, listed, takes_sizes
from jax2tf._src.stablehlo.known import as_sizes, is_known
from jax2tf._src.stablehlo.program import Op, TokenType
from jax2tf._src.stablehlo.registry import reads
from jax2tf._src.util.typing import HloValue as Array
from jax2tf._src.util.typing import PyTree


@reads("func.call", "stablehlo.call")
@takes_sizes
def _call(step: Step, *operands: PyTree, callee: str, no_inline: bool = False) -> list[PyTree]:
    return step.call(callee, *operands)


@reads("stablehlo.composite")
@takes_sizes
def _composite(
    step: Step,
    *operands: PyTree,
    name: str,
    decomposition: str,
    composite_attributes: Mapping[str, PyTree] | None = None,
    version: int = 0,
) -> list[PyTree]:
    """By the rule of its name, or by the function that it is made of."""
    rule = registry.COMPOSITES.get(name)
    if rule is None:
        return step.call(decomposition, *operands)
    return listed(step.apply(rule, operands, composite_attributes or {}))


@reads("stablehlo.if")
@takes_sizes
def _if(step: Step, which: Array) -> list[PyTree]:
    if is_known(which):
        (index,) = as_sizes(which)
        return step.region(0 if index else 1)()
    return _chosen(step, lambda *branches: lax.cond(jnp.reshape(which, ()), *branches))


@reads("stablehlo.case")
@takes_sizes
def _case(step: Step, index: Array) -> list[PyTree]:
    """The last branch also stands for an index that is out of range."""
    last = len(step.op.regions) - 1
    if isinstance(index, np.ndarray) and is_known(index):
        chosen = int(index)
        return step.region(chosen if 0 <= chosen <= last else last)()
    index = as_array(index)
    made_by = step.definition(0)
    if last == 1 and made_by is not None and _is_truth(made_by):
        which = lax.convert_element_type(index, bool)
        return _chosen(step, lambda no, yes: lax.cond(which, yes, no))
    if last == 0:
        return step.region(0)()
    if not _is_clamped(step, made_by, last):
        index = jnp.where((index < 0) | (index > last), jnp.full_like(index, last), index)
    return _chosen(step, lambda *branches: lax.switch(index, branches))


def _is_truth(op: Op) -> bool:
    return (
        op.name == "stablehlo.convert" and getattr(op.operand_types[0], "dtype", None) == np.bool_
    )


def _is_clamped(step: Step, op: Op | None, last: int) -> bool:
    if op is None or op.name != "stablehlo.clamp":
        return False
    low, high = (step.environment.get(op.operands[i]) for i in (0, 2))
    return is_known(low) and is_known(high) and as_sizes(low) == (0,) and as_sizes(high) == (last,)


def _chosen(step: Step, choose: PyTree) -> list[PyTree]:
    """The results of the branch that `choose` takes; tokens are no arrays."""
    branches = [_arrays_of(step, i) for i in range(len(step.op.regions))]
    results = iter(choose(*branches))
    return [TOKEN if isinstance(t, TokenType) else next(results) for t in step.op.types]


def _arrays_of(step: Step, index: int) -> PyTree:
    region = step.region(index)
    return lambda: [as_array(value) for value in region() if value is not TOKEN]
