"""Products of a known matrix and an array with an open batch, in LiteRT.

LiteRT's converter loses the open size if the constant is the left operand: the file does not load.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import jax2tf
from harnesses.engine import consumers
from harnesses.engine.consumers.graph import graph_of
from tests.running import assert_near

W = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
W3 = W.reshape(8, 4, 4)
PROGRAMS = {
    "last": (lambda x: jnp.einsum("bhc,hH->bHc", x, W), (8, 4)),
    "middle": (lambda x: jnp.einsum("bhwc,wW->bhWc", x, W), (3, 8, 4)),
    "two": (lambda x: jnp.einsum("bhwc,hH,wW->bHWc", x, W, W), (8, 8, 2)),
    "weights first": (lambda x: jnp.einsum("hH,bhc->Hbc", W, x), (8, 4)),
    "two free": (lambda x: jnp.einsum("hck,bh->ckb", W3, x), (8,)),
    "two contracting": (lambda x: jnp.einsum("bhc,hck->kb", x, W3), (8, 4)),
    "columns": (lambda x: jax.nn.relu(W.T @ x.T + 1), (8,)),
    "scaled": (lambda x: jnp.einsum("bhc,hH->bHc", x, jnp.cumsum(jnp.asarray(W), 1)), (8, 4)),
    "resize": (lambda x: jax.image.resize(x, (x.shape[0], 11, 5, 4), "bilinear"), (8, 8, 4)),
    "resize cubic": (lambda x: jax.image.resize(x, (x.shape[0], 5, 11, 4), "cubic"), (8, 8, 4)),
}


@pytest.mark.parametrize("target", ["litert", "tensorflow"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_known_by_open(name, target):
    function, shape = PROGRAMS[name]
    converted = jax2tf.convert(
        function, target=target, with_gradient=False, polymorphic_shapes="b, ..."
    )
    graph = graph_of(converted, [tf.TensorSpec([None, *shape], tf.float32)])
    run = consumers.engine("litert").convert(graph)
    for batch in (2, 1, 5):
        x = np.random.default_rng(batch).normal(size=(batch, *shape)).astype(np.float32)
        assert_near(run([x])[0], jax.jit(function)(x), ulps=64)
