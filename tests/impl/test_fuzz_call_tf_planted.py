"""Bugs planted back into call_tf are found by its property test.

The fuzz job draws anything, thousands of times. Here the same property draws the stage and the
transformations that a bug needs, so that a few examples find it.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from jax2tf.call_tf import derived, embedding, functions
from tests.impl.fuzzing.call_tf_programs import called, programs
from tests.impl.fuzzing.call_tf_transformations import pipelines
from tests.impl.fuzzing.planted import is_found
from tests.impl.test_fuzz_call_tf import (
    a_call_gives_what_jax_gives,
    a_declaration_of_nothing_is_held,
)

EXAMPLES = 150
# What each of the bugs raised; a wrong number is an AssertionError.
ERRORS = (AssertionError, AttributeError, ValueError, RuntimeError, pytest.fail.Exception)


@pytest.fixture(autouse=True)
def _forget():
    """What was compiled without the bug, and with it, stays in no cache."""
    called.cache_clear()
    yield
    called.cache_clear()
    jax.clear_caches()


def scalars_are_numbers(patch):
    """A captured scalar tensor is a number of NumPy's, which is no array."""
    real = functions.Signature.captured
    patch(
        functions.Signature,
        "captured",
        lambda self: [x[()] if isinstance(x, np.ndarray) else x for x in real(self)],
    )


def words_are_not_read(patch):
    """JAX's callbacks are asked for 64 bits, which they do not have while x64 is off."""
    patch(embedding, "_words_spec", lambda spec: spec)
    patch(embedding, "_words", lambda value: value)
    patch(embedding, "_of_words", lambda words, dtype: words)


def batches_share_names(patch):
    """A batch within a batch is mapped as it is."""
    patch(
        derived,
        "_vectorized",
        lambda function, mapped: tf.vectorized_map(
            function, list(mapped), fallback_to_while_loop=False
        ),
    )


def cotangents_are_swapped(patch):
    """Tangents and cotangents come in the wrong order."""
    real = derived._split
    patch(
        derived,
        "_split",
        lambda tensors, n: (real(tensors, n)[0], real(tensors, n)[1][::-1]),
    )


def none_is_unspecified(patch):
    """A function that is said to return nothing may return anything."""
    patch(functions, "UNSPECIFIED", None)


@pytest.mark.parametrize(
    ("plant", "stage", "captures", "transformations"),
    [
        (scalars_are_numbers, "jit", True, ("jit",)),
        (words_are_not_read, "jit", True, ("jit",)),
        (batches_share_names, "op_by_op", False, ("vmap",)),
        (cotangents_are_swapped, "op_by_op", False, ("jvp",)),
    ],
)
def test_a_planted_bug_is_found(plant, stage, captures, transformations, monkeypatch):
    plant(monkeypatch.setattr)
    fuzzed = st.tuples(
        programs(max_steps=1).filter(lambda p: bool(p.captures) == captures),
        pipelines(transformations),
        st.just(stage),
        st.booleans(),
    )
    assert is_found(fuzzed, a_call_gives_what_jax_gives, EXAMPLES, ERRORS)


def test_a_declaration_that_is_not_held_is_found(monkeypatch):
    none_is_unspecified(monkeypatch.setattr)
    fuzzed = st.tuples(programs(max_steps=1))
    assert is_found(fuzzed, a_declaration_of_nothing_is_held, EXAMPLES, ERRORS)
