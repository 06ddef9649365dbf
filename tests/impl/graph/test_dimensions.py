"""Sizes as text: the values are those of Python's arithmetic, the text is that of JAX."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export

from jax2tf._src.graph import dimensions

NAMES = ("b", "n", "m")
OPERATIONS = {
    "+": (dimensions.add, lambda a, b: a + b),
    "-": (dimensions.subtract, lambda a, b: a - b),
    "*": (dimensions.multiply, lambda a, b: a * b),
    "//": (dimensions.divide, lambda a, b: a // b),
    "%": (dimensions.modulo, lambda a, b: a % b),
    "max": (dimensions.maximum, max),
    "min": (dimensions.minimum, min),
}
LEAVES = st.one_of(st.sampled_from(NAMES), st.integers(-3, 5))
TREES = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(list(OPERATIONS)), inner, inner), max_leaves=8
)


def size_of(tree):
    if not isinstance(tree, tuple):
        return tree
    operation, a, b = tree
    return OPERATIONS[operation][0](size_of(a), size_of(b))


def number_of(tree, values):
    if not isinstance(tree, tuple):
        return values.get(tree, tree)
    operation, a, b = tree
    return OPERATIONS[operation][1](number_of(a, values), number_of(b, values))


@settings(max_examples=300, deadline=None)
@given(TREES, st.tuples(*[st.integers(1, 6)] * 3))
def test_values(tree, numbers):
    values = dict(zip(NAMES, numbers, strict=True))
    size = size_of(tree)
    try:
        expected = number_of(tree, values)
    except ZeroDivisionError:
        return
    if size is not None:
        assert dimensions.evaluate(size, values) == expected
        assert dimensions.canonical(size) == size
        assert dimensions.are_equal(size, expected) is not False
        assert dimensions.is_at_least(size, expected) is not False
        assert not dimensions.is_at_least(size, expected + 1)


POLYNOMIALS = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner), max_leaves=6
)


@settings(max_examples=300, deadline=None)
@given(POLYNOMIALS)
def test_polynomials_print_as_those_of_jax(tree):
    dims = dict(zip(NAMES, export.symbolic_shape(", ".join(NAMES)), strict=True))
    assert str(size_of(tree)) == str(number_of(tree, dims))


@settings(max_examples=100, deadline=None)
@given(POLYNOMIALS, POLYNOMIALS)
def test_exact_quotients(a, b):
    divisor = size_of(b)
    if divisor != 0:
        product = dimensions.multiply(size_of(a), divisor)
        assert dimensions.divide(product, divisor) == size_of(a)
        assert dimensions.divide_exactly(product, divisor) == size_of(a)
        assert dimensions.modulo(product, divisor) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("b", "n + b", "- b + 3", "b*n^3 + b*n^2 + m", "2*b*n - m^3", "b*n + n + 2*b + 2"),
        *("floordiv(b + 3, 2)", "n*floordiv(n + b, 3) + 1", "mod(b, 3) + n + 1", "max(b, n)"),
        *("floordiv(b + 3, 2) + b^2", "min(b, 3)", "mod(b, n) + floordiv(b, n) + floordiv(b, m)"),
    ],
)
def test_text_of_jax_is_canonical(text):
    assert str(export.symbolic_shape(text)[0]) == text
    assert dimensions.canonical(text) == text


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (dimensions.add(None, 1), None),
        (dimensions.multiply(None, 0), 0),
        (dimensions.multiply("b", 0), 0),
        (dimensions.divide("b", 0), None),
        (dimensions.divide(4, 0), None),
        (dimensions.divide_up("b", 2), "floordiv(b + 1, 2)"),
        (dimensions.divide_up("2*b", 2), "b"),
        (dimensions.divide_exactly("b", 2), None),
        (dimensions.maximum("b - 1", 0), "b - 1"),
        (dimensions.minimum("b", "b + n"), "b"),
        (dimensions.maximum("b", 3), "max(b, 3)"),
        (dimensions.product(["b", 2, "n"]), "2*b*n"),
        (dimensions.product([]), 1),
        (dimensions.total(["b", "b"]), "2*b"),
        (dimensions.canonical("2*is + lambda - is"), "lambda + is"),
    ],
)
def test_cases(size, expected):
    assert size == expected


@pytest.mark.parametrize("text", ["", "b +", "b / 2", "sin(b, 2)", "b^n", "2.5*b", "b n", "max(b)"])
def test_unreadable(text):
    with pytest.raises(ValueError, match="is not an expression of dimensions"):
        dimensions.canonical(text)
