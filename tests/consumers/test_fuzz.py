"""Random programs in engines; `python -m tests.impl.fuzzing ENGINE` runs thousands."""

import pytest

from harnesses.engine import consumers
from tests.impl.fuzzing.engine_programs import program


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("engine", consumers.NEEDS)
def test_a_random_program_gives_what_jax_gives(engine, number):
    drawn = program(engine, number)
    assert drawn.steps
    refused = drawn.check()
    assert refused is None or refused.startswith("refused: jax2tf.convert: cannot lower")
