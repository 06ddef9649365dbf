"""The geometry of windows, for the writers of ONNX and of LiteRT."""

from __future__ import annotations

from jax2tf._src.util.typing import Size


def same_padding(size: Size, extent: int, stride: int) -> tuple[int, int] | None:
    """What SAME adds on both sides; None if it depends on an open size."""
    if isinstance(size, int):
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
    elif stride == 1:
        total = extent - 1
    else:
        return None
    return total // 2, total - total // 2
