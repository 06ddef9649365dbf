"""The rules that write ops as ONNX, one module for each family."""

from __future__ import annotations

import importlib

_MODULES = (
    "activations",
    "arrays",
    "casts",
    "choices",
    "control_flow",
    "convolution",
    "elementwise",
    "images",
    "indexing",
    "integers",
    "matrices",
    "products",
    "reductions",
    "slices",
)


def import_rules() -> None:
    """Registers all rules."""
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
