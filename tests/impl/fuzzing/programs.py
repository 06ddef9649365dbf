"""Random programs over random symbolic shapes.

A program is a list of steps over a growing list of arrays of one dtype. int32 makes every
comparison exact: what is wrong in a shape, an index or an order is wrong by a whole number. Steps
that TensorFlow has for floats alone (convolution, pooling) then go through small whole floats.

A step is chosen while the shapes are symbolic, and JAX itself says whether it fits (a step that it
refuses is left out); it is then the same function for every size.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import export

from tests.impl.fuzzing.steps import KINDS, OF_TWO, Draw, Step

SPECS = ("b", "b, 3", "2, b", "a, b", "b, a, 2", "2*b", "b, b", "b + 1, a", "3", "2, 3")
SIZES = st.fixed_dictionaries({"a": st.integers(1, 4), "b": st.integers(1, 5)})


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A step, the arrays that it takes, and its words."""

    step: Step
    operands: tuple[int, ...]
    words: str

    def __repr__(self) -> str:
        return f"{self.words}{self.operands}"


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays of the shapes that `specs` tell; it gives the array of each step."""

    specs: tuple[str, ...]
    steps: tuple[Chosen, ...]
    dtype: Any

    def __call__(self, *args: Any) -> list[jax.Array]:
        values = [jnp.asarray(a) for a in args]
        for chosen in self.steps:
            values.append(chosen.step(*(values[i] for i in chosen.operands)))
        return values[len(args) :]

    def shapes(self, sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """The shapes of the arguments where variables have these sizes."""
        return [tuple(eval(f"({spec},)", {}, sizes)) for spec in self.specs]

    def arguments(self, sizes: dict[str, int]) -> list[np.ndarray]:
        """Arguments of these shapes."""
        rng = np.random.default_rng(sum(sizes.values()))
        return [rng.integers(-9, 10, shape).astype(self.dtype) for shape in self.shapes(sizes)]


@st.composite
def programs(draw: Draw, max_steps: int = 6, dtype: Any = np.int32) -> Program:
    """A program of steps that have results of one dtype, and take them."""
    specs = tuple(draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=2)))
    scope = export.SymbolicScope()
    avals = [
        jax.ShapeDtypeStruct(export.symbolic_shape(spec, scope=scope), dtype) for spec in specs
    ]
    steps = []
    for _ in range(draw(st.integers(1, max_steps))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        operand = draw(st.integers(0, len(avals) - 1))
        partners = [i for i, aval in enumerate(avals) if aval.shape == avals[operand].shape]
        operands = (operand,) if kind not in OF_TWO else (operand, draw(st.sampled_from(partners)))
        step = KINDS[kind](draw, len(avals[operand].shape))
        if step is None:
            continue
        try:
            aval = jax.eval_shape(step, *(avals[i] for i in operands))
        except Exception:  # whatever JAX says of a step that does not fit symbolic shapes
            continue
        # Repeating and joining multiply sizes; what is measured is shapes, not speed.
        if aval.dtype == dtype and len(aval.shape) <= 4 and len(str(aval.shape)) < 60:
            steps.append(Chosen(step, operands, kind))
            avals.append(jax.ShapeDtypeStruct(aval.shape, dtype))
    return Program(specs, tuple(steps), dtype)
