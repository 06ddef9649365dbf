"""The rules that write ops as LiteRT's, one module for each family."""

from __future__ import annotations

import importlib
import pkgutil


def import_rules() -> None:
    """Registers all rules: those of every module of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
