"""Random systems of shape specs, constraints and sizes, well formed and malformed."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
from hypothesis import strategies as st

from tests.impl.fuzzing.expressions import (
    COMPARISONS,
    EXPRESSIONS,
    LINEAR,
    NAMES,
    VALUES,
    on_integers,
)


@dataclasses.dataclass(frozen=True)
class System:
    """Specs of one shape each, constraints, and sizes that came."""

    specs: tuple[tuple[str, ...], ...]
    constraints: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]

    @property
    def variables(self) -> list[str]:
        """The names in specs and constraints."""
        text = " ".join([*(" ".join(spec) for spec in self.specs), *self.constraints])
        return sorted(set(re.findall(r"\b[abc]\b", text)))

    def allows(self, values: dict[str, int | np.ndarray]) -> np.ndarray:
        """Whether the sizes and the constraints hold for a valuation, or for many."""
        holds = np.asarray(True)
        for value in values.values():
            holds = holds & (np.asarray(value) >= 1)
        for spec, shape in zip(self.specs, self.sizes, strict=True):
            for dim, size in zip(spec, shape, strict=True):
                holds = holds & (on_integers(dim, values) == size)
        for constraint in self.constraints:
            holds = holds & _holds(constraint, values)
        return holds

    def solutions(self, names: list[str]) -> list[dict[str, int]]:
        """The valuations of `names` for which all holds, by trying many."""
        if not names:
            return [{}] if self.allows({}) else []
        count = 110 if len(names) < 3 else 36
        axes = np.meshgrid(*[np.arange(1, count + 1)] * len(names), indexing="ij")
        grid = dict(zip(names, axes, strict=True))
        found = np.argwhere(np.broadcast_to(self.allows(grid), axes[0].shape))
        return [dict(zip(names, map(int, row + 1), strict=True)) for row in found]


def _holds(constraint: str, values: dict[str, int | np.ndarray]) -> np.ndarray:
    sign = next(s for s in COMPARISONS if s in constraint)
    left, right = (on_integers(side, values) for side in constraint.split(sign))
    return np.asarray(
        {"==": left == right, ">=": left >= right, "<=": left <= right}[sign], dtype=bool
    )


DIMENSIONS = st.one_of(
    st.sampled_from(NAMES), st.sampled_from(NAMES), LINEAR, st.integers(1, 5).map(str), EXPRESSIONS
)
CONSTRAINTS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(NAMES), st.sampled_from(COMPARISONS), LINEAR),
    st.builds(
        "{} {} {}".format, st.sampled_from(NAMES), st.sampled_from(COMPARISONS), st.integers(1, 9)
    ),
    st.builds("mod({}, {}) == 0".format, st.sampled_from(NAMES), st.integers(1, 4)),
    st.builds("floordiv({} - 5, 2) >= {}".format, st.sampled_from(NAMES), st.integers(-3, 4)),
    st.builds("{} {} {}".format, EXPRESSIONS, st.sampled_from(COMPARISONS), EXPRESSIONS),
)


@st.composite
def systems(draw) -> System:
    """A system that holds for some valuation, or nearly."""
    shapes = st.lists(st.lists(DIMENSIONS, max_size=3).map(tuple), min_size=1, max_size=3)
    specs = tuple(draw(shapes))
    values = draw(VALUES)
    sizes = [[int(on_integers(dim, values)) for dim in spec] for spec in specs]
    flat = [(i, j) for i, row in enumerate(sizes) for j in range(len(row))]
    if flat and draw(st.integers(0, 2)) == 0:
        i, j = draw(st.sampled_from(flat))
        sizes[i][j] += draw(st.sampled_from([-2, -1, 1, 2]))
    clipped = tuple(tuple(min(max(s, 0), 1000) for s in row) for row in sizes)
    constraints = tuple(draw(st.lists(CONSTRAINTS, max_size=2)))
    return System(specs, constraints, clipped)


MALFORMED = st.lists(
    st.sampled_from([*"ab019_,.()+-*^/%<>=!$#'\"\\ \n\tAé\0", "mod", "max", "...", "floordiv"]),
    max_size=12,
).map("".join)
