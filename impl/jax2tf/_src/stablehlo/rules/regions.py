"""Calls, branches and loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jax import lax

from jax2tf._src.stablehlo import registry
from jax2tf._src.stablehlo.evaluator import TOKEN, Step, as_array, listed, takes_sizes
from jax2tf._src.stablehlo.known import as_sizes, is_known
from jax2tf._src.stablehlo.program import Op, Region, TokenType
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


@dataclasses.dataclass(frozen=True)
class _Counter:
    """A loop that counts a carried integer from a known start to a known end."""

    place: int
    start: int
    length: int


@reads("stablehlo.while")
@takes_sizes
def _while(step: Step, *carried: PyTree) -> list[PyTree]:
    """A loop that counts is lax.fori_loop, which has gradients in reverse mode."""
    condition, body = step.region(0), step.region(1)
    arrays = [i for i, value in enumerate(carried) if value is not TOKEN]

    def full(values: PyTree) -> list[PyTree]:
        rest = iter(values)
        return [next(rest) if i in arrays else TOKEN for i in range(len(carried))]

    def next_step(values: PyTree) -> PyTree:
        results = body(*full(values))
        return tuple(jnp.asarray(as_array(results[i])) for i in arrays)

    initial = tuple(jnp.asarray(as_array(carried[i])) for i in arrays)
    counter = _counter(step, carried)
    if counter is not None:
        final = lax.fori_loop(0, counter.length, lambda _, values: next_step(values), initial)
    else:
        final = lax.while_loop(
            lambda values: jnp.reshape(as_array(condition(*full(values))[0]), ()),
            next_step,
            initial,
        )
    return full(final)


def _counter(step: Step, carried: tuple[PyTree, ...]) -> _Counter | None:
    condition, body = step.op.regions
    if len(condition.ops) != 1 or condition.results != condition.ops[0].results:
        return None
    (compare,) = condition.ops
    if compare.name != "stablehlo.compare" or compare.attributes["comparison_direction"] != "LT":
        return None
    counted, end = compare.operands
    if counted not in condition.arguments:
        return None
    place = condition.arguments.index(counted)
    if not _counts_by_one(step, body, place):
        return None
    limit = _unchanged(step, condition, body, carried, end)
    start = carried[place]
    if not (isinstance(start, np.ndarray) and isinstance(limit, np.ndarray)):
        return None
    if not (is_known(start) and is_known(limit) and start.size == limit.size == 1):
        return None
    return _Counter(place, int(start), max(int(limit) - int(start), 0))


def _unchanged(
    step: Step, condition: Region, body: Region, carried: tuple[PyTree, ...], number: int
) -> PyTree:
    """The value that a number has in each step; None if a step may change it."""
    if number not in condition.arguments:
        return step.environment.get(number)
    place = condition.arguments.index(number)
    return carried[place] if body.results[place] == body.arguments[place] else None


def _counts_by_one(step: Step, body: Region, place: int) -> bool:
    add = step.evaluator.program.definitions.get(body.results[place])
    if add is None or add.name != "stablehlo.add" or body.arguments[place] not in add.operands:
        return False
    others = [number for number in add.operands if number != body.arguments[place]]
    return len(others) == 1 and _is_one(step, others[0])


def _is_one(step: Step, number: int) -> bool:
    value = step.environment.get(number)
    made_by = step.evaluator.program.definitions.get(number)
    if value is None and made_by is not None and made_by.name == "stablehlo.constant":
        value = made_by.attributes["value"]
    return isinstance(value, np.ndarray) and value.size == 1 and int(value.reshape(())) == 1
