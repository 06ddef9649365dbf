"""Core ML, by coremltools.

Its models run only on Apple's systems: what is known is which ops its converter takes.
"""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.forms import NOT_IN_EVERY_ENGINE
from jax2tf._src.targets.shared import BFLOAT16, IN_PARTS, NARROW, NEEDS
from jax2tf._src.targets.target import Target

_LACKS = op_tables.lacks(
    "coreml",
    needs=(
        *NEEDS,
        "Conv2DBackpropInput: by a constant kernel",
        "Conv3DBackpropInputV2: by a constant kernel",
        "Fill: with a constant number",
    ),
)

COREML = Target(
    "coreml",
    lacks_dtypes=NARROW | BFLOAT16,
    lacks=_LACKS,
    own_ops=op_tables.taken("coreml", NOT_IN_EVERY_ENGINE),
    most_dimensions=5,
    computes_in=IN_PARTS,
)
