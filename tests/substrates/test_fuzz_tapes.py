"""Random programs with tapes in traced code give TensorFlow's derivatives on JAX."""

from __future__ import annotations

import pytest

from tests.impl.fuzzing.tapes import program


@pytest.mark.parametrize("number", range(30))
def test_as_tensorflow(number):
    program(number).check()
