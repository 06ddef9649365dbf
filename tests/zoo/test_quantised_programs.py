"""A network that qwix quantised gives JAX's numbers in every engine."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from tests.zoo.programs.networks import quantised_convolutions


@pytest.mark.parametrize("batch", [None, "b, ..."], ids=["known", "open"])
@pytest.mark.parametrize("engine", ["litert", "onnx", "openvino"])
def test_quantised_convolutions_in_engines(engine, batch):
    function, (scale, images) = quantised_convolutions.build()
    converted = jax2tf.convert(
        lambda x: function(scale, x), target=engine, with_gradient=False, polymorphic_shapes=batch
    )
    spec = tf.TensorSpec([None if batch else len(images), *images.shape[1:]], images.dtype)
    run = consumers.engine(engine).convert(graph_of(converted, [spec]))
    (result,) = run([images])
    np.testing.assert_allclose(result, function(scale, images), rtol=1e-5, atol=1e-6)
