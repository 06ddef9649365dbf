"""Powers with which JAX would be busy for hours are refused at once."""

from __future__ import annotations

import pytest
import tensorflow as tf

import jax2tf
from tests.impl.export_programs import export

LARGE = ["b^99999999", "(b + c)^1000", "((b + 1)^30)^30", "b ^ 32", "2*b^" + "9" * 5000]


@pytest.mark.parametrize("text", LARGE)
def test_in_shapes_constraints_and_specs(tmp_path, text):
    x = tf.ones([2, 3])
    with pytest.raises(ValueError, match="should be at most 31 together"):
        jax2tf.convert(lambda x: x, polymorphic_shapes=f"{text}, _")(x)
    with pytest.raises(ValueError, match="should be at most 31 together"):
        jax2tf.convert(
            lambda x: x, polymorphic_shapes="b, _", polymorphic_constraints=[f"{text} >= 1"]
        )(x)
    with pytest.raises(ValueError, match="should be at most 31 together"):
        export(lambda x: x, None, f"{text}, 3", tmp_path / "model")


def test_powers_that_fit():
    converted = jax2tf.convert(lambda x, y: (x, y), polymorphic_shapes=["b, c", "b^2, c^3"])
    assert converted(tf.ones([2, 1]), tf.ones([4, 1]))[1].shape == (4, 1)
