"""JAX functions as TensorFlow graphs, and TensorFlow functions inside JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax2tf.versions as _versions

with _versions.explained():
    from jax.export import DisabledSafetyCheck

    import jax2tf.compat as _compat

import jax2tf.first_use as _first_use
import jax2tf.symbolic_derivatives as _symbolic_derivatives  # registers them with JAX
from jax2tf.drop_in import install, uninstall
from jax2tf.errors import (
    CallTfError,
    ConversionError,
    ExportError,
    LayoutError,
    MissingPackageError,
    NotDifferentiableError,
    UnsupportedDtypeError,
    UnsupportedPrimitiveError,
    VerificationError,
)
from jax2tf.versions import __version__

if TYPE_CHECKING:
    from jax2tf import dtensor, keras
    from jax2tf.call_tf import call_tf
    from jax2tf.converting import convert
    from jax2tf.dims import PolyShape
    from jax2tf.dtypes import dtype_of_val
    from jax2tf.explain import explain, profile
    from jax2tf.export import ExportResult, export
    from jax2tf.lowering.sharding import split_to_logical_devices
    from jax2tf.module import Module
    from jax2tf.shape_evaluation import eval_polymorphic_shape
    from jax2tf.targets import TARGETS, Target
else:
    # A package becomes an attribute of this one when it is first imported. These have the names of
    # functions, and a later import would put them there in place of the functions.
    from jax2tf import call_tf, explain, export

    del call_tf, explain, export

    __getattr__, __dir__ = _first_use.names(
        __name__,
        {
            "TARGETS": "jax2tf.targets",
            "ExportResult": "jax2tf.export.result",
            "Module": "jax2tf.module",
            "PolyShape": "jax2tf.dims",
            "Target": "jax2tf.targets",
            "call_tf": "jax2tf.call_tf.call",
            "convert": "jax2tf.converting",
            "dtensor": "jax2tf.dtensor",
            "dtype_of_val": "jax2tf.dtypes",
            "eval_polymorphic_shape": "jax2tf.shape_evaluation",
            "explain": "jax2tf.explain.survey",
            "export": "jax2tf.export.exporting",
            "keras": "jax2tf.keras",
            "profile": "jax2tf.explain.timing",
            "split_to_logical_devices": "jax2tf.lowering.sharding",
        },
    )

__all__ = [
    "TARGETS",
    "CallTfError",
    "ConversionError",
    "DisabledSafetyCheck",
    "ExportError",
    "ExportResult",
    "LayoutError",
    "MissingPackageError",
    "Module",
    "NotDifferentiableError",
    "PolyShape",
    "Target",
    "UnsupportedDtypeError",
    "UnsupportedPrimitiveError",
    "VerificationError",
    "__version__",
    "call_tf",
    "convert",
    "dtensor",
    "dtype_of_val",
    "eval_polymorphic_shape",
    "explain",
    "export",
    "install",
    "keras",
    "profile",
    "split_to_logical_devices",
    "uninstall",
]

_compat.containers.register_module_containers()

del _compat, _first_use, _symbolic_derivatives
