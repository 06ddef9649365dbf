"""Programs for meshes on DTensor: test_dtensor.py runs this in a process with eight devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from jax2tf import dtensor
from tests.impl import logical_devices
from tests.impl.parallel_programs import PROGRAMS
from tests.running import assert_near

logical_devices.make(8)

P = PartitionSpec

# The axes of the mesh, and how the arguments are spread over them.
MESHES = {
    "data_parallel": ({"batch": 8}, (P("batch"), P("batch"), P("batch"))),
    "tensor_parallel": (
        {"data": 4, "model": 2},
        (P(None, "model"), P("model"), P("model", None), P("data", None)),
    ),
    "ring_attention": ({"sequence": 8}, (P(None, "sequence"),) * 3),
    "mixture_of_experts": ({"expert": 8}, (P(), P("expert"), P("expert"))),
    "halo_exchange": ({"rows": 8}, (P("rows"),)),
}


@pytest.mark.parametrize("name", MESHES)
def test_gives_what_jax_gives(name):
    fun, args = PROGRAMS[name](8)
    axes, specs = MESHES[name]
    types = (AxisType.Auto,) * len(axes)
    mesh = dtensor.mesh_of(AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=types))
    variables = dtensor.variables(args, specs, mesh)

    def loss(*args):
        results = fun(*args)
        return sum(jnp.sum(y**2) for y in jax.tree.leaves(results)), results

    converted = dtensor.convert(loss, mesh)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            value, results = converted(*variables)
        return jax.tree.leaves(results), tape.gradient(value, jax.tree.leaves(variables))

    results, gradients = step()
    of_jax = jax.jit(jax.value_and_grad(loss, tuple(range(len(args))), has_aux=True))
    (_, expected), expected_gradients = of_jax(*args)
    assert_near(dtensor.values(results), [np.asarray(y) for y in jax.tree.leaves(expected)])
    assert_near(
        dtensor.values(gradients), [np.asarray(g) for g in jax.tree.leaves(expected_gradients)], 64
    )
