"""JAX functions as TensorFlow graphs, and TensorFlow functions inside JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax2tf._src.api.versions as _versions

with _versions.explained():
    from jax.export import DisabledSafetyCheck

    import jax2tf._src.compat as _compat
    import jax2tf._src.util.lazy_imports as _lazy_imports

    _lazy_imports.load_tensorflow()

from jax2tf._src.api.drop_in import install, uninstall
from jax2tf._src.api.errors import (
    CallTfError,
    ConversionError,
    ExportError,
    LayoutError,
    LoadError,
    MissingPackageError,
    NotDifferentiableError,
    UnsupportedDtypeError,
    UnsupportedPrimitiveError,
    VerificationError,
)
from jax2tf._src.api.versions import __version__

if TYPE_CHECKING:
    from jax2tf import dtensor, keras
    from jax2tf._src.api.convert import convert
    from jax2tf._src.api.module import Module
    from jax2tf._src.api.partitioning import split_to_logical_devices
    from jax2tf._src.api.shape_evaluation import eval_polymorphic_shape
    from jax2tf._src.call_tf.call import call_tf
    from jax2tf._src.dims import PolyShape
    from jax2tf._src.explain.survey import explain
    from jax2tf._src.explain.timing import profile
    from jax2tf._src.export.exporting import export
    from jax2tf._src.export.result import ExportResult
    from jax2tf._src.locate.answer import Located
    from jax2tf._src.locate.locating import locate
    from jax2tf._src.stablehlo.loading import load
    from jax2tf._src.targets.by_name import TARGETS
    from jax2tf._src.targets.target import Target
    from jax2tf._src.util.dtypes import dtype_of_val
else:
    __getattr__, __dir__ = _lazy_imports.names(
        __name__,
        {
            "TARGETS": "jax2tf._src.targets.by_name",
            "ExportResult": "jax2tf._src.export.result",
            "Located": "jax2tf._src.locate.answer",
            "Module": "jax2tf._src.api.module",
            "PolyShape": "jax2tf._src.dims",
            "Target": "jax2tf._src.targets.target",
            "call_tf": "jax2tf._src.call_tf.call",
            "convert": "jax2tf._src.api.convert",
            "dtensor": "jax2tf.dtensor",
            "dtype_of_val": "jax2tf._src.util.dtypes",
            "eval_polymorphic_shape": "jax2tf._src.api.shape_evaluation",
            "explain": "jax2tf._src.explain.survey",
            "export": "jax2tf._src.export.exporting",
            "keras": "jax2tf.keras",
            "load": "jax2tf._src.stablehlo.loading",
            "locate": "jax2tf._src.locate.locating",
            "profile": "jax2tf._src.explain.timing",
            "split_to_logical_devices": "jax2tf._src.api.partitioning",
        },
        without_tensorflow=("export", "load", "locate"),
    )

__all__ = [
    "TARGETS",
    "CallTfError",
    "ConversionError",
    "DisabledSafetyCheck",
    "ExportError",
    "ExportResult",
    "LayoutError",
    "LoadError",
    "Located",
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
    "load",
    "locate",
    "profile",
    "split_to_logical_devices",
    "uninstall",
]

_compat.containers.register_module_containers()

del _compat, _lazy_imports
