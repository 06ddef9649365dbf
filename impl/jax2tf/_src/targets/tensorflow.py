"""TensorFlow itself, with XLA ops and without: the latter is what every engine takes."""

from __future__ import annotations

from jax2tf._src.targets.forms import Optimization
from jax2tf._src.targets.quirks import Quirk
from jax2tf._src.targets.shared import FEW_IN_PADS
from jax2tf._src.targets.target import XLA, Target

WITH_XLA = Target(
    "xla",
    XLA,
    quirks=frozenset({Quirk.ONE_WINDOW_OF_ONE_FEATURE, Quirk.SEEKS_STARTS_OF_SLICES}),
    # The graph may run on another device, where random bits and linear algebra give other results.
    optimizations=frozenset(Optimization) - {Optimization.KNOWN_RESULTS},
)

TENSORFLOW = Target(
    "tensorflow",
    quirks=frozenset(
        {
            Quirk.DROPS_TRANSPOSES_AROUND_RESHAPE,
            Quirk.EXCHANGES_CONSTANT_AND_TRANSPOSE,
            Quirk.NO_CONSTANT_BY_OPEN_MATRIX,
            Quirk.NO_LISTS_IN_FUNCTIONS,
            Quirk.ONE_WINDOW_OF_ONE_FEATURE,
            Quirk.PADS_LOSE_SIZES,
            Quirk.TAKES_CONSTANT_BRANCHES,
        }
    ),
    most_dimensions_of=FEW_IN_PADS,
)
