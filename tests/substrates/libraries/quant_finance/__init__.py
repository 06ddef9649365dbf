"""Programs of tf-quant-finance 0.0.1.dev34, most of them the examples of its documentation.

One module an area; `math` is three.
"""

from __future__ import annotations

import types
from typing import Any

from tests.substrates.libraries.programs import Suite
from tests.substrates.libraries.quant_finance import (
    black_scholes,
    dates,
    differences,
    experimental,
    math,
    models,
    pde,
    rates,
    sampling,
)

LIBRARY = "tf_quant_finance"


def names(tff: Any) -> list[str]:
    """The public functions and classes of the areas that are asked about."""
    found: list[str] = []
    seen: set[int] = set()

    def walk(module: Any, path: str) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name, None)
            if name.startswith("_") or value is None:
                continue
            if isinstance(value, types.ModuleType):
                # Modules of helpers and of protocol buffers are no area of their own.
                if value.__name__.startswith(LIBRARY) and "pricing_platform" not in value.__name__:
                    walk(value, f"{path}{name}.")
            elif (
                callable(value)
                and str(getattr(value, "__module__", "")).startswith(LIBRARY)
                and id(value) not in seen
            ):
                seen.add(id(value))
                found.append(f"{path}{name}")

    for area in ("black_scholes", "math", "models", "rates", "experimental", "datetime"):
        walk(getattr(tff, area), f"{area}.")
    return found


_AREAS = (black_scholes, math, pde, sampling, models, rates, experimental, dates)
SUITE = Suite(
    LIBRARY,
    [program for area in _AREAS for program in area.PROGRAMS],
    packages=("tensorflow_probability",),
    needs="tf-quant-finance==0.0.1.dev34",
    names=names,
    differences=differences.DIFFERENCES,
)
