"""Bugs planted into the implementation are found by the property tests, soon."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import strategies as st

from jax2tf._src.dims import checks, expressions, solving
from jax2tf._src.lowering import context
from tests.impl.fuzzing.expressions import EXPRESSIONS, VALUES
from tests.impl.fuzzing.planted import is_found
from tests.impl.fuzzing.programs import SIZES, programs
from tests.impl.fuzzing.specs import systems
from tests.impl.test_fuzz_arithmetic import a_dimension_evaluates_as_integers_do
from tests.impl.test_fuzz_programs import a_program_gives_what_jax_gives
from tests.impl.test_fuzz_specs import a_system_is_solved_rightly

EXAMPLES = 2000


# A swapped dimension may also be more than an op can bear.
ERRORS = (AssertionError, tf.errors.InvalidArgumentError)


ARITHMETIC = st.tuples(EXPRESSIONS, VALUES), a_dimension_evaluates_as_integers_do
SYSTEMS = st.tuples(systems()), a_system_is_solved_rightly
PROGRAMS = (
    st.tuples(programs(max_steps=3), SIZES),
    lambda program, sizes: a_program_gives_what_jax_gives(program, sizes, "eager", enable_xla=True),
)


def truncated(a, b):
    return int(a / b)


def drop_constraints(patch):
    real = checks.check
    patch(
        "jax2tf._src.dims.check",
        lambda solution, assumptions, *args, **options: real(
            solution, type(assumptions)((), assumptions.definitions), *args, **options
        ),
    )


def drop_equations(patch):
    real = checks._assumptions
    patch(
        "jax2tf._src.dims.checks._assumptions",
        lambda solution, *args: (a for a in real(solution, *args) if "should be " not in a.words),
    )


def swap_sizes(patch):
    real = solving._actual_size
    patch(
        "jax2tf._src.dims.solving._actual_size",
        lambda tensor, axis: real(tensor, len(tensor.shape) - 1 - axis),
    )


def wrong_sign(patch):
    patch("jax2tf._src.dims.expressions.FUNCTIONS", expressions.FUNCTIONS | {"floordiv": truncated})


def swap_dimensions(patch):
    """Shapes of two dimensions and more, as TensorFlow takes them, end in the wrong order."""
    real = context.Context.shape
    patch(
        "jax2tf._src.lowering.context.Context.shape",
        lambda self, shape: real(self, [*shape[:-2], *reversed(shape[-2:])]),
    )


@pytest.mark.parametrize(
    ("plant", "fuzzer"),
    [
        (wrong_sign, ARITHMETIC),
        (drop_constraints, SYSTEMS),
        (drop_equations, SYSTEMS),
        (swap_sizes, SYSTEMS),
        (wrong_sign, PROGRAMS),
        (swap_dimensions, PROGRAMS),
    ],
)
def test_a_planted_bug_is_found(plant, fuzzer, monkeypatch):
    plant(monkeypatch.setattr)
    assert is_found(*fuzzer, EXAMPLES, ERRORS)
