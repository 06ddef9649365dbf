"""Converted functions on DTensor, TensorFlow's own engine for meshes of devices.

mesh = jax2tf.dtensor.mesh_of(jax_mesh)
params = jax2tf.dtensor.variables(params, param_shardings, mesh)
step = jax2tf.dtensor.convert(loss, mesh, in_shardings=..., out_shardings=...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax2tf._src.util import lazy_imports as _lazy_imports

if TYPE_CHECKING:
    from jax2tf._src.dtensor.convert import convert
    from jax2tf._src.dtensor.layouts import layout_of, mesh_of
    from jax2tf._src.dtensor.placing import place, values, variables
else:
    __getattr__, __dir__ = _lazy_imports.names(
        __name__,
        {
            "convert": "jax2tf._src.dtensor.convert",
            "layout_of": "jax2tf._src.dtensor.layouts",
            "mesh_of": "jax2tf._src.dtensor.layouts",
            "place": "jax2tf._src.dtensor.placing",
            "values": "jax2tf._src.dtensor.placing",
            "variables": "jax2tf._src.dtensor.placing",
        },
    )

__all__ = ["convert", "layout_of", "mesh_of", "place", "values", "variables"]

del _lazy_imports
