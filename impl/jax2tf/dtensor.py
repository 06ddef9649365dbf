"""Converted functions on DTensor, TensorFlow's own engine for meshes of devices.

mesh = jax2tf.dtensor.mesh_of(jax_mesh)
params = jax2tf.dtensor.variables(params, param_shardings, mesh)
step = jax2tf.dtensor.convert(loss, mesh, in_shardings=..., out_shardings=...)
"""

from __future__ import annotations

from jax2tf._src.dtensor.convert import convert
from jax2tf._src.dtensor.layouts import layout_of, mesh_of
from jax2tf._src.dtensor.placing import place, values, variables

__all__ = ["convert", "layout_of", "mesh_of", "place", "values", "variables"]
