"""OpenVINO, by its own converter, on a CPU."""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.shared import (
    BFLOAT16,
    IDIOMS,
    IN_INT32,
    IN_PARTS,
    NARROW,
    NEEDS,
    NORMS,
    RESIZE,
)
from jax2tf._src.targets.target import Target

# OpenVINO computes bits of uint32 as if they had a sign, and of int64 only those of 32 bits. Where
# indices repeat it writes, and does not add.
_LACKS = op_tables.lacks(
    "openvino",
    needs=(*NEEDS, "ScatterNd: where indices repeat"),
    edges={"RightShift": "large"},
)

OPENVINO = Target(
    "openvino",
    # A row with a NaN is no NaN in OpenVINO's log_softmax, and gelu of infinity is one.
    idioms=(IDIOMS - {"log_softmax"}) | NORMS,
    finite_idioms=RESIZE | {"erf", "log_softmax"},
    quirks=quirks_of("openvino"),
    lacks_dtypes=NARROW | BFLOAT16,
    lacks=_LACKS,
    computes_in=IN_INT32 | IN_PARTS | {"uint32": "int32"},
)
