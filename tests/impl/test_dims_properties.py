"""Properties of solving linear systems for dimension variables."""

from __future__ import annotations

import hypothesis
import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from jax2tf._src import dims

NAMES = ("a", "b", "c")
VALUES = st.fixed_dictionaries({name: st.integers(1, 40) for name in NAMES})


LINEAR = st.lists(
    st.tuples(*(st.integers(-4, 4) for _ in NAMES), st.integers(0, 5)), min_size=1, max_size=4
)


@pytest.mark.fuzz
@hypothesis.given(LINEAR, VALUES)
def test_a_solution_is_the_only_one_or_refused(rows, values):
    """What is solved is what the sizes came from; what many values explain is refused."""
    shapes, sizes = [], []
    for *coefficients, constant in rows:
        text = " + ".join(f"{c}*{n}" for c, n in zip(coefficients, NAMES, strict=True))
        size = sum(c * values[n] for c, n in zip(coefficients, NAMES, strict=True)) + constant
        hypothesis.assume(any(coefficients) and 0 <= size < 10_000)
        shapes.append(f"{text} + {constant}")
        sizes.append(size)
    scope = jax.export.SymbolicScope()
    try:
        symbolic = [jax.export.symbolic_shape(s, scope=scope) for s in shapes]
    except ValueError:
        hypothesis.reject()  # JAX knows that it is negative
    tensors = [tf.zeros([size], tf.bool) for size in sizes]
    used = {n for *cs, _ in rows for c, n in zip(cs, NAMES, strict=True) if c}
    if _rank([cs for *cs, _ in rows]) < len(used):
        with pytest.raises(ValueError, match="cannot solve dimension variable"):
            dims.solve(symbolic, tensors, str)
        return
    solution = dims.solve(symbolic, tensors, str)
    assert solution.values == {n: values[n] for n in used}
    dims.check(solution, dims.Assumptions())


@pytest.mark.fuzz
@hypothesis.given(VALUES, st.integers(1, 5), st.sampled_from(["a", "b"]))
def test_a_size_that_contradicts_is_found(values, off, name):
    scope = jax.export.SymbolicScope()
    symbolic = [jax.export.symbolic_shape(s, scope=scope) for s in ("a, b", f"{name}, a + b")]
    a, b = values["a"], values["b"]
    tensors = [tf.zeros([a, b], tf.bool), tf.zeros([values[name] + off, a + b], tf.bool)]
    with pytest.raises(ValueError, match="should be"):
        dims.check(dims.solve(symbolic, tensors, str), dims.Assumptions())


def _rank(rows):
    return int(np.linalg.matrix_rank(np.array(rows, dtype=float)))
