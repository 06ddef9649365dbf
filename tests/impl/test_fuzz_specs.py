"""Property 1: random specs, constraints and sizes are solved rightly, or refused clearly."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf

from jax2tf._src import dims
from tests.impl.fuzzing.specs import MALFORMED, System, systems

REFUSALS = re.compile(
    "cannot solve dimension variable|may have any value|speak of dimension variable"
    "|does not fit its shape|polymorphic_constraints .* should each be a comparison"
)


def solve(system: System) -> dict[str, int]:
    """The values of all variables that shapes and constraints speak of.

    Raises:
      ValueError: they cannot be solved, or the sizes contradict what was assumed.
    """
    scope = dims.new_scope(system.constraints)
    shapes = [
        dims.symbolic_shape(
            dims.Spec(", ".join(spec)), tf.TensorShape([None] * len(spec)), scope, "x"
        )
        for spec in system.specs
    ]
    assumed = dims.assumptions(system.constraints, scope)
    arrays = [np.broadcast_to(np.uint8(0), shape) for shape in system.sizes]
    solution = dims.solve(shapes, arrays)
    assert dims.check(solution, assumed) == []
    definitions = {n: dims.evaluate(d, solution.values) for n, d in assumed.definitions.items()}
    return {**solution.values, **definitions}


def values_or_refusal(function: Callable[[Any], Any], argument: Any) -> tuple[Any, str]:
    """What a function gives, or the words of the ValueError with which it refuses."""
    try:
        return function(argument), ""
    except ValueError as error:
        return None, str(error)


def a_system_is_solved_rightly(system: System) -> None:
    names = system.variables
    values, refusal = values_or_refusal(solve, system)
    if values is None:
        wrong_sizes = "is false" in refusal
        assert wrong_sizes or REFUSALS.search(refusal), refusal
        assert not (wrong_sizes and system.solutions(names)), f"it holds, but: {refusal}"
        return
    # Variables that vanish from a dimension, as in `a - a`, may have any value.
    for solution in system.solutions(names):
        assert values == {n: solution[n] for n in values}, "another valuation explains the sizes"
    if set(values) >= set(names):
        assert system.allows(values), "the sizes or the constraints do not hold"


@pytest.mark.fuzz
@hypothesis.given(systems())
def test_a_system_is_solved_rightly(system):
    a_system_is_solved_rightly(system)


@pytest.mark.fuzz
@hypothesis.given(MALFORMED)
def test_any_text_is_a_spec_or_refused(text):
    def solve_it(text):
        shape = tf.TensorShape([2, 3])
        symbolic = dims.symbolic_shape(dims.Spec(text), shape, dims.new_scope(()), "the argument")
        return dims.solve([symbolic], [np.zeros((2, 3))])

    _, refusal = values_or_refusal(solve_it, text)
    assert re.search("^$|^the argument: |^jax2tf.convert: ", refusal), refusal


@pytest.mark.fuzz
@hypothesis.given(MALFORMED)
def test_any_text_is_a_constraint_or_refused(text):
    _, refusal = values_or_refusal(lambda c: dims.assumptions(c, dims.new_scope(c)), [text])
    assert re.search("^$|^jax2tf.convert: ", refusal), refusal
