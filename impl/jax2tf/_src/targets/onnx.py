"""ONNX Runtime, by our own writer of ONNX files."""

from __future__ import annotations

from jax2tf._src.targets import op_tables
from jax2tf._src.targets.quirks import quirks_of
from jax2tf._src.targets.shared import BFLOAT16, IDIOMS, IN_PARTS, NARROW, NORMS, RESIZE
from jax2tf._src.targets.target import Target

# A rule that reads bits reads those of floats as integers. ONNX reads integers as integers only.
_NO_BITS: dict[str, tuple[str, ...]] = {"Bitcast": ()}
# ONNX Runtime's ScatterND takes the larger of two numbers by comparing them.
_EDGES = {"TensorScatterMax": "nan", "TensorScatterMin": "nan"}

# Of the ops that not every engine has. A cumulative product would be a loop in ONNX.
_OWN = (
    *("Acos", "Asin", "Atan", "Atanh", "Cosh", "Erf", "Sinh", "Tan"),
    *("TruncateDiv", "TruncateMod"),
)

ONNX = Target(
    "onnx",
    # ONNX counts negative classes from the end.
    idioms=(IDIOMS - {"one_hot"}) | NORMS | {"erf", "quotient"},
    finite_idioms=RESIZE,
    quirks=quirks_of("onnx"),
    lacks_dtypes=NARROW | BFLOAT16,
    lacks=op_tables.lacks("onnx", edges=_EDGES) | _NO_BITS,
    own_ops=op_tables.taken("onnx", _OWN),
    computes_in=IN_PARTS | {"uint16": "int32"},
)
