"""Bugs planted back into call_tf are found by its property test.

The fuzz job draws anything, thousands of times. Here the same property draws the stage and the
transformations that a bug needs, so that a few examples find it.
"""

from __future__ import annotations

import contextlib

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from jax2tf._src.call_tf import derived, embedding, failures, functions
from tests.impl.fuzzing.call_tf_programs import called, programs
from tests.impl.fuzzing.planted import is_found
from tests.impl.test_fuzz_call_tf import (
    a_declaration_of_nothing_is_held,
    a_refusal_is_in_one_line,
    calls,
    refused,
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


def errors_are_raw(patch):
    """What TensorFlow raises over a batch comes as it is."""
    patch(failures, "in_one_line", lambda name: contextlib.nullcontext())


@pytest.mark.parametrize(
    ("plant", "drawn"),
    [
        (scalars_are_numbers, calls(("jit",), ("jit",), max_steps=1, captures=(1, 2))),
        (words_are_not_read, calls(("jit",), ("jit",), max_steps=1, captures=(1, 2))),
        (
            batches_share_names,
            calls(("op_by_op",), ("vmap",), max_steps=1, captures=(0, 0), nodes=("own_batch",)),
        ),
        (cotangents_are_swapped, calls(("op_by_op",), ("jvp",), max_steps=1, captures=(0, 0))),
    ],
)
def test_a_planted_bug_is_found(plant, drawn, monkeypatch):
    plant(monkeypatch.setattr)
    assert is_found(st.tuples(drawn), lambda calls: calls.check(), EXAMPLES, ERRORS)


def test_a_declaration_that_is_not_held_is_found(monkeypatch):
    none_is_unspecified(monkeypatch.setattr)
    fuzzed = st.tuples(programs(max_steps=1))
    assert is_found(fuzzed, a_declaration_of_nothing_is_held, EXAMPLES, ERRORS)


def test_a_raw_error_is_found(monkeypatch):
    errors_are_raw(monkeypatch.setattr)
    errors = (AssertionError, AttributeError, ValueError, TypeError, pytest.fail.Exception)
    assert is_found(refused(), a_refusal_is_in_one_line, EXAMPLES, errors)
