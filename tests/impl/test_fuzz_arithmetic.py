"""Property 2: arithmetic on symbolic dimensions agrees with that on integers, where it decides."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from jax import core, export

from jax2tf._src import dims
from tests.impl.fuzzing.expressions import EXPRESSIONS, NAMES, VALUES, on_integers

COMPARISONS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
SYMBOLS = dict(zip(NAMES, export.symbolic_shape(", ".join(NAMES)), strict=True))
ON_SYMBOLS = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": core.max_dim,
    "min": core.min_dim,
    "__builtins__": {},
}


def symbolic(text: str) -> export.SymbolicScope | int:
    """The dimension that JAX computes."""
    return eval(text, ON_SYMBOLS, SYMBOLS)


def a_dimension_evaluates_as_integers_do(text: str, values: dict[str, int]) -> None:
    dim, expected = symbolic(text), on_integers(text, values)
    assert dims.evaluate(dim, values) == expected
    arrays = {name: np.int32(value) for name, value in values.items()}
    assert int(dims.evaluate(dim, arrays)) == expected


@pytest.mark.fuzz
@hypothesis.given(EXPRESSIONS, VALUES)
def test_a_dimension_evaluates_as_integers_do(text, values):
    a_dimension_evaluates_as_integers_do(text, values)


@pytest.mark.fuzz
@hypothesis.settings(max_examples=hypothesis.settings().max_examples // 5)
@hypothesis.given(EXPRESSIONS, VALUES)
def test_a_dimension_evaluates_as_tensors_do(text, values):
    tensors = {name: tf.constant(value) for name, value in values.items()}
    assert int(dims.evaluate(symbolic(text), tensors)) == on_integers(text, values)


def decision(compare, a, b) -> bool | None:
    """What JAX decides about two dimensions, None where it cannot."""
    try:
        return compare(a, b)
    except Exception as error:
        if "inconclusive" not in str(error):
            raise
        return None


@pytest.mark.fuzz
@hypothesis.given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(sorted(COMPARISONS)), VALUES)
def test_what_a_comparison_decides_holds(left, right, sign, values):
    a, b = symbolic(left), symbolic(right)
    on_numbers = (on_integers(left, values), on_integers(right, values))
    if a == b:
        assert on_numbers[0] == on_numbers[1]
    decided = decision(COMPARISONS[sign], a, b)
    assert decided in (None, COMPARISONS[sign](*on_numbers))


@pytest.mark.fuzz
@hypothesis.given(EXPRESSIONS)
def test_a_dimension_is_read_as_jax_writes_it(text):
    """A dimension of the same scope comes back from its text."""
    dim = symbolic(text)
    hypothesis.assume(export.is_symbolic_dim(dim))
    scope = dim.scope
    assert export.symbolic_shape(str(dim), scope=scope) == (dim,)
    assert dims.evaluate(dim, dict.fromkeys(NAMES, 3)) == on_integers(text, dict.fromkeys(NAMES, 3))
