"""ONNX Runtime, by tf2onnx."""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.shared import BFLOAT16, IDIOMS, IN_PARTS, NARROW, NEEDS, NORMS, RESIZE
from jax2tf._src.targets.target import Target

_EDGES = {
    "MirrorPad": "large",
    "Pad": "large",
    "TensorScatterMax": "nan",
    "TensorScatterMin": "nan",
}

ONNX = Target(
    "onnx",
    # ONNX counts negative classes from the end.
    idioms=(IDIOMS - {"one_hot"}) | NORMS | {"erf"},
    finite_idioms=RESIZE,
    quirks=quirks_of("onnx"),
    lacks_dtypes=NARROW | BFLOAT16,
    lacks=op_tables.lacks("onnx", needs=NEEDS, edges=_EDGES),
    computes_in=IN_PARTS | {"uint16": "int32"},
)
