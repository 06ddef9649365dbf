"""TensorFlow.js, by its own converter.

It has no arrays of uint32, and multiplies integers in float64.
"""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.shared import IDIOMS, IN_PARTS, NARROW, NEEDS, RESIZE
from jax2tf._src.targets.target import Target

TFJS = Target(
    "tfjs",
    idioms=IDIOMS | {"erf"},
    finite_idioms=RESIZE,
    quirks=quirks_of("tfjs"),
    lacks_dtypes=NARROW | {"uint32"},
    lacks=op_tables.lacks("tfjs", needs=NEEDS),
    computes_in=IN_PARTS | {"uint32": "int32"},
)
