"""Programs of TensorFlow Probability 0.25, one module an area."""

from __future__ import annotations

from typing import Any

from tests.substrates.libraries.probability import (
    bijectors,
    differences,
    distributions,
    math,
    mcmc,
    optimizer,
    sts,
)
from tests.substrates.libraries.programs import Suite, public_names


def names(tfp: Any) -> list[str]:
    """The public functions and classes of the areas that are asked about."""
    areas = ("distributions", "bijectors", "math", "mcmc", "optimizer", "sts")
    return [name for area in areas for name in public_names(getattr(tfp, area), f"{area}.")]


SUITE = Suite(
    "tensorflow_probability",
    [
        program
        for area in (distributions, bijectors, math, mcmc, optimizer, sts)
        for program in area.PROGRAMS
    ],
    needs="tensorflow-probability==0.25.0 tf-keras",
    names=names,
    differences=differences.DIFFERENCES,
)
