"""`ExportResult`, the report of an export."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """Describes the file or folder that `jax2tf.export` wrote. `str` gives some lines of text.

    Attributes:
      path: the file or folder.
      format: "savedmodel", "litert", "onnx", "openvino" or "tfjs".
      signatures: the inputs of each signature by name, as "float32[b, 4]".
      size: bytes of all files.
      ops: the number of ops, without constants and inputs.
      differences: the largest absolute difference to JAX, by signature and output; empty with
        verify=False.
      verified: the inputs that were run, as "serving_default: random inputs, b=2"; empty with
        verify=False.
    """

    path: Path
    format: str
    signatures: Mapping[str, Mapping[str, str]]
    size: int
    ops: int
    differences: Mapping[str, Mapping[str, float]]
    verified: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.format}, {self.size:,} bytes, {self.ops} ops"]
        for name, inputs in self.signatures.items():
            specs = ", ".join(f"{key}: {value}" for key, value in inputs.items())
            lines.append(f"  {name}({specs})")
            for output, difference in self.differences.get(name, {}).items():
                lines.append(f"    {output}: largest difference to JAX {difference:.3g}")
        lines += [f"  run: {trial}" for trial in self.verified] or ["  not run (verify=False)"]
        return "\n".join(lines)
