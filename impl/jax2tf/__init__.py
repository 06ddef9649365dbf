"""JAX functions as TensorFlow graphs, and TensorFlow functions inside JAX."""

from __future__ import annotations

from jax.export import DisabledSafetyCheck

import jax2tf.versions as _versions

with _versions.explained():
    import jax2tf.compat as _compat

import jax2tf.lowering as _lowering  # registers every rule
import jax2tf.symbolic_derivatives as _symbolic_derivatives  # registers them with JAX
from jax2tf import dtensor, keras
from jax2tf.call_tf import call_tf
from jax2tf.convert import convert
from jax2tf.dims import PolyShape
from jax2tf.drop_in import install, uninstall
from jax2tf.dtypes import dtype_of_val
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
from jax2tf.explain import explain, profile
from jax2tf.export import ExportResult, export
from jax2tf.lowering.sharding import split_to_logical_devices
from jax2tf.module import Module
from jax2tf.shape_evaluation import eval_polymorphic_shape
from jax2tf.targets import TARGETS, Target
from jax2tf.versions import __version__

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

_compat.register_module_containers()

del _compat, _lowering, _symbolic_derivatives
