"""Programs of GPflow 2.11.2: Gaussian processes.

One module an area; `formulas` is of what has no state.
"""

from __future__ import annotations

from typing import Any

from tests.substrates.libraries.gaussian_processes import (
    differences,
    formulas,
    kernels,
    likelihoods,
    models,
)
from tests.substrates.libraries.programs import Suite

LIBRARY = "gpflow"
_AREAS = (
    "conditionals",
    "covariances",
    "expectations",
    "functions",
    "inducing_variables",
    "kernels",
    "kullback_leiblers",
    "likelihoods",
    "logdensities",
    "models",
    "optimizers",
    "posteriors",
    "probability_distributions",
    "quadrature",
    "utilities",
)


def names(gpflow: Any) -> list[str]:
    """The public functions and classes of each area, of those that it defines itself."""
    found = []
    for area in _AREAS:
        module = getattr(gpflow, area)
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name, None)
            owner = str(getattr(value, "__module__", ""))
            if callable(value) and not name.startswith("_") and owner.startswith(module.__name__):
                found.append(f"{area}.{name}")
    return found


SUITE = Suite(
    LIBRARY,
    [program for area in (kernels, likelihoods, models, formulas) for program in area.PROGRAMS],
    packages=("tensorflow_probability", "check_shapes"),
    needs="gpflow==2.11.2",
    names=names,
    differences=differences.DIFFERENCES,
)
