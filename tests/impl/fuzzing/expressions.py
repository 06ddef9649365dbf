"""Expressions over dimension variables, as text, and what they are on integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
VALUES = st.fixed_dictionaries({name: st.integers(1, 12) for name in NAMES})

_FUNCTIONS = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": lambda a, b: a + (b - a) * (b > a),
    "min": lambda a, b: a + (b - a) * (b < a),
    "__builtins__": {},
}


def on_integers(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression for ints or NumPy arrays of ints."""
    return eval(text.replace("^", "**"), _FUNCTIONS, dict(values))


def _sum(terms: list[tuple[int, str]], constant: int) -> str:
    text = " + ".join(f"{factor}*{name}" for factor, name in terms)
    return f"{text} + {constant}" if constant else text


LINEAR = st.builds(
    _sum,
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from(NAMES)),
        min_size=1,
        max_size=2,
        unique_by=lambda term: term[1],
    ),
    st.integers(0, 4),
)


def _of_two(left: st.SearchStrategy[str], right: st.SearchStrategy[str]) -> Any:
    divisors = st.integers(1, 6).map(str)
    return st.one_of(
        st.builds("({} + {})".format, left, right),
        st.builds("({} - {})".format, left, right),
        st.builds("({} * {})".format, left, right),
        st.builds("floordiv({}, {})".format, left, divisors),
        st.builds("mod({}, {})".format, left, divisors),
        # Division of what may be negative is where conventions differ.
        st.builds("floordiv({} - {}, {})".format, left, right, divisors),
        st.builds("mod({} - {}, {})".format, left, right, divisors),
        st.builds("max({}, {})".format, left, right),
        st.builds("min({}, {})".format, left, right),
    )


ATOMS = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 9).map(str))
EXPRESSIONS = st.recursive(ATOMS, lambda inner: _of_two(inner, inner), max_leaves=5)
COMPARISONS = ("==", ">=", "<=")
