"""LiteRT, by TensorFlow's converter."""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.shared import (
    FEW_IN_PADS,
    IDIOMS,
    IN_INT32,
    IN_PARTS,
    NARROW,
    NEEDS,
    RESIZE,
)
from jax2tf._src.targets.target import Target

# The converter makes sums of writes: where indices repeat, the updates are added. Sums of floats
# lose a negative zero that was there.
_LACKS = op_tables.lacks(
    "litert",
    needs=(
        *NEEDS,
        "RightShift: by a distance that is checked",
        "TensorScatterUpdate: where indices repeat",
    ),
    edges={"TensorScatterAdd": "zeros"},
)

LITERT = Target(
    "litert",
    idioms=IDIOMS | {"dynamic_update_slice"},
    finite_idioms=RESIZE,
    integer_idioms=frozenset({"masked_softmax"}),
    quirks=quirks_of("litert"),
    lacks_dtypes=NARROW,
    # What the converter makes of Lgamma is further from JAX than what the lowering makes of it.
    lacks=_LACKS | {"Lgamma": ()},
    computes_in=IN_INT32
    | IN_PARTS
    | {"uint32": "int32", "float16": "float32", "bfloat16": "float32"},
    most_dimensions_of=FEW_IN_PADS,
)
