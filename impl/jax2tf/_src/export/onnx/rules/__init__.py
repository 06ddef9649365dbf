"""The rules that write ops as ONNX, one module for each family."""

from __future__ import annotations

import importlib

_MODULES = (
    "control_flow",
    "elementwise",
    "choices",
    "casts",
    "integers",
    "powers",
    "reductions",
    "cumulative",
    "products",
    "activations",
)


def import_rules() -> None:
    """Registers all rules."""
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
